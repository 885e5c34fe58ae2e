/* SPDX-License-Identifier: Apache-2.0
 * The function that the one of next_first.c must find. */
#include <stdio.h>

void which(char *out, size_t size);

void which(char *out, size_t size)
{
	snprintf(out, size, "second");
}
