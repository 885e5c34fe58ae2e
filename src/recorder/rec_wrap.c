/* SPDX-License-Identifier: Apache-2.0
 * The wrappers, generated from kb/cuda_api.def, and what each class of call leaves in the recording.
 *
 * All arguments of the wrapped functions are integers or pointers, so a wrapper is "n words in, one
 * code out". Handlers run after the real call, except where the order matters: memory is removed from
 * the table before it is freed, because another thread may get its address at once.
 */
#include <string.h>

#include "recorder/guard/rec_guard.h"
#include "rec_site.h"

struct call {
	enum api api;
	uint32_t count;
	const uint64_t *a;
	CUresult r;
	uint64_t out;			/* what the call wrote, by its class; 0: it failed */
	struct cw_allocation held;	/* FREE: what was removed from the table */
	bool done;			/* guard mode has done it: the driver is not asked */
};

static void note(const struct call *c, uint64_t out)
{
	note_call(&(struct call_note){.api = c->api, .result = c->r, .arg = c->a, .n_args = c->count, .out = out});
}

/* Before the call: each returns 0, or the error with which the call fails: once a kernel has failed, the driver returns its
 * error from every call that involves GPU work, and we must do so when the driver does not (rec_dump.c). */

static CUresult take(struct call *c)
{
	if (unlikely(failed_before()))
		return failed_before();
	if (!driver_alloc_take(c->a[0], &c->held))
		c->held.addr = 0;
	return 0;
}

#define before_FREEHOST	 take

/* Memory that guard mode gave is not the driver's to free. */
static CUresult before_FREE(struct call *c)
{
	CUresult r = take(c);

	if (guard_on() && !r)
		c->done = guard_free(c->a[0], GUARD_AT_ONCE);
	return r;
}

static CUresult before_FREEASYNC(struct call *c)
{
	CUresult r = take(c);

	if (guard_on() && !r)
		c->done = guard_free(c->a[0], c->a[1]);
	return r;
}

/* The address goes where the driver would have put it. During a capture the driver answers as always. */
static CUresult guarded(struct call *c, uint64_t bytes, uint64_t stream, uint64_t pool)
{
	uint64_t addr = 0;

	if (unlikely(failed_before()))
		return failed_before();
	if (guard_on() && c->a[0] && !atomic_load(&rec.captures))
		addr = guard_alloc(&(struct guard_request){.size = bytes, .stream = stream, .memory_pool = pool});
	if (addr)
		*(uint64_t *)c->a[0] = addr;
	c->done = addr != 0;
	return 0;
}

/* The pool that memory without one comes from. */
static uint64_t pool_now(void)
{
	uint64_t pool = 0;

	if (!guard_on() || !drv.cuDeviceGetMemPool || drv.cuDeviceGetMemPool(&pool, current_device()) != 0)
		return 0;
	return pool;
}

#define PITCH 512u	/* what the driver rounds rows to */

static CUresult before_ALLOCPITCH(struct call *c)
{
	uint64_t pitch = (c->a[2] + PITCH - 1) & ~(uint64_t)(PITCH - 1);
	CUresult r = c->a[1] && c->a[2] && c->a[3] ? guarded(c, pitch * c->a[3], GUARD_AT_ONCE, 0) : failed_before();

	if (c->done)
		*(uint64_t *)c->a[1] = pitch;
	return r;
}

static CUresult before_ALLOC(struct call *c)	  { return guarded(c, c->a[1], GUARD_AT_ONCE, 0); }
static CUresult before_ALLOCASYNC(struct call *c) { return guarded(c, c->a[1], c->a[2], pool_now()); }
static CUresult before_ALLOCPOOL(struct call *c)  { return guarded(c, c->a[1], c->a[3], c->a[2]); }

/* A range and the first mapping in it have the same address: the range is stored at address + 1. */
static CUresult before_UNRESERVE(struct call *c)
{
	if (unlikely(failed_before()))
		return failed_before();
	if (!driver_alloc_take(c->a[0] + 1, &c->held))
		c->held.addr = 0;
	return 0;
}

static CUresult before_STREAMWAIT(struct call *c)
{
	if (guard_on() && !failed_before())
		guard_stream_waits(c->a[0]);
	return failed_before();
}

