/* SPDX-License-Identifier: Apache-2.0
 * Private to the recorder: the library that is preloaded into the user's program.
 *
 * It is a guest. On the recording path nothing allocates, locks, prints or touches a file. The
 * recording lives in segments that were reserved before they were mapped. If anything goes wrong,
 * recording is switched off and the program runs as if cuwhy were absent.
 */
#ifndef CUWHY_REC_H
#define CUWHY_REC_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "cuwhy/api.h"
#include "cuwhy/format.h"

#define EXPORT	   __attribute__((visibility("default")))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* Code and data that every event touches are kept together: between two events the program evicts our pages from the
 * TLB, and each page missed costs more than our own work on it. */
#define HOT	    __attribute__((hot))
#define HOT_DATA    __attribute__((section("cuwhy_hot")))
#define TLS	    __thread __attribute__((tls_model("initial-exec")))

/* Everything declared here is local to us: without this, each use of a variable would look up its address first. */
#pragma GCC visibility push(hidden)

typedef uint32_t CUresult;

/* What a wrapper returns when a program calls it with no libcuda loaded: "stub library". */
#define CU_NO_DRIVER 34u
#define CU_OUT_OF_MEMORY 2u

enum entry {
#define CU(number, name, n, class, args)     ENTRY_##name,
#define CU_S(number, name, n, class, args)   ENTRY_##name, ENTRY_##name##_ptsz,
#define CU_D(number, name, n, class, args)   ENTRY_##name, ENTRY_##name##_ptds,
#include "kb/cuda_api.def"
	ENTRY_COUNT
};

enum api {
#define CU(number, name, n, class, args) API_##name = number,
#include "kb/cuda_api.def"
};

/* Driver functions that the recorder itself calls, in addition to the recorded ones. */
#define HELPERS(X)                                                                           \
	X(cuFuncGetName, (const char **, void *))                                            \
	X(cuKernelGetName, (const char **, void *))                                          \
	X(cuFuncGetParamInfo, (void *, size_t, size_t *, size_t *))                          \
	X(cuKernelGetParamInfo, (void *, size_t, size_t *, size_t *))                        \
	X(cuFuncGetParamCount, (void *, size_t *))                                           \
	X(cuKernelGetParamCount, (void *, size_t *))                                         \
	X(cuFuncGetAttribute, (int *, int, void *))                                          \
	X(cuKernelGetAttribute, (int *, int, void *, int))                                   \
	X(cuCtxGetCurrent, (void **))                                                        \
	X(cuDeviceGetName, (char *, int, int))                                               \
	X(cuDeviceTotalMem_v2, (size_t *, int))                                              \
	X(cuDeviceGetUuid_v2, (void *, int))                                                 \
	X(cuStreamIsCapturing, (void *, int *))                                              \
	X(cuThreadExchangeStreamCaptureMode, (int *))                                        \
	X(cuDeviceGetMemPool, (uint64_t *, int))                                             \
	X(cuMemGetAllocationGranularity, (size_t *, const void *, int))                      \
	X(cuCtxGetId, (void *, uint64_t *))                                                  \
	X(cuCtxGetStreamPriorityRange, (int *, int *))                                       \
	X(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))                              \
	X(cuFuncGetModule, (void **, void *))                                                \
	X(cuKernelGetLibrary, (void **, void *))                                             \
	X(cuCoredumpSetAttributeGlobal, (int, void *, size_t *))                             \
	X(cuLogsRegisterCallback, (void (*)(void *, int, char *, size_t), void *, void **))

struct helpers {
#define X(name, args) CUresult(*name) args;
	HELPERS(X)
#undef X
};
extern struct helpers drv;

extern _Atomic(void *) door_real[ENTRY_COUNT];
void *door_find(enum entry e);			/* slow path of door() */
extern void *const door_wrapper[ENTRY_COUNT];
extern const char *const door_name[ENTRY_COUNT];
int door_by_name(const char *name);		/* -1: not ours */
int door_by_real(const void *function);		/* -1: not ours */
bool doors_open(void);				/* true once libcuda is loaded */
bool doors_complete(void);
const char *doors_library(void);

/* The real function behind an entry point, or NULL when the driver has none. Opens the doors. */
static inline void *door(enum entry e)
{
	void *f = atomic_load_explicit(&door_real[e], memory_order_relaxed);

	return likely(f != NULL) ? f : door_find(e);
}

