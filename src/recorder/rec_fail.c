/* SPDX-License-Identifier: Apache-2.0
 * Failures, with everything that is known at that moment; and the ring of ordinary calls.
 */
#include <errno.h>
#include <string.h>

#include "rec.h"
#include "rec_segment.h"

#define LOOK_NS		   20000000u

static struct {
	struct cw_failure *table;
	struct cw_failure_turns *turns;	/* NULL: none was in a loop yet */
	struct cw_failure_handlers *handlers;	/* NULL: likewise */
	bool no_turns, no_handlers;	/* out of memory */
	uint64_t n;
	uint64_t looked_ns;	/* how long reading CUDA_VISIBLE_DEVICES has taken so far */
} fails;

bool fail_start(void)
{
	fails.table = chunk_new(CW_CHUNK_FAILURES, CW_MAX_FAILURES * sizeof(*fails.table), 0);
	fails.n = fails.looked_ns = 0;
	fails.turns = NULL;
	fails.handlers = NULL;
	fails.no_turns = fails.no_handlers = false;
	return fails.table != NULL;
}

bool code_is_sticky(uint32_t code)
{
	switch (code) {
#define CUDA_ERROR_ROW(number, driver, runtime, sticky, text) case number: return sticky;
#include "kb/cuda_errors.def"
	}
	return false;
}

void fail_init(struct cw_failure *f, enum cw_source source, uint32_t code)
{
	struct rec_thread *t = rec_self;

	python_hook();
	memset(f, 0, sizeof(*f));
	f->source = source;
	f->code = code;
	f->tid = t->tid;
	f->stack = stack_here();
	f->device = -1;
	f->ticks = f->last_ticks = rec_ticks();
	f->mono_ns = rec_mono_ns();
	f->count = 1;
	f->live_device_bytes = shared_get(&rec.h->live_device_bytes);
	memset(f->func_attr, 0xff, sizeof(f->func_attr));
	if (t->node_depth)
		torch_backward(t, &f->forward_stack, &f->node_name);
	f->capturing = atomic_load(&rec.captures);
	if (f->capturing)
		f->capture_stack = capture_stack();
	if (t->log_len && source == CW_SRC_DRIVER) {
		text_copy(f->text, sizeof(f->text), t->log, t->log_len);
		t->log_len = 0;
	}
	if (source == CW_SRC_DRIVER)
		fail_add_library(f, t->runtime_caller ? t->runtime_caller : t->caller);
	if (source == CW_SRC_DRIVER && !code_is_sticky(code))
		f->device = current_device();
	else if (t->device >= 0)	/* do not query a lost context; what was known before is still true */
		f->device = t->device;
}

void fail_add_function(struct cw_failure *f, uint64_t handle)
{
	static const int number[CW_FUNC_COUNT] = {
#define X(name, n) n,
		CW_FUNC_ATTRS(X)
#undef X
	};

	for (int i = 0; i < CW_FUNC_COUNT; i++) {
		int v;

		if (!function_plain(f->func)) {
			if (drv.cuKernelGetAttribute && f->device >= 0 &&
			    drv.cuKernelGetAttribute(&v, number[i], (void *)handle, f->device) == 0)
				f->func_attr[i] = v;
		} else if (drv.cuFuncGetAttribute &&
			   drv.cuFuncGetAttribute(&v, number[i], (void *)handle) == 0) {
			f->func_attr[i] = v;
		}
	}
}

void fail_add_library(struct cw_failure *f, const void *address)
{
	struct elf_object o;

	if (!address || !elf_object_at(address, &o))
		return;
	if (!o.name[0])			/* the program itself */
		text_copy(f->library, sizeof(f->library), rec.h->exe, strlen(rec.h->exe));
	else
		text_copy(f->library, sizeof(f->library), o.name, strlen(o.name));
}

void fail_add_memory(struct cw_failure *f, uint64_t request)
{
	CUresult (*info)(size_t *, size_t *) = door(ENTRY_cuMemGetInfo_v2);
	size_t free_bytes, total;

	f->request_bytes = request;
	if (info && info(&free_bytes, &total) == 0) {
		f->memory_known = 1;
		f->free_bytes = free_bytes;
		f->total_bytes = total;
	}
}

static bool same(const struct cw_failure *a, const struct cw_failure *b)
{
	return a->source == b->source && a->api == b->api && a->code == b->code && a->stack == b->stack &&
	       a->tid == b->tid && a->func == b->func && a->python_chain == b->python_chain &&
	       (a->source != CW_SRC_TORCH_CHECK || strcmp(a->text, b->text) == 0);
}