static CUresult before_STREAMGONE(struct call *c)
{
	if (guard_on() && !failed_before())
		guard_stream_gone(c->a[0]);
	return failed_before();
}

static CUresult before_RESET(struct call *c)
{
	if (guard_on() && !failed_before())
		guard_device_gone((int)c->a[0]);
	return failed_before();
}

static CUresult before_UNLOAD(struct call *c)
{
	(void)c;
	atomic_fetch_add(&rec.module_generation, 1);
	return failed_before();
}

/* A call that involves GPU work can wait for the GPU: copies, frees and even launches do when a queue is full. So can
 * one that loads code, even if it only looks up a function that is loaded lazily. But that can also take minutes of
 * just-in-time compilation, so `cuwhy run` treats these (DOES_LOAD) differently. */
#define AS_IS(class) static inline CUresult answer_##class(CUresult r, const uint64_t *a) { (void)a; return r; }
#define WAITS(class) enum { WAITS_##class = 1, SILENT_##class = 0 }; AS_IS(class)
#define NEVER(class) enum { WAITS_##class = 0, SILENT_##class = 0 }; AS_IS(class)
#define REFUSED(class) static inline CUresult before_##class(struct call *c) { (void)c; return failed_before(); }
#define WORK(class) WAITS(class) REFUSED(class)
#define FREELY(class) static inline CUresult before_##class(struct call *c) { (void)c; return 0; }
#define ASKS(class) NEVER(class) FREELY(class)
#define SILENT(class) enum { WAITS_##class = 0, SILENT_##class = 1 }; AS_IS(class) FREELY(class)
#define MEMORY(class) enum { WAITS_##class = 0, SILENT_##class = 1 }; FREELY(class)
#define LAZY(class) WAITS(class) FREELY(class)
#define LAST(class) NEVER(class) static inline CUresult before_##class(struct call *c) { (void)c; return dump_before_release(); }
#define OWN(class)
#define CLASS(name, before, writes, does, text) before(name)
#include "kb/cuda_api.def"

static inline uint64_t int_at(uint64_t pointer)
{
	return pointer ? *(const uint32_t *)pointer : 0;
}

static inline uint64_t word_at(uint64_t pointer)
{
	return pointer ? *(const uint64_t *)pointer : 0;
}

#define NOTHING 0
#define INT(n)	int_at(c->a[n])
#define WORD(n) word_at(c->a[n])
#define CLASS(name, before, writes, does, text)                       \
	static inline uint64_t written_##name(const struct call *c)   \
	{                                                             \
		return c->r ? 0 : (writes);                           \
	}
#include "kb/cuda_api.def"

#define CLASS(name, before, writes, does, text) enum { FREES_##name = ((does)&DOES_TAKE) && !((does)&DOES_HOST) };
#include "kb/cuda_api.def"

static void after_INIT(struct call *c)
{
	if (rec.h->init_result == CW_UNKNOWN || (rec.h->init_result && !c->r))
		rec.h->init_result = c->r;
	if (c->r == 0) {
		device_facts();
		dump_start();
		hang_start();
		reads_start();
		words_start();
		copies_start();
	}
	note(c, 0);
}

static void after_DEVICE(struct call *c)
{
	note(c, c->out);
}

static void after_CONTEXT(struct call *c)
{
	note(c, c->out);
	context_made(c->out, (int)c->a[c->count - 1]);
	rec_self->device = DEVICE_ASK;
}

static void after_CURRENT(struct call *c)
{
	rec_self->device = DEVICE_ASK;
	if (unlikely(c->r))
		note(c, 0);
}

static void after_PLAIN(struct call *c)
{
	note(c, 0);
}

#define after_STREAMWAIT after_PLAIN

static void after_STREAMGONE(struct call *c)
{
	if (!c->r)
		capture_abandon(c->a[0]);
	note(c, 0);
}

static void after_EVENT(struct call *c)
{
	rec_event_recorded = true;
	note(c, 0);
}

static void after_RELEASE(struct call *c)
{
	if (c->r == 0)
		look_primary_gone((int)c->a[0], false);
	note(c, 0);
}

static void after_QUIET(struct call *c)
{
	if (unlikely(c->r))
		note(c, 0);
}

#define after_LINK after_QUIET

