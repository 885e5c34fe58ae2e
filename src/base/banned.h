/* SPDX-License-Identifier: Apache-2.0
 * Functions without bounds or without error reporting do not compile, nor does qsort. The Makefile includes this header in every file of
 * the CLI, ahead of everything else, so the headers that declare these functions must come first.
 */
#ifndef CUWHY_BANNED_H
#define CUWHY_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An empty list has no array, and for NULL qsort is not defined, whatever the number of elements. */
static inline void xsort(void *array, size_t n, size_t size, int (*order)(const void *, const void *))
{
	if (n > 1)
		qsort(array, n, size, order);
}

#pragma GCC poison strcpy strcat sprintf strtok gets atoi qsort

#endif
