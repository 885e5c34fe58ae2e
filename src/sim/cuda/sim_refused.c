/* SPDX-License-Identifier: Apache-2.0
 * Functions that are not supported: the rows of sim_refused.def. */
#include "sim/cuda/sim.h"

#define SIM_REFUSED(base, symbol, since)  \
	int sim_##symbol(void)            \
	{                                 \
		return SIM_NOT_SUPPORTED; \
	}
#include "sim/cuda/sim_refused.def"
#undef SIM_REFUSED