struct elf_object {
	uintptr_t base, start, end;	/* load bias and the mapped range */
	uintptr_t data, data_end;	/* what its own code may write, or could while it was being loaded: */
	uintptr_t relro_end;		/* below this, the loader has made it read-only since */
	const void *dynamic;
	char name[256];
};
bool elf_find_object(const char *basename_prefix, struct elf_object *out);
bool elf_object_at(const void *address, struct elf_object *out);
void *elf_symbol(const struct elf_object *o, const char *name);
uintptr_t elf_dynamic(const struct elf_object *o, int64_t tag);	/* DT_*; 0: there is none */
const void *elf_table(const struct elf_object *o, int64_t tag);	/* the same, as an address */
void *elf_symbol_anywhere(const char *name);	/* first object that defines it; ours is skipped */
void *elf_symbol_after_us(const char *name);	/* first one behind us in lookup order */
bool elf_needs(const struct elf_object *o, const char *soname_prefix, char *soname, size_t size);
/* Makes the object's own references to functions of these names lead to others; how many. */
struct elf_import { const char *name; void *usual, *instead; };	/* usual: what it finds by itself. Found anything else: left alone */
uint32_t elf_redirect(const struct elf_object *o, const struct elf_import *list, size_t n);
/* The caller's object, and the library of that name (libcudart, libcublas) it was linked against. */
bool elf_linked(const void *caller, const char *prefix, struct elf_object *who, struct elf_object *library);

#define MAX_NODE_DEPTH 16
#define DEVICE_ASK     (-2)
struct running_node {
	uintptr_t sp;			/* how deep the stack was */
	uint32_t forward_stack, name;
	bool accumulates;		/* a gradient: no line created it */
	uint16_t module;		/* whose forward created it, 0 = not known */
};

/* Python frames as of this thread's last walk, root first (rec_python_walk.c). Link 0 is beyond the root. */
#define CHAIN_MAX 256u
#define CHAIN_TOPS 8u
struct py_chain {
	uint32_t n, off;		/* links; the stack they form, 0 = not known */
	uint32_t gone;			/* code_watch.gone before they were read */
	uint32_t version;		/* of the links below the innermost one */
	uint32_t first;			/* the outermost link that has changed since turns_seen(); above n: none */
	uint32_t again;			/* the link of a function that C code has called again, 0 = none */
	uintptr_t base;			/* address of the first Python frame */
	struct py_was { const char *frame; uint64_t instr, id; } was;	/* what link `first`, or the first function above it, was */
	const void *state;		/* of Python's main thread, once looked up: it never changes */
	/* where the innermost function has been since the others changed, and the stacks for that */
	struct py_top { uint64_t instr, h; uint32_t off, version; } top[CHAIN_TOPS];
	struct py_link { const char *frame; uint64_t instr; } link[CHAIN_MAX + 1];	/* what each walk compares */
	struct py_kept {
		const char *code;
		uint64_t id;		/* of its code; 0 = not Python code */
		uint64_t h;		/* of all links up to this one */
		uint32_t python;	/* how many of those are Python code */
		uint32_t loops;		/* of its code (rec_python_loops.c) */
		uint32_t method;		/* the innermost link up to this one whose first variable is `self`, 0 = none */
		uint64_t called;	/* the first function that was called from where it is now: id of its code, 0 = none */
	} kept[CHAIN_MAX + 1];
};

/* The loops that a thread's Python frames are in, outermost first, and the turn of each (rec_turns.c). */
#define TURN_LEVELS 12u
struct turn_level {
	const char *frame;
	uint32_t unit, warm;		/* where the frame was at the last event, and before that outside of handlers */
	const uint64_t *var[2];		/* variables of the frame that are set in the loop */
	const void *const *slot;	/* of its iterator, NULL = it has none */
	const void *iterator, *type;	/* in that slot at the last event */
	int64_t word, base;		/* of the iterator: where it is, and where turn 0 would have been */
	uint64_t state;			/* of the frame's variables, where the iterator does not tell */
	uint64_t serial;		/* of its record */
	uint32_t record;		/* off of a cw_turn, 0 = none yet */
	uint32_t loop;			/* index into py_loop; CALLS and a number: C code that calls again */
	uint32_t turn;
	uint16_t link;			/* its frame in the chain */
	uint16_t from, to;		/* where in its code the frame is in the same loops */
	uint8_t how, at;		/* the kind of iterator, 0 = it does not tell; offset of `word`, 0 = not in itself */
	int8_t pace;			/* `turn` is this times `word`, less `base`; 0 = it is not that simple */
	uint8_t flags;
};
struct py_turns {
	uint32_t n, links;		/* loops; the chain's links when they were found */
	const uint64_t *arg[4];		/* of the innermost functions; NULL = not yet for this stack */
	uint64_t arg_was[4];
	struct turn_level level[TURN_LEVELS];
	struct turn_level parked[4];	/* of generators that do not run now */
	uint32_t park;
};