static void after_PROBE(struct call *c)
{
	if (unlikely(c->r) && code_is_sticky(c->r))
		note(c, 0);
}

#define after_ASKATTR	after_PROBE
#define after_ASKATTRS	after_PROBE
#define after_ASKRANGE	after_PROBE
static void after_SHARE(struct call *c)
{
	struct guarded about;

	if (guard_on() && guard_find(c->a[1], &about))
		guard_refuse_sharing();
	after_QUIET(c);
	if (!c->r && copies_on())
		copies_shared();
}

#define after_ASKPOOL	after_QUIET
#define after_SETPOOL	after_QUIET

static void after_POLL(struct call *c)
{
	if (!c->r)
		c->r = dump_check_again();
	if (!c->r)
		number_arrived();
	wait_poll(c->api, c->r);
	after_PROBE(c);
}

static void after_POP(struct call *c)
{
	rec_self->device = DEVICE_ASK;
	after_PROBE(c);
}

#define ALREADY_ENABLED 704

static void after_PEER(struct call *c)
{
	if (c->r == 0 || c->r == ALREADY_ENABLED) {
		context_peer(c->a[0]);
		if (guard_on())
			guard_peer();
	}
	after_PROBE(c);
}

static void after_SYNC(struct call *c)
{
	if (!c->r)
		c->r = check_after_wait();
	if (guard_on() && !c->r)
		guard_waited();
	note(c, 0);
}

static void after_SYNCSTREAM(struct call *c)
{
	after_SYNC(c);
	if (unlikely(rec_self->awaited.bytes) && !c->r)
		number_waited(c->a[0]);
}

#define after_SYNCEVENT	 after_SYNC

/* Copies to the host wait for the work before them, and so do all copies without a stream. */
static void after_COPYWAIT(struct call *c)
{
	bool values = guard_on() && guard.values && !c->r;

	if (values)
		guard_copy(c->api, c->a, c->count);
	after_SYNC(c);
	if (values && !c->r)
		guard_copied(c->a[0], c->a[1], c->a[2], true);
}

/* Of the copies and fills, those from one address to another have these three arguments; guard mode knows its own. */
static void after_COPY(struct call *c)
{
	bool values = guard_on() && guard.values && !c->r;

	if (values)
		guard_copy(c->api, c->a, c->count);
	if (values && c->count >= 3)
		guard_copied(c->a[0], c->a[1], c->a[2], false);
	note(c, 0);
}

static struct copied copied_by(const struct call *c)
{
	return (struct copied){c->a[0], c->a[1], c->a[2], c->count > 3 ? c->a[3] : 0, c->count > 3, false, false};
}

static void keep_copied(const struct call *c, bool to_gpu)
{
	struct copied copied = copied_by(c);

	copied.to_gpu = to_gpu;
	if (copies_on() && !c->r)
		copies_keep(&copied);
}

static void read_number(const struct call *c, bool from_gpu, bool arrived)
{
	struct copied copied = copied_by(c);

	copied.from_gpu = from_gpu;
	if (unlikely(number_single(copied.bytes)) && copies_on() && !c->r)
		number_copied(&copied, arrived);
}

static void after_COPYIN(struct call *c)
{
	after_COPY(c);
	keep_copied(c, true);
}

static void after_COPYOUT(struct call *c)
{
	after_COPY(c);
	read_number(c, true, false);
}

static void after_COPYOUTWAIT(struct call *c)
{
	after_COPYWAIT(c);
	read_number(c, true, true);
}

static void after_COPYANY(struct call *c)
{
	after_COPY(c);
	keep_copied(c, false);
	read_number(c, false, false);
}

static void after_COPYANYWAIT(struct call *c)
{
	after_COPYWAIT(c);
	keep_copied(c, false);
	read_number(c, false, true);
}

static void loaded(struct call *c, const void *image)
{
	note(c, c->out);
	if (!c->r && c->out && !stock_loaded(c->out, image, rec_self->caller))
		look_prepare();
}

static void after_MODULE(struct call *c)     { loaded(c, NULL); }
static void after_MODULEDATA(struct call *c) { loaded(c, (const void *)c->a[1]); }
#define after_LIBRARY after_MODULEDATA

static void after_UNLOAD(struct call *c)
{
	note(c, 0);
}

