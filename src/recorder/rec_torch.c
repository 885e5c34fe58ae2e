/* SPDX-License-Identifier: Apache-2.0
 * Fourth door, second half: failures that PyTorch itself reports, and what ties a backward kernel to its
 * forward line.
 *
 * These are exported C++ functions, called across libraries through the PLT, so a preloaded definition
 * of the same name is called instead. Every wrapper forwards to the real function, found in the
 * library's own symbol table. Built with -fexceptions: the real ones throw through us.
 */
#include <string.h>

#include "rec.h"
#include "recorder/guard/rec_guard.h"
#include "rec_site.h"

#define DEVICE_CUDA	1	/* c10::DeviceType::CUDA */
/* torch::autograd::Node. One that shared pointers own has a pointer to itself and one to its owner behind its vtable; newer
 * releases (seen: 2.15) have one word there, a count of references. Then come the sequence number, and further on the number of the
 * thread that created it. */
#define NODE_SELF	8
#define NODE_SHARED	24
#define NODE_COUNTED	16
#define NODE_THREAD	24	/* behind the sequence number */
#define TASK_KEEPS	26	/* torch::autograd::GraphTask, one call of backward: was retain_graph set? */

/* Real functions: library, our name for it, mangled name. */
#define REAL(X)                                                                                            \
	X("libc10_cuda.so", check_i, "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib")              \
	X("libc10_cuda.so", check_j, "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb")              \
	X("libc10_cuda.so", check_log, \
	  "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jbPNS0_19CUDAErrorLogCaptureE") \
	X("libc10.so", fail_string, \
	  "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE") \
	X("libc10.so", fail_string_old, "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs")                      \
	X("libc10.so", fail_chars, "_ZN3c106detail14torchCheckFailEPKcS2_jS2_")                            \
	X("libc10.so", oom_signed, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")                  \
	X("libc10.so", oom_unsigned, "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE")                \
	X("libc10.so", usage_signed, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE")              \
	X("libc10.so", usage_unsigned, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")            \
	X("libc10_cuda.so", divisions, \
	  "_ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm") \
	X("libc10.so", divisions_new, \
	  "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm") \
	X("libc10_cuda.so", current_stream, "_ZN3c104cuda20getCurrentCUDAStreamEa") \
	X("libtorch_cpu.so", sequence, "_ZN2at15sequence_number17get_and_incrementEv")                     \
	X("libtorch_cpu.so", thread_number, "_ZN2at14RecordFunction15currentThreadIdEv")                   \
	X("libtorch_cpu.so", evaluate,                                                                     \
	  "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE") \
	X("libtorch_python.so", bad_fork, "_ZN5torch5utils21is_device_in_bad_forkEN3c1010DeviceTypeE")

enum real {
#define X(library, id, mangled) REAL_##id,
	REAL(X)
#undef X
	REAL_COUNT
};

static const struct { const char *library, *mangled; } reals[REAL_COUNT] = {
#define X(library, id, mangled) [REAL_##id] = {library, mangled},
	REAL(X)
#undef X
};
HOT_DATA static _Atomic(void *) real_at[REAL_COUNT];

/* The first one needed looks up all the others: PyTorch was loaded after CUDA had started, and its allocator holds
 * a lock when it reports. The first checked call comes long before that. */
static void find_all(void)
{
	struct elf_object o;

	for (int r = 0; r < REAL_COUNT; r++)
		if (!atomic_load(&real_at[r]) && elf_find_object(reals[r].library, &o))
			atomic_store(&real_at[r], elf_symbol(&o, reals[r].mangled));
	guard_torch_start();
}

static void *find_real(enum real r)
{
	void *f;

	find_all();
	f = atomic_load(&real_at[r]);
	if (!f)		/* a build that has it in another library */
		f = elf_symbol_anywhere(reals[r].mangled);
	atomic_store(&real_at[r], f);
	return f;
}

static inline void *real_of(enum real r)
{
	void *f = atomic_load_explicit(&real_at[r], memory_order_relaxed);

	return likely(f) ? f : find_real(r);
}

/* When CUDA starts, not inside a wrapper: PyTorch's allocator holds its lock when it reports. */
void torch_start(void)
{
	struct elf_object o;

	if (!elf_find_object("libc10.so", &o))
		return;
	text_copy(rec.h->torch_path, sizeof(rec.h->torch_path), o.name, strlen(o.name));
	find_all();
	torch_block_start();
}

static void words(struct cw_failure *f, const char *what, const char *file, uint32_t line, const char *text, size_t n)
{
	if (what)
		text_copy(f->what, sizeof(f->what), what, strlen(what));
	if (file)
		text_copy(f->file, sizeof(f->file), file, strlen(file));
	if (text)
		text_copy(f->text, sizeof(f->text), text, n);
	f->line = line;
}

static void torch_cuda(int code, const char *file, const char *function, uint32_t line)
{
	struct cw_failure f;

	if (!rec_enter())
		return;
	fail_init(&f, CW_SRC_TORCH_CUDA, (uint32_t)code);
	words(&f, function, file, line, NULL, 0);
	fail_note(&f);
	rec_leave();
}

static TLS bool freed_later;	/* the block that this thread frees now waits for other streams */
TLS bool rec_event_recorded;

/* The allocator records an event in each other stream that uses a block before it reports that the block was freed. */
static void torch_checked(const char *function)
{
	rec_event_recorded = false;
	if (function && strcmp(function, "insert_events") == 0)
		freed_later = true;
}

/* void c10::cuda::c10_cuda_check_implementation(int code, const char *file, const char *function, line, bool, and since
 * PyTorch 2.14 what the driver logged during the call): called after every checked runtime call, successful or not. So
 * after a successful one the wrapper does nothing but jump on. */
#define P_CHECK(line_type) int code, const char *file, const char *function, line_type line, bool dsa
#define A_CHECK		   code, file, function, line, dsa
#define WRAP_CHECK(id, name, params, args)                                                                 \
	static __attribute__((noinline)) void id##_slowly(params)                                          \
	{                                                                                                  \
		void (*real)(params) = real_of(REAL_##id);                                                 \
\
		if (code)                                                                                  \
			torch_cuda(code, file, function, (uint32_t)line);                                  \
		else if (rec_event_recorded)                                                               \
			torch_checked(function);                                                           \
		if (real)                                                                                  \
			real(args);                                                                        \
	}                                                                                                  \
	EXPORT void name(params);                                                                          \
	EXPORT HOT void name(params)                                                                       \
	{                                                                                                  \
		void (*real)(params) = atomic_load_explicit(&real_at[REAL_##id], memory_order_relaxed);    \
\
		if (likely(!code && real && !rec_event_recorded))                                          \
			real(args);                                                                        \
		else                                                                                       \
			id##_slowly(args);                                                                 \
	}
#define LIST(...) __VA_ARGS__

WRAP_CHECK(check_i, _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib, LIST(P_CHECK(int)), LIST(A_CHECK))
WRAP_CHECK(check_j, _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb, LIST(P_CHECK(unsigned)), LIST(A_CHECK))
WRAP_CHECK(check_log, _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jbPNS0_19CUDAErrorLogCaptureE,
	   LIST(P_CHECK(unsigned), void *log), LIST(A_CHECK, log))

static void torch_check(const char *function, const char *file, uint32_t line, const char *text, size_t n)
{
	struct cw_failure f;

	/* a program that never used CUDA has no recording, and needs none for this */
	if (rec_asleep() || !rec_enter())
		return;
	fail_init(&f, CW_SRC_TORCH_CHECK, 0);
	words(&f, function, file, line, text, n);
	fail_note(&f);
	rec_leave();
}

/* [[noreturn]] void c10::detail::torchCheckFail(const char *function, const char *file, uint32_t line,
 * message). The message is a std::string (its first words: data, length), an old-ABI one, or a plain string. */
struct cxx_string { const char *data; size_t len; };

#define WRAP_FAIL(id, name, type, data, length)                                                            \
	EXPORT void name(const char *function, const char *file, uint32_t line, type *s);                  \
	EXPORT void name(const char *function, const char *file, uint32_t line, type *s)                   \
	{                                                                                                  \
		void (*real)(const char *, const char *, uint32_t, type *) = real_of(REAL_##id);           \
\
		torch_check(function, file, line, data, length);                                           \
		real(function, file, line, s);                                                             \
	}

WRAP_FAIL(fail_string, _ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE,
	  const struct cxx_string, s->data, s->len)
WRAP_FAIL(fail_string_old, _ZN3c106detail14torchCheckFailEPKcS2_jRKSs, const char *const, *s, strlen(*s))
WRAP_FAIL(fail_chars, _ZN3c106detail14torchCheckFailEPKcS2_jS2_, const char, s, strlen(s))

struct c10_device { int8_t type, index; };

static void torch_oom(uint64_t request, uint64_t allocated, uint64_t reserved, struct c10_device d)
{
	struct guard_totals guarded;
	struct cw_failure f;

	if (d.type != DEVICE_CUDA || !rec_enter())
		return;
	if (guard_on()) {		/* PyTorch does not know of them */
		guard_totals(d.index, &guarded);
		allocated += guarded.allocated;
		reserved += guarded.in_use;
		guard_out_of_memory();
	}
	fail_init(&f, CW_SRC_TORCH_OOM, 2);
	fail_add_memory(&f, request);
	f.torch_allocated = allocated;
	f.torch_reserved = reserved;
	f.device = d.index;
	totals_torch_gave_up(d.index, allocated, reserved);
	if (f.memory_known)
		events_more(CW_MORE_FREE, d.index, f.free_bytes);
	events_oom(d.index, request);
	words(&f, "OutOfMemory", NULL, 0, NULL, 0);
	fail_note(&f);
	rec_leave();
}

#define WRAP_OOM(id, name, type)                                                                           \
	EXPORT void name(type request, size_t allocated, size_t reserved, struct c10_device d);            \
	EXPORT void name(type request, size_t allocated, size_t reserved, struct c10_device d)             \
	{                                                                                                  \
		void (*real)(type, size_t, size_t, struct c10_device) = real_of(REAL_##id);                \
\
		torch_oom((uint64_t)request, allocated, reserved, d);                                      \
		if (real)                                                                                  \
			real(request, allocated, reserved, d);                                             \
	}

WRAP_OOM(oom_signed, _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, int64_t)
WRAP_OOM(oom_unsigned, _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE, size_t)

static TLS uint64_t asked;	/* what this thread asked PyTorch's allocator for, until it reports the block */

/* size_t roundup_power2_divisions(size_t size): the allocator calls it first, with every size above its smallest block. What
 * it reports later is the block, which may be up to 1 MiB larger. */
#define WRAP_DIVISIONS(id, name)                                                                           \
	EXPORT size_t name(size_t size);                                                                   \
	EXPORT HOT size_t name(size_t size)                                                                \
	{                                                                                                  \
		size_t (*real)(size_t) = real_of(REAL_##id);                                               \
\
		asked = size;                                                                              \
		return likely(real) ? real(size) : 0;                                                      \
	}

WRAP_DIVISIONS(divisions, _ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm)
WRAP_DIVISIONS(divisions_new, _ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm)

/* CUDAStream getCurrentCUDAStream(DeviceIndex): two words, in registers. */
struct c10_stream { uint64_t device, id; };

uint64_t torch_stream(int device)
{
	struct c10_stream (*current)(int8_t) = real_of(REAL_current_stream);

	return current ? current((int8_t)device).id : 0;
}

HOT static void note_block(struct torch_block_note *b)
{
	b->asked = asked;
	b->later = freed_later;
	asked = 0;
	freed_later = false;
	if (!b->addr || rec_asleep() || !rec_enter())
		return;
	if (b->size > 0)
		torch_block_made(b);
	else if (b->size < 0)
		torch_block_freed(b);
	rec_leave();
}

void torch_report(const struct torch_block_note *b)
{
	const struct c10_device d = {DEVICE_CUDA, (int8_t)b->device};
	struct torch_block_note copy = *b;
	void (*real)(void *, int64_t, size_t, size_t, struct c10_device) = real_of(REAL_usage_unsigned);

	asked = 0;
	note_block(&copy);
	if (!real)
		real = real_of(REAL_usage_signed);
	if (real)
		real((void *)(uintptr_t)b->addr, b->size, b->allocated, b->reserved, d);
}

/* void c10::reportMemoryUsageToProfiler(void *block, int64_t size, totals allocated and reserved, Device): for every
 * block allocated (size above 0) or freed (below 0), profiler or not. The totals already include the event. */
#define WRAP_USAGE(id, name, total)                                                                        \
	EXPORT void name(void *block, int64_t size, total allocated, total reserved, struct c10_device d); \
	EXPORT HOT void name(void *block, int64_t size, total allocated, total reserved, struct c10_device d) \
	{                                                                                                  \
		void (*real)(void *, int64_t, total, total, struct c10_device) = real_of(REAL_##id);       \
\
		if (d.type == DEVICE_CUDA)                                                                 \
			note_block(&(struct torch_block_note){.addr = (uintptr_t)block, .size = size,              \
							      .allocated = (uint64_t)allocated, \
							      .reserved = (uint64_t)reserved, .device = d.index}); \
		if (likely(real))                                                                          \
			real(block, size, allocated, reserved, d);                                         \
	}

WRAP_USAGE(usage_signed, _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, int64_t)
WRAP_USAGE(usage_unsigned, _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, size_t)

static bool called_from(uint32_t stack, const char *function)
{
	const struct cw_stack *s = at(stack);
	const struct cw_string *name = s && s->n ? at(s->frame[0].function) : NULL;

	return name && strcmp(name->text, function) == 0;
}

/* bool torch::utils::is_device_in_bad_fork(DeviceType). DataLoader workers call it too, and continue without
 * CUDA; only torch.cuda._lazy_init raises if it returns true. */
EXPORT bool _ZN5torch5utils21is_device_in_bad_forkEN3c1010DeviceTypeE(int8_t type);
EXPORT bool _ZN5torch5utils21is_device_in_bad_forkEN3c1010DeviceTypeE(int8_t type)
{
	bool (*real)(int8_t) = real_of(REAL_bad_fork);
	bool bad = real && real(type);
	struct cw_failure f;

	if (unlikely(bad) && type == DEVICE_CUDA && rec_enter()) {
		fail_init(&f, CW_SRC_FORK, 3);
		words(&f, "is_device_in_bad_fork", NULL, 0, NULL, 0);
		if (called_from(f.stack, "_lazy_init"))
			fail_note(&f);
		rec_leave();
	}
	return bad;
}

/* Behind the nodes of a ring. */
static inline uint16_t *module_of_node(struct cw_ring *r, uint64_t sequence)
{
	return (uint16_t *)((struct cw_node *)(r + 1) + CW_RING_NODES) + (sequence & (CW_RING_NODES - 1));
}

/* uint64_t at::sequence_number::get_and_increment(): once for each autograd node, on the thread and at
 * the line that creates it. */
EXPORT uint64_t _ZN2at15sequence_number17get_and_incrementEv(void);
EXPORT HOT uint64_t _ZN2at15sequence_number17get_and_incrementEv(void)
{
	static _Atomic bool no_thread_number;	/* a build without it: do not search all libraries for every node */
	static TLS uint64_t own;
	uint64_t (*real)(void) = real_of(REAL_sequence), n = real ? real() : own++;
	uint64_t (*number)(void);
	struct cw_ring *r;
	struct cw_node *node;

	if (rec_asleep() || !rec_enter())
		return n;
	r = rec_node_ring(rec_self);
	if (r) {
		if (unlikely(!r->thread_key) && !no_thread_number) {
			number = real_of(REAL_thread_number);
			no_thread_number = !number;
			r->thread_key = number ? number() : 0;
		}
		node = (struct cw_node *)(r + 1) + (n & (CW_RING_NODES - 1));
		ring_ahead(r, node, sizeof(*node));
		node->seq_low = (uint32_t)n;
		node->stack = stack_here();
		*module_of_node(r, n) = (uint16_t)(node->stack ? module_here(rec_self, 0) : 0);
		r->head = n + 1;
	}
	shared_add(&rec.h->n_nodes, 1);
	rec_leave();
	return n;
}

static inline struct cw_node *node_in(struct cw_ring *r, uint64_t sequence, uint64_t thread)
{
	struct cw_node *node = (struct cw_node *)(r + 1) + (sequence & (CW_RING_NODES - 1));

	return r->thread_key == thread && node->seq_low == (uint32_t)sequence ? node : NULL;
}

/* The node in the ring of the thread that created it: usually the one that created the previous node. */
HOT static struct cw_node *node_find(struct rec_thread *t, uint64_t sequence, uint64_t thread)
{
	struct cw_node *node = t->forward_nodes ? node_in(t->forward_nodes, sequence, thread) : NULL;
	uint32_t n = rec.h->n_chunks < CW_MAX_CHUNKS ? rec.h->n_chunks : CW_MAX_CHUNKS;

	for (uint32_t i = 0; i < n && unlikely(!node); i++) {
		if (shared_get(&rec.h->chunk[i].kind) != CW_CHUNK_NODES)
			continue;
		t->forward_nodes = at(rec.h->chunk[i].off);
		node = node_in(t->forward_nodes, sequence, thread);
	}
	return node;
}

/* Where the node was created. A node that runs again counts once; one that has left the ring counts each time. */
HOT static uint32_t node_runs(struct rec_thread *t, uint64_t sequence, uint64_t thread, bool keeps, uint16_t *module)
{
	struct cw_node *node = node_find(t, sequence, thread);
	uint32_t stack = node ? shared_get(&node->stack) : 0, was = stack;
	uint32_t now = stack | CW_NODE_HAS_RUN | (keeps ? 0 : CW_NODE_RELEASED);

	*module = node ? *module_of_node(t->forward_nodes, sequence) : 0;
	if (node && stack != now)	/* unless another node took its place meanwhile */
		__atomic_compare_exchange_n(&node->stack, &was, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	if (!(stack & CW_NODE_HAS_RUN))
		shared_add(&rec.h->n_nodes_run, 1);
	return stack & ~CW_NODE_BITS;
}

/* A C++ object's first word points to its vtable; the word before the vtable points to its type, whose second word is
 * the name. */
HOT static uint32_t type_name(const void *object)
{
	static struct { _Atomic uint64_t key; _Atomic uint32_t name; } seen[256];
	const void *const *vtable = *(const void *const *const *)object;
	uint64_t key = (uintptr_t)vtable ^ (uint64_t)rec.generation << 48, none = 0;
	uint32_t i = (uint32_t)((uintptr_t)vtable >> 4) % 256, off;
	const char *name;

	off = atomic_load_explicit(&seen[i].name, memory_order_acquire);
	if (likely(off && atomic_load_explicit(&seen[i].key, memory_order_relaxed) == key))
		return off;
	name = ((const char *const *)vtable[-1])[1];
	off = intern_string(name, strnlen(name, 400));
	/* a place is taken once and never reused for another type, so no reader sees a mix */
	if (atomic_compare_exchange_strong(&seen[i].key, &none, key))
		atomic_store_explicit(&seen[i].name, off, memory_order_release);
	return off;
}

/* An exception leaves evaluate_function without returning to our wrapper. A cleanup handler from the compiler
 * would need libgcc_s in every process, so the wrapper has its own personality routine: the unwinder calls it
 * when it removes the wrapper's frame, and all it does is drop the running node. A node left behind without
 * unwinding (longjmp) is dropped as soon as we see that the stack is shorter again. */
#define UNWIND_CLEANUP	2	/* _UA_CLEANUP_PHASE */
#define UNWIND_GO_ON	8	/* _URC_CONTINUE_UNWIND */

int rec_personality(int version, int actions, uint64_t class, void *exception, void *context);
__attribute__((visibility("hidden"), used)) int rec_personality(int version, int actions, uint64_t class,
								void *exception, void *context)
{
	(void)version, (void)class, (void)exception, (void)context;
	if ((actions & UNWIND_CLEANUP) && rec_self && rec_self->node_depth)
		rec_self->node_depth--;
	return UNWIND_GO_ON;
}

static void drop_dead_nodes(struct rec_thread *t, uintptr_t here)
{
	while (t->node_depth && t->node[t->node_depth - 1].sp <= here)
		t->node_depth--;
}

HOT bool torch_backward(struct rec_thread *t, uint32_t *forward_stack, uint32_t *node_name)
{
	drop_dead_nodes(t, (uintptr_t)__builtin_frame_address(0));
	if (!t->node_depth)
		return false;
	*forward_stack = t->node[t->node_depth - 1].forward_stack;
	*node_name = t->node[t->node_depth - 1].name;
	return true;
}

static inline const char *node_numbers(const char *node)
{
	uintptr_t self;

	memcpy(&self, node + NODE_SELF, sizeof(self));
	return node + (self == (uintptr_t)node ? NODE_SHARED : NODE_COUNTED);
}

HOT static bool node_begin(const char *node, const char *const *task, uintptr_t here)
{
	uint64_t sequence, thread;
	struct running_node *r;
	struct rec_thread *t;
	bool pushed = false;

	if (rec_asleep() || !rec_enter())
		return false;
	t = rec_self;
	drop_dead_nodes(t, here);
	if (t->node_depth < MAX_NODE_DEPTH) {
		r = &t->node[t->node_depth++];
		memcpy(&sequence, node_numbers(node), sizeof(sequence));
		memcpy(&thread, node_numbers(node) + NODE_THREAD, sizeof(thread));
		r->sp = here;
		/* the largest number marks a node that accumulates a gradient: no line created it */
		r->accumulates = sequence == UINT64_MAX;
		r->module = 0;
		r->forward_stack =
			r->accumulates ? 0 : node_runs(t, sequence, thread, !task || (*task)[TASK_KEEPS], &r->module);
		r->name = type_name(node);
		pushed = true;
	}
	rec_leave();
	return pushed;
}

/* void torch::autograd::Engine::evaluate_function(this, shared pointer to the graph task, node, inputs, queue) */
#define EVALUATE _ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE
EXPORT void EVALUATE(void *engine, void *task, void *node, void *inputs, const void *queue);
EXPORT HOT void EVALUATE(void *engine, void *task, void *node, void *inputs, const void *queue)
{
	void (*real)(void *, void *, void *, void *, const void *) = real_of(REAL_evaluate);
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	bool pushed = node_begin(node, task, here);

	ARCH_PERSONALITY("rec_personality");
	real(engine, task, node, inputs, queue);
	if (pushed && rec_self && rec_self->node_depth)
		rec_self->node_depth--;
}
