/* SPDX-License-Identifier: Apache-2.0
 * Launches: the hot path. One slot in the thread's ring, written in place, its sequence number last.
 */
#include <string.h>

#include "recorder/guard/rec_guard.h"

/* Nearly all parameters are a pointer, a number or a few of those: not worth a call to memcpy. */
static inline void copy_param(uint8_t *to, const void *from, uint32_t size)
{
	uint64_t head[2], tail[2];

	if (likely(size == 8)) {
		memcpy(to, from, 8);
	} else if (size == 4) {
		memcpy(to, from, 4);
	} else if (size >= 16 && size <= 32) {	/* two halves that may overlap */
		memcpy(head, from, 16);
		memcpy(tail, (const char *)from + size - 16, 16);
		memcpy(to, head, 16);
		memcpy(to + size - 16, tail, 16);
	} else {
		memcpy(to, from, size);
	}
}

struct buffer { const void *bytes; size_t size; };

/* {1, buffer, 2, &size, 0}: CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END */
static struct buffer extra_buffer(void **extra)
{
	struct buffer b = {NULL, 0};

	for (int i = 0; i < 6 && extra[i]; i += 2) {
		if (extra[i] == (void *)1)
			b.bytes = extra[i + 1];
		else if (extra[i] == (void *)2)
			b.size = *(const size_t *)extra[i + 1];
	}
	return b;
}

/* Copies the kernel's parameters to the offsets at which the device sees them. kernelParams has no length: only
 * with the layout from the driver is it safe to read. */
static __attribute__((noinline)) HOT uint16_t copy_params(uint8_t *to, uint32_t function, void **params, void **extra)
{
	const struct cw_layout *layout = function_layout(function);
	uint32_t end = 0;

	if (params && layout) {
		for (uint32_t i = 0; i < layout->n; i++) {
			uint32_t off = layout->param[i].off, size = layout->param[i].size;

			if (off + size > CW_PARAM_BYTES)
				size = off < CW_PARAM_BYTES ? CW_PARAM_BYTES - off : 0;
			if (!size)
				break;
			copy_param(to + off, params[i], size);
			end = off + size;
		}
	} else if (extra) {
		struct buffer b = extra_buffer(extra);

		if (b.bytes && b.size) {
			end = b.size < CW_PARAM_BYTES ? (uint32_t)b.size : CW_PARAM_BYTES;
			memcpy(to, b.bytes, end);
		}
	}
	return (uint16_t)end;
}

static inline struct cw_launch *next_slot(struct cw_ring *r)
{
	return (struct cw_launch *)(r + 1) + (r->head & (CW_RING_LAUNCHES - 1));
}

static inline struct cw_launch *take_slot(struct cw_ring *r, uint64_t *seq)
{
	struct cw_launch *s = next_slot(r);

	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	*seq = ++r->head;
	return s;
}

static __attribute__((noinline)) void fail_launch(const struct launch_note *l, uint32_t function)
{
	struct cw_failure f;

	function_learn(function, false);
	fail_init(&f, CW_SRC_DRIVER, l->result);
	f.api = l->api;
	f.n_args = 1;
	f.arg[0] = l->function;
	f.is_launch = 1;
	f.func = function;
	memcpy(f.grid, l->grid, sizeof(f.grid));
	memcpy(f.block, l->block, sizeof(f.block));
	memcpy(f.cluster, l->cluster, sizeof(f.cluster));
	f.shared = l->shared;
	f.stream = l->stream;
	f.cooperative = !!(l->flags & CW_LAUNCH_COOPERATIVE);
	if (!code_is_sticky(l->result))
		fail_add_function(&f, l->function);
	fail_note(&f);
}

/* The first successful launch: now query the layout. And code that is not from PyTorch or NVIDIA may fail later than the driver
 * says. */
static inline void launched_unsettled(uint32_t function, int device, CUresult result)
{
	if (unlikely(function && !shared_get(&rec.functions[function].launches)) && !result)
		function_learn(function, true);
	if (!function_stock(function))
		look_later(device);
}