static inline struct py_top *chain_top(struct py_chain *c, uint64_t instr)
{
	return &c->top[instr / 2 % CHAIN_TOPS];
}

#define REC_COPIES	16u
struct unread_copy { uint64_t to, bytes; uint32_t stack; };

struct rec_thread {			/* what every call touches comes first */
	int *error;			/* its errno: asking libc each time costs a call */
	uint32_t generation;		/* of the process image: a forked child starts over */
	uint32_t tid;
	int32_t device;			/* of the current context; DEVICE_ASK = not known */
	uint32_t node_depth;		/* running autograd nodes: a stack, because backward can re-enter */
	struct cw_ring *launches;
	struct cw_ring *calls;
	struct cw_ring *nodes;
	uint64_t workspace;		/* the last one it reported, and how many had been freed by then */
	uint32_t workspaces_gone;
	struct cw_ring *forward_nodes;	/* the ring in which its last node was found */
	const void *caller;		/* who called the driver, where a wrapper noted it */
	const void *runtime_caller;	/* who called the runtime that calls the driver now */
	uint64_t dump_check_ticks;	/* when it last looked for a dump */
	uint32_t log_len;
	bool no_launch_ring, no_node_ring;	/* tried once: out of memory */

	uint32_t entry_stack;		/* of the current call, where waits are marked */
	uint64_t failures;		/* this thread's own count: did the call below record one? */
	struct running_node node[MAX_NODE_DEPTH];
	char log[1024];			/* what the driver said during the current call */
	struct cw_ring *turn_log;	/* NULL: none yet */
	uint32_t turn_logged;		/* loops, as of its newest entry */
	bool no_turn_log;
	uint32_t n_copies;
	struct unread_copy copies[REC_COPIES];	/* to the host, started and not waited for: guard mode looks at them then */
	struct { uint64_t to, from, stream, calls; uint32_t bytes, stack; } awaited;	/* a single value on its way to the host; bytes 0: none */
	struct { uint64_t launches; uint32_t stack, n; } found;	/* kernels it looked up from one line, and launched none since */
	struct {			/* the last one (rec_modules.c) */
		const char *self, *type;
		uint64_t mark, until;
		uint32_t generation, number;
	} module;
	const struct rec_thread *forward;	/* whose nodes those of forward_nodes are, as of: */
	const struct cw_ring *forward_of;
	struct py_turns turns;
	struct py_chain chain;		/* last: not cleared as a whole */
} __attribute__((aligned(64)));

struct rec {
	_Atomic(atomic_uint *) state;	/* enum rec_state; on a page that fork wipes */
	struct cw_header *h;
	char *base;			/* the address space starts here */
	uint32_t generation;
	uint32_t pid;
	bool ticks_are_tsc;
	bool waits;			/* mark waiting threads: requested by `cuwhy run --hang-after` */
	_Atomic uint32_t captures;	/* stream captures in progress */
	_Atomic uint32_t module_generation;
	_Atomic uint32_t dump_error;	/* not 0: a kernel failed, and the driver does not report it */
	struct cw_function *functions;
	struct slot *function_index;	/* handle -> number */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct rec) == 64, "every event reads one line of this, not two");
extern struct rec rec;
extern TLS struct rec_thread *rec_self;
extern TLS bool rec_event_recorded;	/* since PyTorch last checked a call */
extern TLS uint32_t rec_nesting;	/* 1 inside the program's own call, 2 while we query the driver */
#define REC_NEVER_HERE 3		/* there was no memory for this thread's record */

enum rec_state { REC_WIPED = 0, REC_ON = 1, REC_OFF = 2 };	/* WIPED: not started, or forked since */

static inline unsigned rec_state(void)
{
	return atomic_load_explicit(atomic_load_explicit(&rec.state, memory_order_acquire), memory_order_acquire);
}

/* rec_notice.c: when recording is impossible */
void notice_load(void);
void notice_unrecorded(uint32_t pid, int error);

