/* SPDX-License-Identifier: Apache-2.0
 * Chooses a device through the runtime it is linked to, and exits with its result. */
#include <stdio.h>

int cudaSetDevice(int device);

int main(void)
{
	int good = cudaSetDevice(0), bad = cudaSetDevice(7);

	printf("%d %d\n", good, bad);
	return bad ? 1 : 0;
}