/* Word by word: with memcpy or a loop, the compiler would first put the note into memory. */
#define COPY3(to, from) ((to)[0] = (from)[0], (to)[1] = (from)[1], (to)[2] = (from)[2])

enum look { LOOK_NO, LOOK_YES, LOOK_UNKNOWN };

/* Guard mode looks at all parameters, however large they are: kernels over lists of tensors get their addresses in one of 4 KB. */
static enum look params_look(struct guard_launch *l, void **params, void **extra,
			     bool (*look)(const struct guard_launch *l, const void *bytes, size_t n))
{
	const struct cw_layout *layout = params ? function_layout(l->function) : NULL;
	struct buffer b = {NULL, 0};

	if (params && !layout)
		return LOOK_UNKNOWN;
	for (l->param = 0; layout && l->param < layout->n; l->param++)
		if (layout->param[l->param].size >= 8 && look(l, params[l->param], layout->param[l->param].size))
			return LOOK_YES;
	l->param = 0;
	if (!params && extra)
		b = extra_buffer(extra);
	return b.bytes && look(l, b.bytes, b.size) ? LOOK_YES : LOOK_NO;
}

static bool is_given(const struct guard_launch *l, const void *bytes, size_t n)
{
	(void)l;
	return guard_give(bytes, n, GIVEN);
}

static __attribute__((noinline)) void guard_captured(uint32_t function, uint64_t stream, void **params, void **extra)
{
	struct guard_launch l = {.function = function, .capture = capture_of(stream)};

	if (l.capture)
		params_look(&l, params, extra, guard_capture);
}

/* After the launch, when the layout is known. */
static __attribute__((noinline)) void guard_launched(uint32_t function, void **params, void **extra)
{
	struct guard_launch l = {.function = function};

	if (guard.values && params_look(&l, params, extra, is_given) == LOOK_UNKNOWN)
		guard_unseen();
}

static __attribute__((noinline)) void capture_launched(struct cw_launch *s, uint64_t stream, void **params, void **extra)
{
	capture_keep(s, stream);
	if (guard_on())
		guard_captured(s->func, stream, params, extra);
}

static inline __attribute__((always_inline)) void put_launch(const struct launch_note *l)
{
	struct rec_thread *t = rec_self;
	struct cw_ring *r = likely(t->launches) ? t->launches : rec_launch_ring(t);
	uint32_t function = function_number(l->function);
	struct cw_launch *s;
	uint32_t end;
	uint64_t seq;

	if (unlikely(l->result)) {
		const struct launch_note copy = *l;	/* so that the note itself can stay in registers */

		fail_launch(&copy, function);
	}
	if (unlikely(!r))
		return;
	s = take_slot(r, &seq);
	s->ticks = rec_ticks();
	s->stream = l->stream;
	s->func = function;
	s->stack = unlikely(rec.waits) ? t->entry_stack : stack_here();
	COPY3(s->grid, l->grid);
	COPY3(s->block, l->block);
	s->shared = l->shared;
	s->result = l->result;
	s->tid = t->tid;
	s->flags = l->flags | CW_LAUNCH_ON(thread_device(t));
	s->forward_stack = s->node_name = 0;
	if (unlikely(t->node_depth) && torch_backward(t, &s->forward_stack, &s->node_name))
		s->flags |= CW_LAUNCH_IN_BACKWARD;
	if (unlikely(!function_settled(function)))
		launched_unsettled(function, t->device, l->result);
	s->n_param = copy_params(s->params, function, l->params, l->extra);
	if (guard_on())
		guard_launched(function, l->params, l->extra);
	if (unlikely(atomic_load_explicit(&rec.captures, memory_order_relaxed)))
		capture_launched(s, l->stream, l->params, l->extra);
	shared_set(&s->seq, seq);
	/* the next launch will write here: prefetch while the program does something else */
	end = s->n_param;
	s = next_slot(r);
	__builtin_prefetch(s, 1);
	for (uint32_t line = 64; line < offsetof(struct cw_launch, params) + end + 64; line += 64)
		__builtin_prefetch((char *)s + line, 1);
}

