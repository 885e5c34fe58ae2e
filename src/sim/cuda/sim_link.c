/* SPDX-License-Identifier: Apache-2.0
 * The linker: one input is passed on as it is. Nothing can be linked with anything else. */
#include "sim/cuda/sim_image.h"

#include <stdlib.h>
#include <string.h>

struct link_state {
	void *image;
	size_t bytes;
	bool complete;
};

int sim_cuLinkCreate_v2(unsigned int count, int *options, void **values, void **state)
{
	struct link_state *l;

	if (!state || (count && (!options || !values)))
		return SIM_INVALID_VALUE;
	l = calloc(1, sizeof(*l));
	sim_keep(l);
	*state = l;
	return l ? 0 : SIM_OUT_OF_MEMORY;
}

int sim_cuLinkAddData_v2(void *state, int type, void *data, size_t bytes, const char *name, unsigned int count,
			 int *options, void **values)
{
	struct link_state *l = state;

	(void)type, (void)name, (void)options, (void)values, (void)count;
	if (!l || !data || !bytes || l->complete)
		return SIM_INVALID_VALUE;
	if (l->image) {
		sim_log("The simulated GPU cannot link several inputs");
		return SIM_NOT_SUPPORTED;
	}
	l->image = calloc(1, bytes + 64);	/* it may be text without a zero at its end */
	if (!l->image)
		return SIM_OUT_OF_MEMORY;
	sim_keep(l->image);
	memcpy(l->image, data, bytes);
	l->bytes = bytes;
	if (sim_real_is(l->image))
		return 0;
	free(l->image);
	l->image = NULL;
	return SIM_INVALID_IMAGE;
}

int sim_cuLinkComplete(void *state, void **cubin, size_t *bytes)
{
	struct link_state *l = state;

	if (!l || !cubin || !l->image)
		return SIM_INVALID_VALUE;
	l->complete = true;
	*cubin = l->image;
	if (bytes)
		*bytes = l->bytes;
	return 0;
}

int sim_cuLinkDestroy(void *state)
{
	struct link_state *l = state;

	if (!l)
		return SIM_INVALID_VALUE;
	free(l->image);
	free(l);
	return 0;
}