bool rec_wake(void);			/* slow path of rec_enter: start, or start over after fork */
struct rec_thread *rec_thread_start(void);	/* NULL: this thread is not recorded */
const struct rec_thread *rec_thread_of_nodes(const struct cw_ring *nodes);	/* NULL: none */
struct cw_ring *rec_launch_ring(struct rec_thread *t);	/* NULL: no memory for it */
struct cw_ring *rec_node_ring(struct rec_thread *t);
static inline bool rec_asleep(void)	/* no recording in this process yet, or ever */
{
	return rec_state() != REC_ON;
}

static inline struct rec_thread *rec_thread(void)
{
	struct rec_thread *t = rec_self;

	return likely(t && t->generation == rec.generation) ? t : rec_thread_start();
}

/* True if this call is to be recorded; then rec_leave() must follow. Calls that the driver or we make in the
 * meantime are not recorded. Late: the call has already been made, and what the driver said during it is kept. */
static inline bool rec_enter_late(void)
{
	unsigned state = rec_state();
	struct rec_thread *t;

	if (unlikely(state != REC_ON) && (state == REC_OFF || !rec_wake()))
		return false;
	if (unlikely(rec_nesting))
		return false;
	t = rec_thread();
	if (unlikely(!t))
		return false;
	rec_nesting = 1;
	return true;
}

static inline bool rec_enter(void)
{
	if (!rec_enter_late())
		return false;
	rec_self->log_len = 0;
	return true;
}

static inline void rec_leave(void)
{
	rec_nesting = 0;
}

/* Around work that must be finished once it has begun: a handler could jump out of it. */
struct signals { sigset_t before; bool blocked; };
struct signals signals_block(void);
void signals_unblock(const struct signals *s);

uint64_t rec_mono_ns(void);
static inline uint64_t rec_ticks(void)
{
	return likely(rec.ticks_are_tsc) ? arch_ticks() : rec_mono_ns();
}
void rec_clock_mark(void);
uint64_t rec_ticks_in(uint64_t ns);	/* about: the rate of the clock is not known in advance */

/* Chunks and heap. All return NULL/0 when out of memory: recording continues without. */
void *chunk_new(enum cw_chunk_kind kind, uint32_t len, uint32_t tid);
/* Others leave room for this one, which takes no memory before it is needed. Called once for each promise. */
void chunk_promise(uint32_t len);
void *chunk_promised(enum cw_chunk_kind kind, uint32_t len);
void chunk_rename(const void *chunk, enum cw_chunk_kind kind);
struct cw_ring *ring_new(enum cw_chunk_kind kind, uint32_t slot_size, uint32_t n_slots);
struct cw_ring *ring_new_with(enum cw_chunk_kind kind, uint32_t slot_size, uint32_t n_slots, uint32_t more);	/* bytes behind the slots */
/* Using it will cause no page faults, where the kernel can do that. `p` begins a page. */
void chunk_warm(const void *p, size_t len);
/* What fills from its start, a slot for each event, would add a page to the program's resident memory now and then, for hours: that
 * looks like a leak of the program. So with every page that is used, eight are mapped; `off`: of a slot with which one begins. */
void chunk_warm_ahead(const void *chunk, size_t off, size_t len);
static inline bool begins_page(const void *slot, size_t size)
{
	return unlikely(((uintptr_t)slot & 4095) < size);
}
static inline void ring_ahead(const struct cw_ring *r, const void *slot, size_t size)
{
	if (begins_page(slot, size) && r->head < r->n_slots)
		chunk_warm_ahead(r, (size_t)((const char *)slot - (const char *)r), sizeof(*r) + r->n_slots * size);
}
uint32_t heap_alloc(uint32_t len);			/* both with the intern lock held */
uint32_t heap_alloc_layout(uint32_t len);
uint32_t intern_string(const char *text, size_t len);
static inline void *at(uint32_t off)
{
	return off ? rec.base + off : NULL;
}
static inline uint32_t off_of(const void *p)
{
	return p ? (uint32_t)((const char *)p - rec.base) : 0;
}

/* Hash tables of 64-bit keys: read without a lock, filled under the intern lock, never emptied. */
struct slot {
	_Atomic uint64_t key;		/* 0 = empty */
	uint32_t value;
	uint32_t pad;
};
#define TABLE_PROBES	64
#define FUNCTION_SLOTS	32768