#define after_FUNCATTR	 after_PLAIN
#define after_KERNELATTR after_PLAIN

/* A launch gets a CUfunction or a CUkernel, and the driver logs an error if we query one as if it were the
 * other: remember which ones are functions. */
static void plain_function(struct call *c)
{
	if (c->r)
		note(c, 0);
	else
		function_is_plain(c->out);
}

static void after_FUNCTIONOF(struct call *c)
{
	plain_function(c);
	if (!c->r)
		function_same_code(c->out, c->a[1]);
}

static void looked_up(struct call *c)
{
	bool stock = stock_code(c->a[1]);

	lookup_found();
	function_looked_up(c->out, (const char *)c->a[2], stock);
	if (!stock)		/* the runtime loads an extension's code before there is a context */
		look_prepare();
	else
		look_prepare_first();
}

static void after_FUNCTION(struct call *c)
{
	plain_function(c);
	if (!c->r)
		looked_up(c);
}

/* Keep the name now: after a fault the driver no longer returns it. */
static void after_KERNEL(struct call *c)
{
	if (c->r)
		note(c, 0);
	else
		looked_up(c);
}

static void after_BEGIN(struct call *c)
{
	note(c, 0);
	if (c->r == 0)
		capture_begin(c->a[0], stack_here());
}

static void after_END(struct call *c)
{
	note(c, c->out);
	capture_end(c->a[0], c->out);
	events_more(CW_MORE_POOL, current_device(), capture_newest());
}

static void after_GRAPHMAKE(struct call *c)
{
	note(c, c->out);
	if (c->r == 0)
		capture_instantiated(c->a[1], c->out);
}

static void after_GRAPHGONE(struct call *c)
{
	note(c, 0);
	if (c->r == 0)
		capture_graph_gone(c->a[0]);
	if (c->r == 0 && guard_on())
		guard_graph_gone();
}

static void after_EXECGONE(struct call *c)
{
	note(c, 0);
	if (c->r == 0)
		capture_exec_gone(c->a[0]);
	if (c->r == 0 && guard_on())
		guard_graph_gone();
}

/* PyTorch frees its cache after that, and asks again. */
static void refused(const struct call *c, uint64_t bytes)
{
	if (c->r == CU_OUT_OF_MEMORY)
		events_more(CW_MORE_REFUSED, current_device(), bytes);
}

static void gave(struct call *c, uint64_t bytes, enum cw_memory kind, int device, uint64_t extra)
{
	note(c, c->out);
	if (c->out)
		driver_alloc_add(c->out, bytes, kind, device, extra);
	else if (kind == CW_MEM_DEVICE)
		refused(c, bytes);
}

static void after_ALLOC(struct call *c)	       { gave(c, c->a[1], CW_MEM_DEVICE, current_device(), 0); }
static void after_ALLOCMANAGED(struct call *c) { gave(c, c->a[1], CW_MEM_MANAGED, current_device(), 0); }
static void after_ALLOCASYNC(struct call *c)   { gave(c, c->a[1], CW_MEM_ASYNC, current_device(), c->a[2]); }
static void after_ALLOCPOOL(struct call *c)    { gave(c, c->a[1], CW_MEM_ASYNC, current_device(), c->a[3]); }

/* The same flag of two calls: memory that is slow to read, and memory of a device. */
enum { UNREADABLE = 4 };

static void after_ALLOCHOST(struct call *c)
{
	gave(c, c->a[1], CW_MEM_PINNED, -1, 0);
	if (unlikely(c->count > 2 && c->a[2] & UNREADABLE))
		copies_not_of_pinned();
}

static void after_RESERVE(struct call *c)
{
	note(c, c->out);
	if (c->out)
		driver_alloc_add(c->out + 1, c->a[1], CW_MEM_RESERVED, -1, 0);
}

static void after_ALLOCPITCH(struct call *c)
{
	uint64_t pitch = c->r ? 0 : word_at(c->a[1]);

	gave(c, pitch * c->a[3], CW_MEM_DEVICE, current_device(), 0);
}

static void after_HOSTREGISTER(struct call *c)
{
	note(c, 0);
	if (unlikely(c->a[2] & UNREADABLE))
		copies_not_of_pinned();
	if (c->r == 0)
		driver_alloc_add(c->a[0], c->a[1], CW_MEM_REGISTERED, -1, 0);
}

