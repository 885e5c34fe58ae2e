/* SPDX-License-Identifier: Apache-2.0
 * Functions without bounds or without error reporting do not compile. Include this header last.
 */
#ifndef CUWHY_BANNED_H
#define CUWHY_BANNED_H

#pragma GCC poison strcpy strcat sprintf strtok gets atoi

#endif
