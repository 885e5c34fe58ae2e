/* SPDX-License-Identifier: Apache-2.0
 * Sizes on their way through the GPU. PyTorch sends objects from rank to rank with the GPU's help: it joins their bytes and the
 * numbers of them (cat), adds these up (sum, +), looks for the largest (max, or > for max() of Python), and reads the results back to
 * allocate that much. With other numbers than the true ones, ranks would wait for different amounts of data. So these are computed, for
 * tensors without gaps whose contents are known; what a program itself joins or counts in int64 is right as well, then.
 *
 * The layouts are those of the wheels of 2.4, 2.6, 2.8, 2.11 and 2.15. A kernel whose parameters contradict them is not computed. */
#include "sim/cuda/sim_contents.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 4096, NUMBER_BYTES = sizeof(int64_t) };

/* Work for a stream. */
struct numbers {
	enum sim_known kind;
	int64_t scalar, factor;		/* from + factor * scalar; from + factor * other; a comparison's kind */
	size_t pieces;
	struct sim_piece piece[];	/* of a join, one for each input; else one */
};

static struct numbers *numbers_new(enum sim_known kind, size_t pieces)
{
	struct numbers *n = calloc(1, sizeof(*n) + pieces * sizeof(n->piece[0]));

	if (n) {
		n->kind = kind;
		n->pieces = pieces;
	}
	return n;
}

static bool param_is(const struct sim_func *f, size_t index, size_t bytes)
{
	size_t size = 0;

	return sim_real_param(f, index, &size) != SIZE_MAX && size == bytes;
}

/* CatArrayBatchedCopy…(T *out, inputs, sizes and strides of the result, …), with one row of blocks for each input. The inputs have room for
 * 128 without gaps, or for 64 of any kind: their addresses, offsets in the result, sizes, numbers of elements, a byte, and for the latter
 * their shapes. */
struct join_shape {
	uint32_t size[4], stride[4];
};
struct join_inputs {
	const sim_addr *from;
	const uint32_t *offset, *elements;
	const struct join_shape *shape;	/* NULL: none has gaps */
};

static bool join_inputs_of(struct join_inputs *in, const struct sim_func *f, const void *given)
{
	size_t room = strstr(f->name, "ELi128ELi1E") ? 128 : 64, size = 0;
	const uint32_t *numbers = (const uint32_t *)((const sim_addr *)given + room);

	*in = (struct join_inputs){.from = given, .offset = numbers, .elements = numbers + 2 * room};
	if (room == 64)
		in->shape = (const struct join_shape *)(const void *)((const char *)(numbers + 3 * room) + room);
	return sim_real_param(f, 1, &size) != SIZE_MAX && size >= room * (sizeof(sim_addr) + 3 * sizeof(uint32_t) + 1 +
									  (room == 64 ? sizeof(struct join_shape) : 0));
}

/* The size of an element is in the kernel's name: OpaqueType<8u>. */
static size_t join_unit(const char *name)
{
	static const char type[] = "OpaqueTypeILj";
	const char *at = strstr(name, type);
	size_t unit = at ? (size_t)strtoul(at + sizeof(type) - 1, NULL, 10) : 0;

	return unit <= SIM_PATTERN_BYTES ? unit : 0;
}

static struct numbers *join(const struct sim_func *f, unsigned int inputs, void **params)
{
	const struct join_shape *out = params[2];
	size_t unit = join_unit(f->name), all = 0;
	struct numbers *n = NULL;
	struct join_inputs in;
	sim_addr to;

	if (!unit || inputs > 128 || !join_inputs_of(&in, f, params[1]) || !param_is(f, 2, sizeof(*out)) ||
	    out->stride[0] != 1)
		return NULL;
	for (unsigned int i = 0; i < inputs; i++) {
		if (in.shape && in.elements[i] > 1 && in.shape[i].stride[0] != 1)
			return NULL;
		all += in.elements[i] * unit;
	}
	if (all <= sim.config.contents)
		n = numbers_new(SIM_KNOWN_JOIN, inputs);
	memcpy(&to, params[0], sizeof(to));
	for (unsigned int i = 0; n && i < inputs; i++)
		n->piece[i] = (struct sim_piece){.to = to + in.offset[i] * unit, .to_bytes = in.elements[i] * unit,
						 .from = {in.from[i]}, .from_bytes = in.elements[i] * unit};
	return n;
}

/* reduce_kernel(ReduceOp), here of one dimension to one number. */
struct reduction {
	unsigned char identity[16];
	int32_t element_bytes, inputs, outputs, config[13];
	int32_t dimensions;
	struct { uint32_t divisor, magic, shift; } size[25];
	uint32_t stride[25];
	unsigned char output[508];
	sim_addr from, to;
	unsigned char rest[48];
};
_Static_assert(offsetof(struct reduction, stride) == 384 && offsetof(struct reduction, from) == 992, "as in PyTorch");

static struct numbers *reduce(const struct sim_func *f, enum sim_known kind, void **params)
{
	const struct reduction *r = params[0];
	struct numbers *n;

	if (!param_is(f, 0, sizeof(*r)) || r->element_bytes != NUMBER_BYTES || r->outputs != 1 || r->inputs < 1 ||
	    r->inputs > NUMBERS_MAX || r->dimensions != 1 || r->size[0].divisor != (uint32_t)r->inputs ||
	    r->stride[0] != NUMBER_BYTES)
		return NULL;
	n = numbers_new(kind, 1);
	if (n)
		n->piece[0] = (struct sim_piece){.to = r->to, .to_bytes = NUMBER_BYTES, .from = {r->from},
						 .from_bytes = (size_t)r->inputs * NUMBER_BYTES};
	return n;
}

