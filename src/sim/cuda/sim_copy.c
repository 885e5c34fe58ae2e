/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills, blocking and in streams. */
#include "sim/cuda/sim_copy.h"
#include "sim/cuda/sim_contents.h"

#include <stdlib.h>
#include <string.h>

enum { STAGING_MAX = 1 << 16 };

enum { SIDE_ANY, SIDE_HOST, SIDE_DEVICE };

struct copy {
	sim_addr to, from;
	int to_side, from_side;
	size_t width, height, to_pitch, from_pitch;
};

size_t sim_copy_span(size_t width, size_t height, size_t pitch)
{
	return height ? (height - 1) * pitch + width : 0;
}

/* An address that the driver does not know is the program's pageable memory, if this side may be host memory. */
static bool side_ok(sim_addr address, size_t bytes, int side, const char *operand)
{
	bool known = sim_mem_kind_of(address) >= 0;

	if (!address)
		sim_log("Null address specified");
	else if (!known && side == SIDE_DEVICE)
		sim_log("Allocation not found");
	else if (known && !sim_mem_covers(address, bytes))
		sim_log("Copy is larger than memobj size, for %s operand", operand);
	else
		return true;
	return false;
}

static bool pageable(sim_addr address)
{
	return sim_mem_kind_of(address) < 0;
}

/* The program may change pageable memory as soon as the call returns: copy it now. */
static int stage(struct sim_op *op)
{
	if (op->u.copy.height != 1 || op->u.copy.width > STAGING_MAX)
		return -1;
	op->u.copy.owned = malloc(op->u.copy.width);
	if (!op->u.copy.owned)
		return -1;
	sim_keep(op->u.copy.owned);
	memcpy(op->u.copy.owned, (void *)(uintptr_t)op->u.copy.from, op->u.copy.width);
	op->u.copy.from = (sim_addr)(uintptr_t)op->u.copy.owned;
	return 0;
}

int sim_copy_submit(struct sim_stream *s, struct sim_op *op, bool wait)
{
	uint64_t seq = 0;
	int code = sim_work_submit(s, op, &seq);

	if (code || !wait || atomic_load(&s->capture))
		return code;
	return sim_work_finish(s, seq);
}

/* Host memory that the program reads, be it pinned or not. */
static bool host_side(sim_addr address)
{
	int kind = sim_mem_kind_of(address);

	return kind != SIM_MEM_DEVICE && kind != SIM_MEM_VMM;
}

/* What the copy does to contents, and what is known about them. */
static void copy_contents(struct sim_op *op)
{
	size_t bytes = op->u.copy.width * op->u.copy.height;
	size_t to = sim_copy_span(op->u.copy.width, op->u.copy.height, op->u.copy.to_pitch);
	size_t from = sim_copy_span(op->u.copy.width, op->u.copy.height, op->u.copy.from_pitch);

	if (host_side(op->u.copy.to)) {
		sim_contents_read(op->u.copy.from, from, op);
		if (op->u.copy.height != 1)
			op->u.copy.invent = SIM_INVENT_NOT;
		return;
	}
	op->u.copy.drop = sim_contents_drops(op->u.copy.to, bytes);
	sim_contents_copied(op->u.copy.to, op->u.copy.from, to, op->u.copy.drop);
}

static int copy_async(const struct copy *c, struct sim_stream *stream)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_COPY};
	bool capturing, wait = false;
	int code;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!c->width || !c->height)
		return 0;
	if (!side_ok(c->to, sim_copy_span(c->width, c->height, c->to_pitch), c->to_side, "destination") ||
	    !side_ok(c->from, sim_copy_span(c->width, c->height, c->from_pitch), c->from_side, "source"))
		return SIM_INVALID_VALUE;
	op.u.copy.to = c->to;
	op.u.copy.from = c->from;
	op.u.copy.width = c->width;
	op.u.copy.height = c->height;
	op.u.copy.to_pitch = c->to_pitch;
	op.u.copy.from_pitch = c->from_pitch;
	copy_contents(&op);
	capturing = atomic_load(&s->capture) != NULL;
	if (op.u.copy.drop)
		wait = false;		/* nothing is read */
	else if (pageable(c->to) || (pageable(c->from) && (capturing || stage(&op))))
		wait = true;
	code = sim_copy_submit(s, &op, wait);
	if (code && !wait)
		free(op.u.copy.owned);
	return code;
}

