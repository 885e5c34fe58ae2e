/* SPDX-License-Identifier: Apache-2.0
 * A program linked with libcuda: calls come through its own symbol table.
 * expect: cause=launch-config-grid-limit certainty=certain,likely exit=1 kernel=nop
 * build: -lcuda
 */
#include "cu.h"

int main(void)
{
	CUfunction nop = cu_start();

	CU_TRY(cuLaunchKernel(nop, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	CU_TRY(cuLaunchKernel(nop, 1, 80000, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	return 0;
}
