/* SPDX-License-Identifier: Apache-2.0
 * The per-thread-default-stream twin of the launch.
 * expect: cause=launch-config-block-limit certainty=certain,likely exit=1 kernel=nop
 * build: -lcuda
 */
#include "cu.h"

int main(void)
{
	CUfunction nop = cu_start();

	CU_TRY(cuLaunchKernel_ptsz(nop, 1, 1, 1, 5000, 1, 1, 0, NULL, NULL, NULL));
	return 0;
}
