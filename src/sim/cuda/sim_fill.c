/* SPDX-License-Identifier: Apache-2.0
 * Fills, blocking and in streams.
 */
#include "sim/cuda/sim_copy.h"
#include "sim/cuda/sim_contents.h"

#include <string.h>

static bool range_ok(sim_addr to, unsigned int unit, size_t width, size_t height, size_t pitch)
{
	if (sim_mem_kind_of(to) < 0)
		sim_log("invalid memset range - no allocation found and "
			"cudaDevAttrPageableMemoryAccess is false");
	else if (to % unit)
		sim_log("Device pointer must be %u-byte aligned to match elementSize", unit);
	else if (width > SIZE_MAX / unit || !sim_mem_covers(to, sim_copy_span(width * unit, height, pitch)))
		sim_log("Memset extends beyond allocation range");
	else
		return true;
	return false;
}

static int fill(sim_addr to, size_t pitch, unsigned int value, unsigned int unit, size_t width,
		size_t height, struct sim_stream *stream, bool now)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_FILL};

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!width || !height)
		return 0;
	if (!range_ok(to, unit, width, height, pitch))
		return SIM_INVALID_VALUE;
	op.u.fill.to = to;
	op.u.fill.width = width;
	op.u.fill.height = height;
	op.u.fill.pitch = pitch;
	memcpy(op.u.fill.pattern, &value, unit);
	op.u.fill.bytes = unit;
	op.u.fill.drop = sim_contents_drops(to, width * unit * height);
	/* what is dropped reads as zeros, which is right for most fills */
	sim_contents_filled(to, sim_copy_span(width * unit, height, pitch), op.u.fill.drop && value, false);
	return sim_copy_submit(s, &op, now);
}

int sim_cuMemsetD8_v2(sim_addr to, unsigned char value, size_t count)
{
	return fill(to, count, value, 1, count, 1, NULL, true);
}

int sim_cuMemsetD8Async(sim_addr to, unsigned char value, size_t count, struct sim_stream *stream)
{
	return fill(to, count, value, 1, count, 1, stream, false);
}

int sim_cuMemsetD16_v2(sim_addr to, unsigned short value, size_t count)
{
	return fill(to, count, value, 2, count, 1, NULL, true);
}

int sim_cuMemsetD16Async(sim_addr to, unsigned short value, size_t count,
			 struct sim_stream *stream)
{
	return fill(to, count, value, 2, count, 1, stream, false);
}

int sim_cuMemsetD32_v2(sim_addr to, unsigned int value, size_t count)
{
	return fill(to, count, value, 4, count, 1, NULL, true);
}

int sim_cuMemsetD32Async(sim_addr to, unsigned int value, size_t count, struct sim_stream *stream)
{
	return fill(to, count, value, 4, count, 1, stream, false);
}

int sim_cuMemsetD2D8Async(sim_addr to, size_t pitch, unsigned char value, size_t width,
			  size_t height, struct sim_stream *stream)
{
	return fill(to, pitch, value, 1, width, height, stream, false);
}

int sim_cuMemsetD2D32Async(sim_addr to, size_t pitch, unsigned int value, size_t width,
			   size_t height, struct sim_stream *stream)
{
	return fill(to, pitch, value, 4, width, height, stream, false);
}

int sim_cuMemsetD2D16Async(sim_addr to, size_t pitch, unsigned short value, size_t width, size_t height,
			   struct sim_stream *stream)
{
	return fill(to, pitch, value, 2, width, height, stream, false);
}

int sim_cuMemsetD2D8_v2(sim_addr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
	return fill(to, pitch, value, 1, width, height, NULL, true);
}

int sim_cuMemsetD2D16_v2(sim_addr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
	return fill(to, pitch, value, 2, width, height, NULL, true);
}

int sim_cuMemsetD2D32_v2(sim_addr to, size_t pitch, unsigned int value, size_t width, size_t height)
{
	return fill(to, pitch, value, 4, width, height, NULL, true);
}