/* The memory exists, but has no address until it is mapped. */
static void after_CREATE(struct call *c)
{
	note(c, c->out);
	refused(c, c->a[1]);
}

static void after_MAP(struct call *c)
{
	note(c, c->a[0]);
	if (c->r == 0)
		driver_alloc_add(c->a[0], c->a[1], CW_MEM_VMM, current_device(), c->a[3]);
}

/* A free that failed freed nothing. */
static void freed(struct call *c)
{
	if (unlikely(c->r) && c->held.addr)
		driver_alloc_put(&c->held);
	else if (c->held.addr)
		driver_alloc_freed(&c->held);
	note(c, c->held.size);
}

#define after_FREE	freed
#define after_FREEASYNC freed
#define after_FREEHOST	freed
#define after_UNRESERVE freed

/* One call may unmap several adjacent mappings. The range stays reserved, so no other thread can get these
 * addresses meanwhile. */
static void after_UNMAP(struct call *c)
{
	if (c->r == 0)
		driver_alloc_take_range(c->a[0], c->a[1]);
	note(c, 0);
}

static void after_RESET(struct call *c)
{
	if (c->r == 0) {
		driver_alloc_take_device((int)c->a[0]);
		look_primary_gone((int)c->a[0], true);
	}
	note(c, 0);
}

/* What the context held is gone with it, and the driver does not report what that was. */
static void after_DESTROY(struct call *c)
{
	if (c->r == 0) {
		driver_alloc_inexact();
		look_context_gone(c->a[0]);
	}
	rec_self->device = DEVICE_ASK;
	note(c, 0);
}

#define P0  void
#define P1  uint64_t a0
#define P2  P1, uint64_t a1
#define P3  P2, uint64_t a2
#define P4  P3, uint64_t a3
#define P5  P4, uint64_t a4
#define P6  P5, uint64_t a5
#define P7  P6, uint64_t a6
#define P8  P7, uint64_t a7
#define A0
#define A1  a0
#define A2  A1, a1
#define A3  A2, a2
#define A4  A3, a3
#define A5  A4, a4
#define A6  A5, a5
#define A7  A6, a6
#define A8  A7, a7

/* Questions about memory that guard mode gave are about the allocation, not about its pages. */
enum { RANGE_START = 11, RANGE_SIZE = 12 };	/* CU_POINTER_ATTRIBUTE_RANGE_* */

static void attribute_answer(int attribute, uint64_t *value, const struct guarded *about)
{
	if (value && attribute == RANGE_START)
		*value = about->addr;
	if (value && attribute == RANGE_SIZE)
		*value = about->size;
}

static CUresult answer_ASKATTR(CUresult r, const uint64_t *a)
{
	struct guarded about;

	if (!r && guard_find(a[2], &about))
		attribute_answer((int)a[1], (uint64_t *)a[0], &about);
	return r;
}

static CUresult answer_ASKATTRS(CUresult r, const uint64_t *a)
{
	struct guarded about;

	if (r || !a[1] || !a[2] || !guard_find(a[3], &about))
		return r;
	for (uint32_t i = 0; i < (uint32_t)a[0]; i++)
		attribute_answer(((const int *)a[1])[i], ((uint64_t **)a[2])[i], &about);
	return r;
}

/* What is used or reserved, now or at most, in 8 bytes. Guarded memory has a pool's name only. */
enum { POOL_RESERVED = 5, POOL_USED_HIGH = 8 };

static CUresult answer_ASKPOOL(CUresult r, const uint64_t *a)
{
	uint32_t what = (uint32_t)a[1];

	if (!r && a[2] && what >= POOL_RESERVED && what <= POOL_USED_HIGH)
		*(uint64_t *)a[2] += guard_pool_bytes(a[0], what % 2 == 0, false);
	return r;
}

static CUresult answer_SETPOOL(CUresult r, const uint64_t *a)
{
	uint32_t what = (uint32_t)a[1];

	if (!r && what >= POOL_RESERVED && what <= POOL_USED_HIGH)
		guard_pool_bytes(a[0], true, true);
	return r;
}