/* elementwise_kernel(int n, functor, pointers): the result, then what it is computed from. */
enum { PARAM_N, PARAM_FUNCTOR, PARAM_POINTERS };
enum { COMPARE_GE, COMPARE_GT, COMPARE_LE, COMPARE_LT };

static struct numbers *elementwise(const struct sim_func *f, enum sim_known kind, void **params)
{
	/* CUDAFunctor_add {factor}, CUDAFunctorOnSelf_add {scalar, factor}, CompareFunctor {int} */
	size_t inputs = kind == SIM_KNOWN_ADD_SCALAR ? 1 : 2, bytes,
	       functor = kind == SIM_KNOWN_COMPARE ? sizeof(int) : 16 / inputs;
	const unsigned char *given = params[PARAM_FUNCTOR];
	struct numbers *n;
	int count;

	memcpy(&count, params[PARAM_N], sizeof(count));
	if (!param_is(f, PARAM_N, sizeof(count)) || !param_is(f, PARAM_FUNCTOR, functor) ||
	    !param_is(f, PARAM_POINTERS, (1 + inputs) * sizeof(sim_addr)) || count < 1 || count > NUMBERS_MAX)
		return NULL;
	n = numbers_new(kind, 1);
	if (!n)
		return NULL;
	bytes = (size_t)count * NUMBER_BYTES;
	n->piece[0] =
		(struct sim_piece){.to_bytes = kind == SIM_KNOWN_COMPARE ? (size_t)count : bytes, .from_bytes = bytes};
	memcpy(&n->piece[0].to, params[PARAM_POINTERS], sizeof(sim_addr));
	memcpy(n->piece[0].from, (char *)params[PARAM_POINTERS] + sizeof(sim_addr), inputs * sizeof(sim_addr));
	if (kind == SIM_KNOWN_ADD)
		memcpy(&n->factor, given, sizeof(n->factor));
	else
		memcpy(&n->scalar, given, kind == SIM_KNOWN_COMPARE ? sizeof(int) : sizeof(n->scalar));
	if (kind == SIM_KNOWN_ADD_SCALAR)
		memcpy(&n->factor, given + sizeof(n->scalar), sizeof(n->factor));
	return n;
}

static bool compare(int64_t how, int64_t a, int64_t b)
{
	switch (how) {
	case COMPARE_GE: return a >= b;
	case COMPARE_GT: return a > b;
	case COMPARE_LE: return a <= b;
	default: return a < b;
	}
}

/* They wrap around, as on the GPU. */
static int64_t plus(int64_t a, int64_t factor, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)factor * (uint64_t)b);
}

static int64_t reduced(enum sim_known kind, const int64_t *from, size_t count)
{
	int64_t all = from[0];

	for (size_t i = 1; i < count; i++) {
		if (kind == SIM_KNOWN_SUM)
			all = plus(all, 1, from[i]);
		else if (kind == SIM_KNOWN_MAX ? from[i] > all : from[i] < all)
			all = from[i];
	}
	return all;
}

static void compute(const struct numbers *n, const struct sim_piece *p)
{
	const int64_t *a = (const int64_t *)(uintptr_t)p->from[0], *b = (const int64_t *)(uintptr_t)p->from[1];
	int64_t *to = (int64_t *)(uintptr_t)p->to;

	for (size_t i = 0; i < p->from_bytes / NUMBER_BYTES; i++)
		if (n->kind == SIM_KNOWN_COMPARE)
			((unsigned char *)to)[i] = compare(n->scalar, a[i], b[i]);
		else
			to[i] = plus(a[i], n->factor, n->kind == SIM_KNOWN_ADD ? b[i] : n->scalar);
}

static void run_piece(const struct numbers *n, const struct sim_piece *p)
{
	void *to = (void *)(uintptr_t)p->to;
	const void *from = (const void *)(uintptr_t)p->from[0];

	switch (n->kind) {
	case SIM_KNOWN_JOIN: memcpy(to, from, p->to_bytes); break;
	case SIM_KNOWN_SUM:
	case SIM_KNOWN_MAX:
	case SIM_KNOWN_MIN: *(int64_t *)to = reduced(n->kind, from, p->from_bytes / NUMBER_BYTES); break;
	default: compute(n, p); break;
	}
}

static void run(void *data)
{
	struct numbers *n = data;

	for (size_t i = 0; i < n->pieces; i++)
		run_piece(n, &n->piece[i]);
	free(n);
}

bool sim_numbers_op(const struct sim_func *f, enum sim_known kind, const unsigned int grid[3], void **params,
		    struct sim_op *op)
{
	struct numbers *n = NULL;

	if (!params)
		return false;
	if (kind == SIM_KNOWN_JOIN)
		n = join(f, grid[1], params);
	else if (kind == SIM_KNOWN_SUM || kind == SIM_KNOWN_MAX || kind == SIM_KNOWN_MIN)
		n = reduce(f, kind, params);
	else
		n = elementwise(f, kind, params);
	if (!n || !sim_contents_compute(n->piece, n->pieces)) {
		free(n);
		return false;
	}
	memset(op, 0, offsetof(struct sim_op, params));
	op->kind = SIM_OP_HOST;
	op->u.host.fn = run;
	op->u.host.data = n;
	op->param_bytes = 0;
	return true;
}
