/* SPDX-License-Identifier: Apache-2.0
 * Functions without bounds or without error reporting do not compile. The Makefile includes this header in every file of
 * the CLI, ahead of everything else, so the headers that declare these functions must come first.
 */
#ifndef CUWHY_BANNED_H
#define CUWHY_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison strcpy strcat sprintf strtok gets atoi

#endif
