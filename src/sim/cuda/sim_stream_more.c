/* SPDX-License-Identifier: Apache-2.0
 * Rarer functions of streams: values written and waited for in memory, callbacks, identity. */
#include "sim/cuda/sim.h"

#include <stdlib.h>
#include <time.h>

enum { WAIT_GEQ = 0, WAIT_EQ = 1, WAIT_AND = 2, WAIT_NOR = 3, WAIT_FLUSH = 1 << 30 };

struct value {
	sim_addr address;
	uint64_t value;
	unsigned int bytes, how;
	bool wait;
	struct sim_ctx *ctx;
};

static uint64_t value_read(const struct value *v)
{
	if (v->bytes == 4)
		return atomic_load((_Atomic uint32_t *)(uintptr_t)v->address);
	return atomic_load((_Atomic uint64_t *)(uintptr_t)v->address);
}

/* "At least" is cyclic: the difference, as a signed number, is not negative. */
static bool value_reached(const struct value *v)
{
	uint64_t now = value_read(v);

	switch (v->how) {
	case WAIT_EQ: return now == v->value;
	case WAIT_AND: return (now & v->value) != 0;
	case WAIT_NOR: return ~(now | v->value) << (v->bytes == 4 ? 32 : 0) != 0;
	}
	return v->bytes == 4 ? (int32_t)((uint32_t)now - (uint32_t)v->value) >= 0 : (int64_t)(now - v->value) >= 0;
}

static void value_run(void *data)
{
	struct value *v = data;

	if (!v->wait && v->bytes == 4)
		atomic_store((_Atomic uint32_t *)(uintptr_t)v->address, (uint32_t)v->value);
	else if (!v->wait)
		atomic_store((_Atomic uint64_t *)(uintptr_t)v->address, v->value);
	while (v->wait && !value_reached(v) && !atomic_load(&v->ctx->sticky))
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* What a graph repeats is kept: a value is a few bytes. */
static int value_submit(struct sim_stream *stream, sim_addr address, uint64_t number, unsigned int bytes,
			unsigned int flags, bool wait)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_HOST};
	struct value *v;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (address % bytes || !sim_mem_covers(address, bytes) ||
	    (wait ? flags & ~(unsigned int)(WAIT_FLUSH | 3) : flags & ~1u))
		return SIM_INVALID_VALUE;
	v = calloc(1, sizeof(*v));
	if (!v)
		return SIM_OUT_OF_MEMORY;
	sim_keep(v);
	*v = (struct value){address, number, bytes, flags & 3, wait, s->ctx};
	op.u.host.fn = value_run;
	op.u.host.data = v;
	return sim_work_submit(s, &op, NULL);
}

int sim_cuStreamWriteValue32_v2(struct sim_stream *stream, sim_addr address, unsigned int value, unsigned int flags)
{
	return value_submit(stream, address, value, 4, flags, false);
}

int sim_cuStreamWriteValue64_v2(struct sim_stream *stream, sim_addr address, unsigned long long value, unsigned int flags)
{
	return value_submit(stream, address, value, 8, flags, false);
}

int sim_cuStreamWaitValue32_v2(struct sim_stream *stream, sim_addr address, unsigned int value, unsigned int flags)
{
	return value_submit(stream, address, value, 4, flags, true);
}

int sim_cuStreamWaitValue64_v2(struct sim_stream *stream, sim_addr address, unsigned long long value, unsigned int flags)
{
	return value_submit(stream, address, value, 8, flags, true);
}

/* The older forms were once for drivers that had been told to allow them; the arguments are the same. */
int sim_cuStreamWriteValue32(struct sim_stream *stream, sim_addr address, unsigned int value, unsigned int flags)
{
	return sim_cuStreamWriteValue32_v2(stream, address, value, flags);
}

int sim_cuStreamWriteValue64(struct sim_stream *stream, sim_addr address, unsigned long long value, unsigned int flags)
{
	return sim_cuStreamWriteValue64_v2(stream, address, value, flags);
}

int sim_cuStreamWaitValue32(struct sim_stream *stream, sim_addr address, unsigned int value, unsigned int flags)
{
	return sim_cuStreamWaitValue32_v2(stream, address, value, flags);
}

int sim_cuStreamWaitValue64(struct sim_stream *stream, sim_addr address, unsigned long long value, unsigned int flags)
{
	return sim_cuStreamWaitValue64_v2(stream, address, value, flags);
}

struct callback {
	sim_stream_fn fn;
	struct sim_stream *stream;
	void *data;
};

static void callback_run(void *data)
{
	struct callback c = *(struct callback *)data;

	free(data);
	c.fn(c.stream, 0, c.data);
}

int sim_cuStreamAddCallback(struct sim_stream *stream, sim_stream_fn function, void *data, unsigned int flags)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_HOST};
	struct callback *c;
	int code;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!function || flags)
		return SIM_INVALID_VALUE;
	if (atomic_load(&s->capture)) {
		sim_capture_spoil(s);
		return SIM_CAPTURE_UNSUPPORTED;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return SIM_OUT_OF_MEMORY;
	sim_keep(c);
	*c = (struct callback){function, stream, data};
	op.u.host.fn = callback_run;
	op.u.host.data = c;
	code = sim_work_submit(s, &op, NULL);
	if (code)
		free(c);
	return code;
}

int sim_cuStreamGetId(struct sim_stream *stream, unsigned long long *id)
{
	struct sim_stream *s = sim_stream_resolve(stream);

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!id)
		return SIM_INVALID_VALUE;
	*id = (unsigned long long)(((char *)s - atomic_load(&sim.streams.base)) / (ptrdiff_t)sim.streams.stride) + 1;
	return 0;
}

int sim_cuStreamGetDevice(struct sim_stream *stream, int *device)
{
	struct sim_stream *s = sim_stream_resolve(stream);

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!device)
		return SIM_INVALID_VALUE;
	*device = s->ctx->device;
	return 0;
}
