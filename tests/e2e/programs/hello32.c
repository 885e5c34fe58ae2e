/* SPDX-License-Identifier: Apache-2.0
 * Something to run as a 32-bit program. */
#include <stdio.h>

int main(void)
{
	printf("%zu bits\n", sizeof(void *) * 8);
	return 7;
}