static inline uint32_t table_get(const struct slot *table, uint32_t slots, uint64_t key)
{
	uint32_t i = (uint32_t)(key >> 20) & (slots - 1);

	for (uint32_t n = 0; n < TABLE_PROBES; n++, i = (i + 1) & (slots - 1)) {
		uint64_t k = atomic_load_explicit(&table[i].key, memory_order_acquire);

		if (likely(k == key))
			return __atomic_load_n(&table[i].value, __ATOMIC_ACQUIRE);
		if (!k)
			return 0;
	}
	return 0;
}
bool table_put(struct slot *table, uint32_t slots, uint64_t key, uint32_t value);

/* A lock for rare work only (interning something new, an allocation). Gives up rather than wait
 * forever: a signal handler may have interrupted the holder. */
struct spin { _Atomic uint32_t holder; };	/* thread id, 0 = free */
#define SPIN_STRANGER 1		/* a thread that may have no record */

/* Every lock is listed with this, so that none stays behind when a thread or a fork does (rec_lock.c). */
#define LOCK_LISTED(name, lock) \
	static struct spin *lock_of_##name __attribute__((used, section("cuwhy_locks"))) = &(lock)
void locks_reset(void);			/* after fork */
void locks_release_mine(void);
bool thread_is_gone(uint32_t tid);

static inline bool spin_once(struct spin *s, uint32_t me)
{
	uint32_t none = 0;

	return likely(atomic_compare_exchange_strong_explicit(&s->holder, &none, me, memory_order_acquire,
							      memory_order_relaxed));
}
bool spin_wait(struct spin *s, uint32_t me);
static inline bool spin_try(struct spin *s)	/* after rec_enter */
{
	return spin_once(s, rec_self->tid) || spin_wait(s, rec_self->tid);
}
/* Where this thread may have no record, with signals blocked: otherwise a jump could leave the lock behind unnoticed. */
static inline bool spin_try_early(struct spin *s)
{
	return spin_once(s, SPIN_STRANGER) || spin_wait(s, SPIN_STRANGER);
}
static inline void spin_done(struct spin *s)
{
	atomic_store_explicit(&s->holder, 0, memory_order_release);
}
extern struct spin intern_lock, fail_lock, graph_lock;

/* Words of the recording that several threads write: plain in the format, atomic here. */
#define shared_get(p)	 __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define shared_set(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define shared_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)

uint32_t stack_here(void);				/* this thread's Python stack */
static inline uint32_t stack_before(void)		/* as of this thread's last walk */
{
	return rec_self->chain.off ? rec_self->chain.off | CW_FREED_AFTER : 0;
}

/* After stack_here(), if that found one: the number of the innermost module, an index into MODULES; 0 = none (rec_modules.c). `ticks`: now, or 0
 * where the clock is not read: then no name is too old. */
uint32_t module_here(struct rec_thread *t, uint64_t ticks);

/* Turns of loops (rec_turns.c): as of this thread's last walk. */
void turns_start(void);
void turns_seen(struct py_chain *c);
static inline void turns_unseen(struct py_chain *c)	/* it has no frames, or they are not in the chain */
{
	rec_self->turns.n = 0;
	c->first = 1;
}
bool turn_table_start(void);			/* for PyTorch's blocks; the next two under their lock */
uint32_t turn_keep(struct rec_thread *t);	/* off of a cw_turn, 0 = in no loop; turn_drop() must follow */
void turn_drop(uint32_t turn);
uint32_t turn_serial(uint32_t turn);		/* tells whether that cw_turn is another one by now; 0 for 0 */
uint32_t turns_now(const struct rec_thread *t, struct cw_loop_turn *out, uint32_t max);	/* innermost first */

/* What would catch an exception that leaves the innermost frame of this thread's last walk; innermost first (rec_python_handlers.c). */
#define HANDLERS_UNKNOWN 0xffffffffu
uint32_t handlers_now(struct cw_handler *out, uint32_t max);

uint32_t stack_intern(uint64_t hash, const struct cw_frame *frames, uint32_t n, uint32_t flags);
uint32_t stack_lookup(uint64_t hash);

uint32_t function_new(uint64_t handle, uint64_t key, uint32_t old);

/* Handles are pointers: spread their bits before they become an index. */
static inline uint64_t function_key(uint64_t handle)
{
	return (handle * 0x9e3779b97f4a7c15ull) | 1;
}

