/* SPDX-License-Identifier: Apache-2.0
 * Tensor maps, descriptors for copies of whole tiles: checked as documented. What is written into one is our own. */
#include "sim/cuda/sim.h"

#include <string.h>

enum { MAP_BYTES = 128, MAP_ALIGN = 64, TYPES = 16, RANK_MAX = 5 };

#define EXTENT_MAX ((uint64_t)1 << 32)
#define STRIDE_MAX ((uint64_t)1 << 40)

struct shape {
	unsigned int rank;
	sim_addr address;
	const uint64_t *dims, *strides;
	const uint32_t *steps;
	int type, interleave, swizzle, l2, fill;
};

/* Maps exist since compute capability 9.0. */
static bool shape_ok(const struct shape *s, const void *map, unsigned int least)
{
	if (!map || (uintptr_t)map % MAP_ALIGN || s->rank < least || s->rank > RANK_MAX || s->type < 0 ||
	    s->type >= TYPES || !s->address || s->address % (s->interleave == 2 ? 32 : 16) || !s->dims ||
	    (s->rank > 1 && !s->strides) || !s->steps)
		return false;
	if (s->interleave < 0 || s->interleave > 2 || s->swizzle < 0 || s->swizzle > 6 || s->l2 < 0 || s->l2 > 3 ||
	    s->fill < 0 || s->fill > 1 || (s->interleave && s->rank < 3))
		return false;
	for (unsigned int i = 0; i < s->rank; i++) {
		if (!s->dims[i] || s->dims[i] > EXTENT_MAX || !s->steps[i] || s->steps[i] > 8)
			return false;
		if (i && (s->strides[i - 1] % (s->interleave == 2 ? 32 : 16) || s->strides[i - 1] >= STRIDE_MAX))
			return false;
	}
	return true;
}

static int map_write(void *map, const struct shape *s)
{
	if (sim_ctx_current() && !sim_device_current()->model->cluster_max)
		return SIM_NOT_SUPPORTED;
	memset(map, 0, MAP_BYTES);
	memcpy(map, &s->address, sizeof(s->address));
	memcpy((char *)map + sizeof(s->address), s->dims, s->rank * sizeof(s->dims[0]));
	return 0;
}

int sim_cuTensorMapEncodeTiled(void *map, int type, unsigned int rank, void *address, const uint64_t *dims,
			       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
			       int swizzle, int l2, int fill)
{
	struct shape s = {rank, (sim_addr)(uintptr_t)address, dims, strides, steps, type, interleave, swizzle, l2,
			  fill};

	if (!shape_ok(&s, map, 1) || !box)
		return SIM_INVALID_VALUE;
	for (unsigned int i = 0; i < rank; i++)
		if (!box[i] || box[i] > 256)
			return SIM_INVALID_VALUE;
	return map_write(map, &s);
}

int sim_cuTensorMapEncodeIm2col(void *map, int type, unsigned int rank, void *address, const uint64_t *dims,
				const uint64_t *strides, const int *lower, const int *upper, unsigned int channels,
				unsigned int pixels, const uint32_t *steps, int interleave, int swizzle, int l2, int fill)
{
	struct shape s = {rank, (sim_addr)(uintptr_t)address, dims, strides, steps, type, interleave, swizzle, l2,
			  fill};

	if (!shape_ok(&s, map, 3) || !lower || !upper || !channels || channels > 256 || !pixels || pixels > 1024)
		return SIM_INVALID_VALUE;
	return map_write(map, &s);
}

int sim_cuTensorMapReplaceAddress(void *map, void *address)
{
	sim_addr at = (sim_addr)(uintptr_t)address;

	if (!map || (uintptr_t)map % MAP_ALIGN || !at || at % 16)
		return SIM_INVALID_VALUE;
	memcpy(map, &at, sizeof(at));
	return 0;
}