static CUresult answer_ASKRANGE(CUresult r, const uint64_t *a)
{
	struct guarded about;

	if (r || !guard_find(a[2], &about))
		return r;
	if (a[0])
		*(uint64_t *)a[0] = about.addr;
	if (a[1])
		*(uint64_t *)a[1] = about.size;
	return r;
}

/* A call of which a success is not recorded has failed. */
static __attribute__((noinline)) CUresult silent_failed(struct call *c, void (*after)(struct call *), const void *caller)
{
	int saved;

	if (!rec_enter_late())
		return c->r;
	rec_nesting = 2;
	rec_self->caller = caller;
	saved = *rec_self->error;
	c->r = dump_check(c->r);
	after(c);
	rec_self->log_len = 0;
	rec_leave();
	*rec_self->error = saved;
	return c->r;
}

/* PyTorch asks for the current device before and after every launch: what is asked that often must cost next to
 * nothing. So a call of which a success is not recorded only marks that the thread is inside it. */
#define PASS(number, n, class)                                                                   \
	if (unlikely(rec_nesting)) \
		return real(A##n); \
	rec_nesting = 1; \
	r = real(A##n); \
	if (guard_on()) \
		r = answer_##class(r, (const uint64_t[n + 1]){A##n}); \
	rec_nesting = 0; \
	if (unlikely(r)) { \
		const uint64_t a[n + 1] = {A##n}; \
		struct call c = {.api = number, .count = n, .a = a, .r = r}; \
\
		r = silent_failed(&c, after_##class, __builtin_return_address(0)); \
	} \
	return r;

static inline __attribute__((always_inline)) void name_stream(const char *function, const char *args, uint64_t *a,
							      size_t n)
{
	const char *at = stream_meant(function, 0) ? strstr(args, "stream:h") : NULL;
	size_t i = 0;

	for (const char *s = args; at && s < at; s++)
		i += *s == ' ';
	if (at && i < n)
		a[i] = stream_meant(function, a[i]);
}

#define RECORD(number, name, n, class, args)                                                     \
	uint64_t a[n + 1] = {A##n}; \
	struct call c = {.api = number, .count = n, .a = a}; \
	int saved; \
\
	if (!rec_enter()) \
		return FREES_##class && guard_on() && guard_free(a[0], GUARD_AT_ONCE) ? 0 : real(A##n); \
	rec_self->caller = __builtin_return_address(0); \
	name_stream(#name, args, a, n); \
	c.r = before_##class(&c); \
	if (WAITS_##class) \
		wait_begin(number); \
	if (likely(!c.r && !c.done)) \
		c.r = real(A##n); \
	if (unlikely(c.r == CU_OUT_OF_MEMORY) && guard_on() && !failed_before() && guard_make_room()) \
		c.r = real(A##n); \
	if (unlikely(c.r == CU_OUT_OF_MEMORY) && guard_on()) \
		guard_out_of_memory(); \
	if (WAITS_##class) \
		wait_end(c.r); \
	rec_nesting = 2; \
	saved = *rec_self->error; \
	if (unlikely(c.r)) \
		c.r = dump_check(c.r); \
	c.out = written_##class(&c); \
	after_##class(&c); \
	rec_leave(); \
	*rec_self->error = saved; \
	return c.r;

#define WRAP(number, name, n, class, args)                                                       \
	EXPORT CUresult name(P##n);                                                              \
	EXPORT CUresult name(P##n)                                                               \
	{                                                                                        \
		CUresult (*real)(P##n) = door(ENTRY_##name), r;                                  \
\
		if (unlikely(!real))                                                             \
			return CU_NO_DRIVER;                                                     \
		if (SILENT_##class) {                                                            \
			PASS(number, n, class)                                                   \
		} else {                                                                         \
			RECORD(number, name, n, class, args)                                                 \
		}                                                                                \
	}

#define CU(number, name, n, class, args)   WRAP(number, name, n, class, args)
#define CU_S(number, name, n, class, args) WRAP(number, name, n, class, args) WRAP(number, name##_ptsz, n, class, args)
#define CU_D(number, name, n, class, args) WRAP(number, name, n, class, args) WRAP(number, name##_ptds, n, class, args)
#define CU_OWN(number, name, n, class, args)	/* rec_resolve.c */
#define CU_OWN_S(number, name, n, class, args)	/* rec_launch.c */
#include "kb/cuda_api.def"