/* 0 = unknown. After a module unload, a handle may mean another function: it gets a new number. */
static inline uint32_t function_number(uint64_t handle)
{
	uint64_t key = function_key(handle);
	uint32_t number = handle ? table_get(rec.function_index, FUNCTION_SLOTS, key) : 0;

	if (likely(number) && likely(rec.functions[number].generation ==
				     atomic_load_explicit(&rec.module_generation, memory_order_relaxed)))
		return number;
	return handle ? function_new(handle, key, number) : 0;
}
void function_learn(uint32_t number, bool launched);	/* name, parameter layout */
void function_is_plain(uint64_t handle);		/* a CUfunction, not a CUkernel */
bool function_plain(uint32_t number);
void function_looked_up(uint64_t handle, const char *name, bool stock);
void function_same_code(uint64_t handle, uint64_t other);	/* `handle` is stock if `other` is */
uint32_t function_named(uint64_t handle, const char *name);	/* a handle the driver does not know */
static inline bool function_stock(uint32_t number)	/* a kernel of PyTorch's or NVIDIA's own (rec_stock.c) */
{
	return __atomic_load_n(&rec.functions[number].stock, __ATOMIC_RELAXED);
}
static inline bool function_settled(uint32_t number)	/* nothing to do at its launches but record them */
{
	return __atomic_load_n(&rec.functions[number].settled, __ATOMIC_RELAXED);
}
static inline const struct cw_layout *function_layout(uint32_t number)
{
	return number ? at(shared_get(&rec.functions[number].layout)) : NULL;
}

/* Whose code is it? (rec_stock.c) Handles of modules and libraries; `image` NULL: loaded from a file. */
void stock_forget(void);
bool stock_library(const char *path);	/* is it one of NVIDIA's? */
bool stock_loaded(uint64_t handle, const void *image, const void *caller);
bool stock_code(uint64_t handle);
bool stock_function(const struct cw_function *f);	/* has been launched */

struct call_note {
	enum api api;
	CUresult result;
	const uint64_t *arg;
	uint32_t n_args;
	uint64_t out;
};
void note_call(const struct call_note *c);

struct launch_note {
	enum api api;
	CUresult result;
	uint64_t function;
	uint32_t grid[3], block[3], shared, cluster[3];
	uint64_t stream;
	void **params;
	void **extra;
	uint16_t flags;
};
void note_launch(const struct launch_note *l);
void note_graph_launch(uint64_t exec, uint64_t stream, CUresult result);

/* The driver's allocations: device memory, pinned host memory, mappings (rec_driver_alloc.c). */
void driver_alloc_add(uint64_t addr, uint64_t size, enum cw_memory kind, int device, uint64_t extra);
bool driver_alloc_take(uint64_t addr, struct cw_allocation *taken);	/* removes; false if unknown */
void driver_alloc_put(const struct cw_allocation *a);
void driver_alloc_freed(const struct cw_allocation *a);			/* after driver_alloc_take: the driver freed it */
void driver_alloc_take_range(uint64_t from, uint64_t size);		/* the mappings in it */
void driver_alloc_take_device(int device);
void driver_alloc_inexact(void);

/* PyTorch's allocator allocated a block (size above 0) or freed one, and its totals after that. Blocks are parts of
 * the driver's allocations (rec_torch_block.c). */
struct torch_block_note {
	uint64_t addr;
	int64_t size;
	uint64_t allocated, reserved;
	int device;
	bool later;			/* freed, and other streams may still use it */
	uint64_t asked;			/* allocated: bytes that PyTorch was asked for, 0 = less than CW_EVENT_UNIT or not known */
};
void torch_block_start(void);
void torch_report(const struct torch_block_note *b);	/* as PyTorch's allocator does, to us and to its profiler */
uint64_t torch_stream(int device);	/* PyTorch's current stream, as PyTorch numbers it */
void torch_block_made(const struct torch_block_note *b);
void torch_block_freed(const struct torch_block_note *b);
void torch_block_is_workspace(uint64_t addr, const void *function);	/* of the library that contains this function */
bool torch_block_workspace(uint64_t addr);				/* is it one */
bool torch_block_known_workspace(uint64_t addr);			/* the last one this thread reported */
bool torch_block_at(uint64_t addr, struct cw_allocation *block);		/* a live one that begins there */
bool torch_block_lock(void);	/* for what is written beside them; false: there are none, or it is taken */
void torch_block_unlock(void);
void ranges_keep(void);			/* the process's own memory as it is now; once */