/* Prefetch before the driver's part, which takes long enough for all of this to arrive. Always inline: gcc drops a call
 * of a function that does nothing but prefetch. */
static inline __attribute__((always_inline)) void expect_launch(uint64_t function)
{
	const struct cw_ring *r = rec_self->launches;

	__builtin_prefetch(&rec.function_index[(uint32_t)(function_key(function) >> 20) & (FUNCTION_SLOTS - 1)]);
	if (likely(r))
		__builtin_prefetch(r, 1);
}

/* Guard mode: before the launch. A kernel's first launch comes before its layout is known. */
static __attribute__((noinline)) void guard_params(uint64_t function, const uint32_t *grid, void **params, void **extra)
{
	struct guard_launch l = {.grid = grid};
	int saved = *rec_self->error;

	if (!guard_pending())
		return;
	rec_nesting = 2;
	l.function = function_number(function);
	if (params_look(&l, params, extra, guard_points_to_freed) != LOOK_NO)
		guard_wait_for_freed();
	rec_nesting = 1;
	*rec_self->error = saved;
}

static __attribute__((noinline)) void guard_graph(void)
{
	if (!guard_pending())
		return;
	rec_nesting = 2;
	guard_flush(false);	/* what is in a graph was not looked at */
	rec_nesting = 1;
}

#define GRID ((const uint32_t[]){gx, gy, gz})
#define expect_params(f, grid, params, extra) \
	do { \
		expect_launch(f); \
		if (guard_on()) \
			guard_params(f, grid, params, extra); \
	} while (0)

void note_launch(const struct launch_note *l)
{
	put_launch(l);
}

void note_graph_launch(uint64_t exec, uint64_t stream, CUresult result)
{
	const uint64_t arg[] = {exec, stream};
	struct rec_thread *t = rec_self;
	struct cw_ring *r = rec_launch_ring(t);
	struct cw_launch *s;
	uint64_t seq;

	if (unlikely(result))
		fail_driver(API_cuGraphLaunch, result, arg, 2);
	if (!r)
		return;
	s = take_slot(r, &seq);
	memset((char *)s + sizeof(s->seq), 0, offsetof(struct cw_launch, params) - sizeof(s->seq));
	s->ticks = rec_ticks();
	s->stream = stream;
	s->stack = stack_here();
	s->result = result;
	s->tid = t->tid;
	s->flags = CW_LAUNCH_GRAPH | CW_LAUNCH_ON(thread_device(t));
	s->n_param = sizeof(exec);
	memcpy(s->params, &exec, sizeof(exec));
	shared_set(&s->seq, seq);
	if (guard_on() && guard.values && !capture_made(exec))
		guard_unseen();
	if (atomic_load_explicit(&look_graphs, memory_order_relaxed))
		look_later(t->device);
}

struct launch_attribute {		/* CUlaunchAttribute */
	uint32_t id;
	uint32_t pad;
	union { uint32_t word[16]; } value;
};

struct launch_config {			/* CUlaunchConfig */
	uint32_t grid[3], block[3], shared;
	uint64_t stream;
	const struct launch_attribute *attrs;
	uint32_t n_attrs;
};

#define ATTR_COOPERATIVE 2
#define ATTR_CLUSTER	 4

static inline void launched_ex(const char *name, const struct launch_config *c, uint64_t f, void **params, void **extra,
			       CUresult r)
{
	struct launch_note l = { .api = API_cuLaunchKernelEx, .result = r, .function = f,
				.params = params,
				.extra = extra,
				.flags = CW_LAUNCH_EX};

	if (c) {
		memcpy(l.grid, c->grid, sizeof(l.grid));
		memcpy(l.block, c->block, sizeof(l.block));
		l.shared = c->shared;
		l.stream = stream_meant(name, c->stream);
		for (uint32_t i = 0; c->attrs && i < c->n_attrs; i++) {
			if (c->attrs[i].id == ATTR_COOPERATIVE && c->attrs[i].value.word[0])
				l.flags |= CW_LAUNCH_COOPERATIVE;
			if (c->attrs[i].id == ATTR_CLUSTER)
				memcpy(l.cluster, c->attrs[i].value.word, sizeof(l.cluster));
		}
	}
	put_launch(&l);
}