/* A blocking copy goes through the default stream, so it waits for whatever that stream waits for. */
static int copy_now(const struct copy *c)
{
	struct sim_stream *s = sim_stream_resolve(NULL);
	struct sim_op op = {.kind = SIM_OP_COPY};

	if (!c->width || !c->height)
		return 0;
	if (!side_ok(c->to, sim_copy_span(c->width, c->height, c->to_pitch), c->to_side, "destination") ||
	    !side_ok(c->from, sim_copy_span(c->width, c->height, c->from_pitch), c->from_side, "source"))
		return SIM_INVALID_VALUE;
	op.u.copy.to = c->to;
	op.u.copy.from = c->from;
	op.u.copy.width = c->width;
	op.u.copy.height = c->height;
	op.u.copy.to_pitch = c->to_pitch;
	op.u.copy.from_pitch = c->from_pitch;
	copy_contents(&op);
	return sim_copy_submit(s, &op, true);
}

static struct copy line(sim_addr to, int to_side, sim_addr from, int from_side, size_t bytes)
{
	return (struct copy){to, from, to_side, from_side, bytes, 1, bytes, bytes};
}

static sim_addr addr(const void *p)
{
	return (sim_addr)(uintptr_t)p;
}

int sim_cuMemcpy(sim_addr to, sim_addr from, size_t bytes)
{
	struct copy c = line(to, SIDE_ANY, from, SIDE_ANY, bytes);

	return copy_now(&c);
}

int sim_cuMemcpyAsync(sim_addr to, sim_addr from, size_t bytes, struct sim_stream *stream)
{
	struct copy c = line(to, SIDE_ANY, from, SIDE_ANY, bytes);

	return copy_async(&c, stream);
}

int sim_cuMemcpyHtoD_v2(sim_addr to, const void *from, size_t bytes)
{
	struct copy c = line(to, SIDE_DEVICE, addr(from), SIDE_HOST, bytes);

	return copy_now(&c);
}

int sim_cuMemcpyHtoDAsync_v2(sim_addr to, const void *from, size_t bytes,
			     struct sim_stream *stream)
{
	struct copy c = line(to, SIDE_DEVICE, addr(from), SIDE_HOST, bytes);

	return copy_async(&c, stream);
}

int sim_cuMemcpyDtoH_v2(void *to, sim_addr from, size_t bytes)
{
	struct copy c = line(addr(to), SIDE_HOST, from, SIDE_DEVICE, bytes);

	return copy_now(&c);
}

int sim_cuMemcpyDtoHAsync_v2(void *to, sim_addr from, size_t bytes, struct sim_stream *stream)
{
	struct copy c = line(addr(to), SIDE_HOST, from, SIDE_DEVICE, bytes);

	return copy_async(&c, stream);
}

int sim_cuMemcpyDtoD_v2(sim_addr to, sim_addr from, size_t bytes)
{
	struct copy c = line(to, SIDE_DEVICE, from, SIDE_DEVICE, bytes);

	return copy_now(&c);
}

int sim_cuMemcpyDtoDAsync_v2(sim_addr to, sim_addr from, size_t bytes, struct sim_stream *stream)
{
	struct copy c = line(to, SIDE_DEVICE, from, SIDE_DEVICE, bytes);

	return copy_async(&c, stream);
}