void capture_begin(uint64_t stream, uint32_t stack);
void capture_end(uint64_t stream, uint64_t graph);
void capture_abandon(uint64_t stream);	/* if there is one */
uint32_t capture_newest(void);		/* the number of the capture in progress, 0 = none */
bool capture_made(uint64_t exec);	/* from a capture: all its launches were seen */
void capture_instantiated(uint64_t graph, uint64_t exec);
void capture_graph_gone(uint64_t graph);
void capture_exec_gone(uint64_t exec);
#define CAPTURE_UNKNOWN UINT32_MAX
uint32_t capture_of(uint64_t stream);	/* the number of the one this stream belongs to now; 0 = none */
bool capture_between(uint32_t first, uint32_t last);	/* is there one with such a number, or a graph of it? */
void capture_keep(struct cw_launch *l, uint64_t stream);
void graph_start(void);
uint32_t capture_stack(void);

/* A failure under construction: zeroed, then filled, then noted. */
void fail_init(struct cw_failure *f, enum cw_source source, uint32_t code);
void fail_driver(enum api api, CUresult result, const uint64_t *arg, uint32_t n_args);
void fail_add_function(struct cw_failure *f, uint64_t handle);
void fail_add_library(struct cw_failure *f, const void *address);
void fail_add_memory(struct cw_failure *f, uint64_t request);
void lookup_found(void);		/* a kernel, by the calling thread */
void fail_note(struct cw_failure *f);
bool code_is_sticky(uint32_t code);
void rec_read_file(const char *path, char *to, size_t size);	/* NULs become spaces */
/* Our own memory, read by the kernel: false for a bad address, where reading it ourselves would crash. */
bool rec_read_memory(void *to, const void *from, size_t n);
size_t rec_put_number(char *to, size_t size, long v);
void text_copy(char *to, size_t size, const char *from, size_t len);

void env_load(void);				/* before the program has threads */
void env_look(void);				/* again, when a recording begins */
const char *rec_getenv(const char *name);	/* as of then; NULL = not set */
void env_copy(const char *name, char *to, size_t size);		/* the same; CW_NOT_SET = not set */
void env_copy_now(const char *name, char *to, size_t size);	/* as it is now */

void sandbox_load(void);
bool sandbox_is_new(void);		/* the program has restricted its system calls: make none that it would not make */

static inline CUresult failed_before(void)
{
	return atomic_load_explicit(&rec.dump_error, memory_order_relaxed);
}
bool dump_armed(void);
bool dump_exists(void);
void dump_start(void);			/* after the first successful cuInit */
void dump_step_aside(void);		/* a profiler subscribes */
void dump_forget(void);
void dump_left(void);			/* this thread has jumped out of a call that may have waited for a dump */
/* The true result of a call that reports finished work, successful or not. */
CUresult dump_check(CUresult result);
CUresult dump_check_again(void);	/* the same after a successful one, without a system call if there was one just before */
CUresult dump_before_release(void);	/* before contexts are released: is there an unreported fault? */
/* The same; true: the program must not exit with success. `in_order`: its exit handlers run, so that it is hardly in the
 * middle of a driver call. */
bool dump_at_exit(bool in_order);

enum cw_reason dump_arm_trigger(const char *folder, const char *pipe);

enum { LOOK_DUE = 1, LOOK_BUSY };	/* 0: no kernel since the last look */
extern _Atomic uint8_t look_due[CW_MAX_DEVICES];
extern _Atomic bool look_graphs;	/* a graph may contain a kernel that is not stock */

void look_forget(void);
void look_prepare(void);		/* code that is not stock was loaded: its kernels may follow */
void look_prepare_first(void);		/* any code was looked up: for the look at the end */
void look_context_gone(uint64_t context);
void look_primary_gone(int device, bool certainly);
CUresult look_now(int device);
/* Before the end, whatever ran. True: the GPU is not stopped. `error`: the driver's, if it has one by now. */
bool look_last(CUresult *error);

/* A kernel was launched that may go astray. */
static inline void look_later(int device)
{
	_Atomic uint8_t *due = &look_due[(unsigned)device % CW_MAX_DEVICES];

	if (atomic_load_explicit(due, memory_order_relaxed) != LOOK_DUE)
		atomic_store_explicit(due, LOOK_DUE, memory_order_relaxed);
}

void hang_forget(void);			/* a new recording begins */
void hang_start(void);			/* after the first successful cuInit and dump_start */
void wait_left(void);			/* this thread has jumped out of a call that waited */
void wait_mark(enum api api);
void wait_unmark(CUresult result);
void wait_poll(enum api api, CUresult result);