/* The first half is kept forever, because the first failure is the one that matters; the second
 * half is a ring, because the last one is what ended the program. */
static struct cw_failure *place(uint64_t i)
{
	const uint64_t half = CW_MAX_FAILURES / 2;

	return &fails.table[i < half ? i : half + (i - half) % half];
}

/* As they are now. Reading a large environment takes a millisecond, and a program may fail thousands of times a second:
 * spend a moment on it, and then a twentieth of the time at most. Called with the lock held. */
static void add_visible_devices(struct cw_failure *f)
{
	uint64_t began = rec_mono_ns();
	char *now = rec.h->visible_devices_now;
	int saved = errno;

	if (fails.looked_ns < LOOK_NS + (began - rec_start_ns) / 20) {
		env_copy_now("CUDA_VISIBLE_DEVICES", now, sizeof(rec.h->visible_devices_now));
		fails.looked_ns += rec_mono_ns() - began;
		errno = saved;
	}
	text_copy(f->visible_devices, sizeof(f->visible_devices), now, strlen(now));
}

/* The turns of the loops that the thread is in. Called with the lock held, before the failure itself can be found. */
static void add_turns(const struct cw_failure *to, uint64_t seq)
{
	struct cw_loop_turn at[CW_LOOP_TURNS];
	struct cw_failure_turns *t;
	uint32_t n = turns_now(rec_self, at, CW_LOOP_TURNS);

	if (n && !fails.turns && !fails.no_turns) {
		fails.turns = chunk_new(CW_CHUNK_FAILURE_TURNS, CW_MAX_FAILURES * sizeof(*fails.turns), 0);
		fails.no_turns = !fails.turns;
	}
	if (!n || !fails.turns)
		return;
	t = &fails.turns[to - fails.table];
	__atomic_store_n(&t->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	memcpy(t->at, at, n * sizeof(at[0]));
	t->n = n;
	shared_set(&t->seq, seq);
}

/* What would catch an exception that is raised for the failed call. Like add_turns(). */
static void add_handlers(const struct cw_failure *to, uint64_t seq)
{
	struct cw_failure_handlers *h;

	if (!fails.handlers && !fails.no_handlers) {
		fails.handlers = chunk_new(CW_CHUNK_HANDLERS, CW_MAX_FAILURES * sizeof(*fails.handlers), 0);
		fails.no_handlers = !fails.handlers;
	}
	if (!fails.handlers)
		return;
	h = &fails.handlers[to - fails.table];
	__atomic_store_n(&h->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	h->n = handlers_now(h->at, CW_HANDLERS);
	h->known = h->n < CW_HANDLERS;
	if (h->n > CW_HANDLERS)
		h->n = 0;
	shared_set(&h->seq, seq);
}

/* `seq`: the place's number, once more if it is used again. Called with the lock held. */
static void write_failure(struct cw_failure *to, const struct cw_failure *f, uint64_t seq)
{
	__atomic_store_n(&to->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	memcpy((char *)to + sizeof(to->seq), (const char *)f + sizeof(f->seq), sizeof(*f) - sizeof(f->seq));
	if (f->source != CW_SRC_RANKS && f->source != CW_SRC_GUARD)	/* the loops have gone on since */
		add_turns(to, seq);
	if (f->stack && f->source != CW_SRC_RANKS && f->source != CW_SRC_GUARD && f->source != CW_SRC_PYTHON)
		add_handlers(to, seq);
	shared_set(&to->seq, seq);
}

static bool is_out_of_memory(const struct cw_failure *f)
{
	return f->code == CU_OUT_OF_MEMORY || f->source == CW_SRC_TORCH_OOM;
}

/* A failure that repeats is reported once. But each time that memory runs out is another one, with figures of its own: only the
 * attempts of one request, which follow each other, are the same, and the last one counts. NULL: it is new. */
static struct cw_failure *find_same(const struct cw_failure *f, uint64_t *seq)
{
	for (uint64_t i = fails.n; i > 0 && fails.n - i < 16; i--) {
		struct cw_failure *to = place(i - 1);

		*seq = i;
		if (same(to, f) && (!is_out_of_memory(f) || to->request_bytes == f->request_bytes))
			return to;
		if (is_out_of_memory(f) && to->tid == f->tid)
			return NULL;
	}
	return NULL;
}

void fail_note(struct cw_failure *f)
{
	struct cw_failure *to;
	uint64_t seq;

	rec_self->failures++;
	if (code_is_sticky(f->code))
		ranges_keep();
	if (!spin_try(&fail_lock))
		return;
	rec_clock_mark();
	add_visible_devices(f);
	to = find_same(f, &seq);
	if (to && is_out_of_memory(f)) {
		f->count = to->count + 1;
		write_failure(to, f, seq);
	} else if (to) {
		to->count++;
		to->last_ticks = f->ticks;
		if (f->source == CW_SRC_DRIVER && f->found_beside < to->found_beside)
			to->found_beside = f->found_beside;
	} else {
		write_failure(place(fails.n), f, fails.n + 1);
		rec.h->n_failures = ++fails.n;
	}
	spin_done(&fail_lock);
	if (f->code == CU_OUT_OF_MEMORY)
		probe_wake();
}

/* The runtime looks a kernel up when it is launched for the first time. Code that finds one after the other and launches none is
 * making a list: one that is missing is an answer, not a failure. */
static uint32_t found_in_one_go(struct rec_thread *t, uint32_t stack)
{
	uint64_t launches = t->launches ? t->launches->head : 0;

	if (t->found.stack != stack || t->found.launches != launches) {
		t->found.stack = stack;
		t->found.launches = launches;
		t->found.n = 0;
	}
	return t->found.n;
}

void lookup_found(void)
{
	struct rec_thread *t = rec_self;
	uint32_t n = found_in_one_go(t, stack_here());

	if (n < UINT32_MAX)
		t->found.n = n + 1;
}

static uint32_t what_does(enum api api)
{
	enum {
#define CLASS(name, before, writes, does, text) DOES_OF_##name = (does),
#include "kb/cuda_api.def"
	};
	static const uint32_t of[] = {
#define CU(number, name, n, class, args) [number] = DOES_OF_##class,
#include "kb/cuda_api.def"
	};

	return of[api];
}

static uint64_t request_of(uint32_t what, const uint64_t *arg)
{
	return what & DOES_REQUEST ? arg[1] : what & DOES_REQUEST_AREA ? arg[2] * arg[3] : 0;
}

static uint64_t function_of(uint32_t what, const uint64_t *arg)
{
	return what & DOES_SET_FUNCTION ? arg[0] : what & DOES_SET_KERNEL ? arg[2] : 0;
}

void fail_driver(enum api api, CUresult result, const uint64_t *arg, uint32_t n_args)
{
	struct cw_failure f;
	uint32_t what = what_does(api);
	uint64_t handle = function_of(what, arg);

	fail_init(&f, CW_SRC_DRIVER, result);
	f.api = api;
	f.n_args = n_args > CW_MAX_ARGS ? CW_MAX_ARGS : n_args;
	memcpy(f.arg, arg, f.n_args * sizeof(f.arg[0]));
	/* Code built into a library is loaded from that library's own memory. */
	if (what & DOES_IMAGE)
		fail_add_library(&f, (const void *)arg[1]);
	if (what & DOES_LOOKUP)
		f.found_beside = found_in_one_go(rec_self, f.stack);
	f.request_bytes = request_of(what, arg);
	/* not during a capture: our query must not break it */
	if (f.request_bytes && !code_is_sticky(result) && !f.capturing)
		fail_add_memory(&f, f.request_bytes);
	if (handle && !code_is_sticky(result)) {
		f.func = function_number(handle);
		function_learn(f.func, false);
		fail_add_function(&f, handle);
	}
	fail_note(&f);
}

/* "Not ready" is not a failure, and after main() has ended the driver rejects every call. */
static bool is_ordinary(CUresult code)
{
	return code == 600 || code == 4;
}

void note_call(const struct call_note *c)
{
	struct rec_thread *t = rec_self;
	struct cw_ring *r = t->calls;
	struct cw_call *s;
	uint64_t i;

	python_hook();
	if (unlikely(c->result) && !is_ordinary(c->result))
		fail_driver(c->api, c->result, c->arg, c->n_args);
	if (!r)
		return;
	i = r->head;
	s = (struct cw_call *)(r + 1) + (i & (CW_RING_CALLS - 1));
	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	ring_ahead(r, s, sizeof(*s));
	r->head = i + 1;
	s->ticks = rec_ticks();
	s->api = c->api;
	s->result = c->result;
	s->stack = stack_here();
	s->tid = t->tid;
	for (uint32_t k = 0; k < 6; k++)
		s->arg[k] = k < c->n_args ? c->arg[k] : 0;
	s->out = c->out;
	shared_set(&s->seq, i + 1);
}
