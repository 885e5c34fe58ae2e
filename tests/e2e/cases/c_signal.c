/* SPDX-License-Identifier: Apache-2.0
 * The program kills itself with SIGABRT after a failed call, as assertions do.
 * expect: cause=device-ordinal-out-of-range exit=134
 * build: -lcuda
 */
#include "cu.h"

int main(void)
{
	int device;

	CU_TRY(cuInit(0));
	if (cuDeviceGet(&device, 8))
		abort();
	return 0;
}
