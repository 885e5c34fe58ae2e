/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuRAND. PyTorch's libraries name it as needed and call none of its functions: they use its device code, which is
 * compiled into their kernels. This one says its version, so that the library is not empty.
 */
#include "sim/common/standin.h"

enum { NOT_SUPPORTED = 999 };	/* CURAND_STATUS_INTERNAL_ERROR: cuRAND has no code for "not supported" on this path */

STANDIN(int, curandGetVersion, (int *version))
{
	if (!version)
		return NOT_SUPPORTED;
	*version = 10000;
	return 0;
}
