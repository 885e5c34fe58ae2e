/* SPDX-License-Identifier: Apache-2.0
 * The driver's functions for those who ask for them by name.
 */
#include "sim/cudart/cudart.h"

enum { FOUND, NOT_FOUND };	/* cudaDriverEntryPointQueryResult, as in the driver */

static int find_entry(const char *name, void **out, int version, unsigned long long flags, int *status)
{
	int found = FOUND, code = rt_init();

	if (code == 0)
		code = cuGetProcAddress_v2(name, out, version, flags, &found);
	if (status)
		*status = found;
	return code ? code : found == FOUND || status ? 0 : SIM_NOT_FOUND;
}

RUNTIME(cudaGetDriverEntryPointByVersion,
	(const char *name, void **out, unsigned int version, unsigned long long flags, int *status))
{
	return rt_done(find_entry(name, out, (int)version, flags, status));
}

/* CUDA 13 has only the form with a version. */
#if SONAME_MAJOR < 13
RUNTIME(cudaGetDriverEntryPoint, (const char *name, void **out, unsigned long long flags, int *status))
{
	int version = 0, code = cuDriverGetVersion(&version);

	return rt_done(code ? code : find_entry(name, out, version, flags, status));
}
#endif