static inline void wait_begin(enum api api)
{
	if (unlikely(rec.waits))
		wait_mark(api);
}

static inline void wait_end(CUresult result)
{
	if (unlikely(rec.waits))
		wait_unmark(result);
}

typedef void (*sim_given_anew)(uint64_t addr, size_t size);
extern _Atomic(sim_given_anew) reads_given_anew;
void reads_start(void);			/* after the first successful cuInit */
void words_start(void);			/* likewise */
void copies_start(void);		/* likewise */

/* What the program copies to the GPU (rec_copies.c). */
struct cw_copies;
extern _Atomic(bool) copies_wanted;
static inline bool copies_on(void)
{
	return likely(atomic_load_explicit(&copies_wanted, memory_order_relaxed));
}
/* Without a stream, the `_ptsz` twin of a function means another one: what it records names that. */
#define CU_STREAM_PER_THREAD 2u
static inline __attribute__((always_inline)) uint64_t stream_meant(const char *function, uint64_t stream)
{
	size_t n = __builtin_strlen(function);

	return !stream && n > 5 && !__builtin_memcmp(function + n - 5, "_ptsz", 5) ? CU_STREAM_PER_THREAD : stream;
}

struct copied {
	uint64_t to, from, bytes, stream;
	bool in_stream;			/* the call names it */
	bool to_gpu, from_gpu;		/* that is known: the call says so */
};
void copies_keep(const struct copied *c);	/* after the call, and after it was noted */
void copies_shared(void);		/* another process may write this one's memory from now on */
void copies_not_of_pinned(void);	/* some pinned memory should not be read by the processor */

enum memory_at { MEMORY_ELSEWHERE, MEMORY_OF_HOST, MEMORY_PINNED, MEMORY_OF_GPU };
enum memory_at memory_at(uint64_t address);	/* asks the driver */

/* Single values that the program copies to the host (rec_numbers.c): is one NaN or infinite? */
static inline bool number_single(uint64_t bytes)
{
	return bytes == 2 || bytes == 4 || bytes == 8;
}
void number_copied(const struct copied *c, bool arrived);	/* a single one, from and to anywhere */
void number_waited(uint64_t stream);
static inline void number_arrived(void)	/* as the program knows: it may write there now */
{
	rec_self->awaited.bytes = 0;
}

/* PyTorch made a tensor of a block, or took it back: what the host wrote there is not the contents of the next one. */
static inline void reads_block_anew(uint64_t addr, uint64_t size)
{
	sim_given_anew tell = atomic_load_explicit(&reads_given_anew, memory_order_relaxed);

	if (unlikely(tell != NULL))
		tell(addr, size);
}

void python_start(void);		/* find the interpreter; fails silently */
void python_hook(void);			/* install the audit hook when we hold the GIL */
void python_hook_early(void);		/* the same, before Python has started */
uint32_t python_stack(void);
bool python_string(const void *unicode, char *buf, size_t size);
uint32_t python_code_frame(const void *code, uint32_t line, struct cw_frame *out);
void torch_start(void);			/* resolve PyTorch's functions */
bool torch_backward(struct rec_thread *t, uint32_t *forward_stack, uint32_t *node_name);
void exit_start(void);
void exit_is_near(void);		/* Python is ending, the process not yet */
void exit_at_once_after_fault(void);	/* without the driver's exit handlers */

bool cupti_subscribes(const char *name);	/* a function that subscribes a profiler */
bool cudart_has(const char *name);	/* a CUDA runtime function that we wrap */
void device_facts(void);
int current_device(void);		/* -1: none, or no context */
void context_made(uint64_t context, int device);
bool context_ever(void);		/* the process has had one */
bool context_is_only(void);		/* the process has had one context, and it is the current one */
void context_peer(uint64_t context);	/* kernels of the current one may access its memory */

/* The same, cached until the thread's current context changes: every launch needs it. */
static inline int thread_device(struct rec_thread *t)
{
	if (unlikely(t->device < 0))
		t->device = current_device();
	return t->device;
}

/* A call that waits has succeeded. The error if a look or a dump shows one, else 0. */
static inline CUresult check_after_wait(void)
{
	unsigned device = (unsigned)thread_device(rec_self) % CW_MAX_DEVICES;

	if (unlikely(atomic_load_explicit(&look_due[device], memory_order_relaxed)))
		return dump_check(look_now((int)device));
	return dump_check_again();
}

#pragma GCC visibility pop

#endif
