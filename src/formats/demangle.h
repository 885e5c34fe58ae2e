/* SPDX-License-Identifier: Apache-2.0
 * C++ names for people.
 */
#ifndef CUWHY_DEMANGLE_H
#define CUWHY_DEMANGLE_H

/* Owned by the caller; NULL when it is not a mangled name. Safe for names made to do harm. */
char *demangle(const char *mangled);

#endif