int sim_cuMemcpyPeerAsync(sim_addr to, struct sim_ctx *to_context, sim_addr from,
			  struct sim_ctx *from_context, size_t bytes, struct sim_stream *stream)
{
	if (!sim_pool_get(&sim.contexts, to_context) || !sim_pool_get(&sim.contexts, from_context))
		return SIM_INVALID_CONTEXT;
	return sim_cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

/* Memory types: 1 host, 2 device, 3 array, 4 unified. There are no arrays here. */
static int copy_2d(const struct sim_copy2d *p, struct copy *c)
{
	if (!p)
		return SIM_INVALID_VALUE;
	if (p->src_type == 3 || p->dst_type == 3)
		return SIM_NOT_SUPPORTED;
	c->from = (p->src_type == 1 ? addr(p->src_host) : p->src_device) + p->src_x +
		  p->src_y * p->src_pitch;
	c->to = (p->dst_type == 1 ? addr(p->dst_host) : p->dst_device) + p->dst_x +
		p->dst_y * p->dst_pitch;
	c->from_side = p->src_type == 2 ? SIDE_DEVICE : SIDE_ANY;
	c->to_side = p->dst_type == 2 ? SIDE_DEVICE : SIDE_ANY;
	c->width = p->width;
	c->height = p->height;
	c->from_pitch = p->src_pitch ? p->src_pitch : p->width;
	c->to_pitch = p->dst_pitch ? p->dst_pitch : p->width;
	return c->from_pitch < p->width || c->to_pitch < p->width ? SIM_INVALID_VALUE : 0;
}

int sim_cuMemcpy2D_v2(const struct sim_copy2d *copy)
{
	struct copy c;
	int code = copy_2d(copy, &c);

	return code ? code : copy_now(&c);
}

int sim_cuMemcpy2DAsync_v2(const struct sim_copy2d *copy, struct sim_stream *stream)
{
	struct copy c;
	int code = copy_2d(copy, &c);

	return code ? code : copy_async(&c, stream);
}

/* One layer; layers are `height` rows of `pitch` bytes apart. */
static struct sim_copy2d layer(const struct sim_copy3d *p, size_t z)
{
	size_t from = (p->src_z + z) * p->src_height, to = (p->dst_z + z) * p->dst_height;

	return (struct sim_copy2d){
		.src_x = p->src_x, .src_y = p->src_y + from, .src_type = p->src_type,
		.src_host = p->src_host, .src_device = p->src_device, .src_pitch = p->src_pitch,
		.dst_x = p->dst_x, .dst_y = p->dst_y + to, .dst_type = p->dst_type,
		.dst_host = p->dst_host, .dst_device = p->dst_device, .dst_pitch = p->dst_pitch,
		.width = p->width, .height = p->height,
	};
}

int sim_cuMemcpy3D_v2(const struct sim_copy3d *copy)
{
	int code = copy ? 0 : SIM_INVALID_VALUE;

	for (size_t z = 0; !code && z < copy->depth; z++) {
		struct sim_copy2d flat = layer(copy, z);

		code = sim_cuMemcpy2D_v2(&flat);
	}
	return code;
}

int sim_cuMemcpy3DAsync_v2(const struct sim_copy3d *copy, struct sim_stream *stream)
{
	int code = copy ? 0 : SIM_INVALID_VALUE;

	for (size_t z = 0; !code && z < copy->depth; z++) {
		struct sim_copy2d flat = layer(copy, z);

		code = sim_cuMemcpy2DAsync_v2(&flat, stream);
	}
	return code;
}

/* Of both copies between devices the layout is that of a copy within one, with contexts where that has reserved fields. */
static bool contexts_ok(const struct sim_copy3d_peer *p)
{
	return p && (!p->src_context || sim_pool_get(&sim.contexts, p->src_context)) &&
	       (!p->dst_context || sim_pool_get(&sim.contexts, p->dst_context));
}

int sim_cuMemcpy3DPeer(const struct sim_copy3d_peer *copy)
{
	struct sim_copy3d plain;

	if (!contexts_ok(copy))
		return copy ? SIM_INVALID_CONTEXT : SIM_INVALID_VALUE;
	memcpy(&plain, copy, sizeof(plain));
	return sim_cuMemcpy3D_v2(&plain);
}

int sim_cuMemcpy3DPeerAsync(const struct sim_copy3d_peer *copy, struct sim_stream *stream)
{
	struct sim_copy3d plain;

	if (!contexts_ok(copy))
		return copy ? SIM_INVALID_CONTEXT : SIM_INVALID_VALUE;
	memcpy(&plain, copy, sizeof(plain));
	return sim_cuMemcpy3DAsync_v2(&plain, stream);
}

int sim_cuMemcpyPeer(sim_addr to, struct sim_ctx *to_context, sim_addr from, struct sim_ctx *from_context, size_t bytes)
{
	if (!sim_pool_get(&sim.contexts, to_context) || !sim_pool_get(&sim.contexts, from_context))
		return SIM_INVALID_CONTEXT;
	return sim_cuMemcpyDtoD_v2(to, from, bytes);
}