/* One template for all four: `note` records the result r. */
#define WRAP(name, api, params_list, args_list, expect, note)                                               \
	EXPORT CUresult name params_list;                                                             \
	EXPORT HOT CUresult name params_list                                                          \
	{                                                                                             \
		CUresult(*real) params_list = door(ENTRY_##name); \
		bool record;                                                                          \
		CUresult r;                                                                           \
		int saved;                                                                            \
\
		if (unlikely(!real))                                                                  \
			return CU_NO_DRIVER;                                                          \
		record = rec_enter();                                                                 \
		if (likely(record)) {                                                                 \
			wait_begin(api);                                                              \
			expect;                                                                       \
		}                                                                                     \
		r = failed_before();                                                                  \
		if (likely(!r))                                                                       \
			r = real args_list;                                                           \
		if (unlikely(r == CU_OUT_OF_MEMORY) && record && guard_on() && guard_make_room())     \
			r = real args_list;	/* it loads code, or needs more local memory */        \
		if (likely(record))                                                                   \
			wait_end(r);                                                                  \
		if (likely(record)) {                                                                 \
			saved = *rec_self->error;                                                  \
			rec_nesting = 2;                                                              \
			rec_self->caller = __builtin_return_address(0);                               \
			if (unlikely(r))                                                              \
				r = dump_check(r);                                                    \
			note;                                                                         \
			rec_leave();                                                                  \
			*rec_self->error = saved;                                                  \
		}                                                                                     \
		return r;                                                                             \
	}

#define DIMS	 uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared
#define NOTE(put, name, which, extra_list, flag)                                                      \
	put(&(struct launch_note){ .api = API_##which, .result = r, .function = f,            \
				  .grid = {gx, gy, gz}, \
				  .block = {bx, by, bz}, \
				  .shared = shared, \
				  .stream = stream_meant(#name, stream), \
				  .params = params, \
				  .extra = extra_list, \
				  .flags = flag})

#define WRAP_LAUNCH(name)                                                                             \
	WRAP(name, API_cuLaunchKernel, (uint64_t f, DIMS, uint64_t stream, void **params, void **extra), \
	     (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), expect_params(f, GRID, params, extra), \
	     NOTE(put_launch, name, cuLaunchKernel, extra, 0))
#define WRAP_COOPERATIVE(name)                                                                        \
	WRAP(name, API_cuLaunchCooperativeKernel, (uint64_t f, DIMS, uint64_t stream, void **params), \
	     (f, gx, gy, gz, bx, by, bz, shared, stream, params), expect_params(f, GRID, params, NULL), \
	     NOTE(note_launch, name, cuLaunchCooperativeKernel, NULL, CW_LAUNCH_COOPERATIVE))
#define WRAP_EX(name)                                                                                 \
	WRAP(name, API_cuLaunchKernelEx, (const struct launch_config *c, uint64_t f, void **params, void **extra), \
	     (c, f, params, extra), expect_params(f, c->grid, params, extra), \
	     launched_ex(#name, c, f, params, extra, r))
#define WRAP_GRAPH(name)                                                                              \
	WRAP(name, API_cuGraphLaunch, (uint64_t exec, uint64_t stream), (exec, stream), if (guard_on()) guard_graph(), \
	     note_graph_launch(exec, stream_meant(#name, stream), r))

WRAP_LAUNCH(cuLaunchKernel)
WRAP_LAUNCH(cuLaunchKernel_ptsz)
WRAP_COOPERATIVE(cuLaunchCooperativeKernel)
WRAP_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
WRAP_EX(cuLaunchKernelEx)
WRAP_EX(cuLaunchKernelEx_ptsz)
WRAP_GRAPH(cuGraphLaunch)
WRAP_GRAPH(cuGraphLaunch_ptsz)
