/* SPDX-License-Identifier: Apache-2.0
 * The seal of a recording: shows that bytes of it were changed or cut off after `cuwhy run` had stored them.
 */
#ifndef CUWHY_SEAL_H
#define CUWHY_SEAL_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the seal into the header; a recording without room for it stays without one. */
void seal_put(void *bytes, size_t len);

/* Does it have a seal that its bytes match, or one that they do not? */
bool seal_holds(const void *bytes, size_t len);
bool seal_is_broken(const void *bytes, size_t len);

#endif
