/* SPDX-License-Identifier: Apache-2.0
 * Readable C++ names.
 */
#ifndef CUWHY_DEMANGLE_H
#define CUWHY_DEMANGLE_H

/* Owned by the caller; NULL when it is not a mangled name. Safe for malicious names. */
char *demangle(const char *mangled);

#endif
