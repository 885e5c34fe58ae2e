/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: PyTorch's tensors, through functions of ours in the table of PyTorch's own allocator.
 *
 * With PyTorch's cache switched off it refuses stream capture; with a pluggable allocator, memory_allocated(), the
 * query for the largest free block, snapshots and more raise. So the allocator stays the one that it is: its object gets
 * a copy of its table of virtual functions in which those that hand out or take back memory are ours. Which slot is
 * which is read from PyTorch itself: CUDAPluggableAllocator has the same base class, its table and its functions are
 * exported with their names. At the first tensor, trial blocks of the allocator's own show whether what we know about
 * its answers is true; if not, the program is not guarded, and told so.
 *
 * PyTorch's functions may throw through ours. So none of them is called between rec_enter() and rec_leave().
 */
#include "recorder/guard/rec_guard.h"

#include <sched.h>
#include <string.h>

#define SLOTS	96u		/* of a table; today's has about 60 */
#define POOLS	64u
#define ACTIVE	8u		/* pools in use at once: one in a thread is usual */
#define TRIAL	3500u		/* bytes: no multiple of 512, and no other figure that changes */
#define BLOCK	3584		/* that the allocator gives for it */
#define SEGMENT	((int64_t)2 << 20)	/* what the allocator reserves for it */
#define STATS	30u		/* of 32 bytes, at the start of what getDeviceStats returns */
#define STATS_SIZE 4096u	/* more than all of it */

#define PLUGGABLE(name, types)	"_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator" name types
#define PLUGGABLE_CONST(name, types) "_ZNK5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator" name types
#define PAIR "St4pairIyyE"

/* Our name for a slot, the symbol of the pluggable allocator's function in it, is it needed? */
#define SLOT_LIST(X)                                                                                   \
	X(allocate, PLUGGABLE("8allocate", "Em"), true)                                                \
	X(raw_deleter, PLUGGABLE_CONST("11raw_deleter", "Ev"), true)                                   \
	X(raw_alloc, PLUGGABLE("9raw_alloc", "Em"), true)                                              \
	X(raw_alloc_with_stream, PLUGGABLE("21raw_alloc_with_stream", "EmP11CUstream_st"), true)       \
	X(raw_delete, PLUGGABLE("10raw_delete", "EPv"), true)                                          \
	X(record_stream, PLUGGABLE("12recordStream", "ERKN3c107DataPtrENS3_4cuda10CUDAStreamE"), true) \
	X(base_allocation, PLUGGABLE("17getBaseAllocation", "EPvPm"), true)                            \
	X(stats, PLUGGABLE("14getDeviceStats", "Ea"), true)                                            \
	X(reset_peak, PLUGGABLE("14resetPeakStats", "Ea"), true)                                       \
	X(reset_ever, PLUGGABLE("21resetAccumulatedStats", "Ea"), false)                               \
	X(begin_pool, PLUGGABLE("19beginAllocateToPool", "Ea" PAIR "St8functionIFbP11CUstream_stEE"), true) \
	X(end_pool, PLUGGABLE("17endAllocateToPool", "Ea" PAIR), true)                                 \
	X(release_pool, PLUGGABLE("11releasePool", "Ea" PAIR), true)                                   \
	X(empty_cache, PLUGGABLE("10emptyCache", "E" PAIR), false)                                     \
	X(share, PLUGGABLE("14shareIpcHandle", "EPv"), true)                                           \
	X(get_fraction, PLUGGABLE("17getMemoryFraction", "Ea"), false)                                 \
	X(set_fraction, PLUGGABLE("17setMemoryFraction", "Eda"), false)                                \
	X(copy_async, PLUGGABLE("11memcpyAsync", "EPviPKvimP11CUstream_stb"), true)

enum slot_id {
#define X(id, symbol, needed) SLOT_##id,
	SLOT_LIST(X)
#undef X
	SLOT_COUNT
};

static const struct { const char *symbol; bool needed; } slots[SLOT_COUNT] = {
#define X(id, symbol, needed) [SLOT_##id] = {symbol, needed},
	SLOT_LIST(X)
#undef X
};

#define TABLE "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE"
#define ALLOCATOR "_ZN3c104cuda20CUDACachingAllocator9allocatorE"

/* c10::DataPtr: what data() returns, the deleter, its context, the device. */
struct data_ptr { uint64_t data, deleter, context; int8_t type, index; uint8_t more[6]; uint64_t room[4]; };
struct stat { int64_t current, peak, allocated, freed; };
struct c10_cuda_stream { uint64_t device, id; };

/* What one of the allocator's statistics is about: nothing of ours, blocks, what was asked for, how many, segments. */
enum stat_of { STAT_NONE, STAT_ALLOCATED, STAT_REQUESTED, STAT_COUNT, STAT_RESERVED, STAT_KINDS };

enum trial { TRIAL_DUE, TRIAL_PASSED, TRIAL_UNDER_WAY };

static struct {
	_Atomic uint32_t generation;		/* of the recording in which it was installed */
	const void *table[SLOTS + 2];		/* ours; the first two words belong to the type */
	const void *real[SLOT_COUNT];
	uint64_t deleter;			/* PyTorch's own */
	struct elf_object library;
	struct c10_cuda_stream (*current)(int8_t device);
	uint64_t (*stream_of)(const struct c10_cuda_stream *s);
	uint32_t (*copy_peer)(void *, int, const void *, int, size_t, uint64_t);
	_Atomic uint32_t trial;			/* enum trial */
	bool through;				/* it asks the driver for every tensor: those are guarded there */
	uint8_t stats[STATS];			/* enum stat_of */
	/* at most at once; in all; what was there when the latter was set to 0 */
	struct peak { int64_t of[STAT_KINDS], ever[STAT_KINDS], since[STAT_KINDS]; } peaks[CW_MAX_DEVICES];
	double fraction[CW_MAX_DEVICES];	/* of the card that PyTorch may use; 0 = all of it */
	struct { uint64_t id[2]; uint32_t state, uses; } pool[POOLS];	/* uses: graphs that were captured into it and are not gone */
	uint32_t n_pools;
	struct { uint64_t id[2]; uint32_t tid; } active[ACTIVE];	/* pools that tensors go to now, of captures or warm-ups */
	uint32_t n_active;
	_Atomic uint32_t n_begun;		/* more than n_active: not all are known */
} torch;

static struct spin pool_lock;
LOCK_LISTED(guard_pools, pool_lock);

#define REAL(id, type) ((type)(uintptr_t)torch.real[SLOT_##id])
typedef struct data_ptr *allocate_fn(struct data_ptr *, void *, size_t);

/* Memory of a captured graph stays mapped until the graph is gone. A pool that is used outside of a capture first (warm-up of
 * torch.compile's graphs, MemPool) is handed back and forth by its address: those are left to the real allocator. */
enum pool_state { POOL_NEW, POOL_GUARDED, POOL_PLAIN };

static uint32_t pool_find(const uint64_t id[2], bool add)
{
	for (uint32_t i = 0; i < torch.n_pools; i++)
		if (torch.pool[i].id[0] == id[0] && torch.pool[i].id[1] == id[1])
			return i + 1;
	if (!add || torch.n_pools == POOLS)
		return 0;
	torch.pool[torch.n_pools].id[0] = id[0];
	torch.pool[torch.n_pools].id[1] = id[1];
	torch.pool[torch.n_pools].state = id[0] ? POOL_NEW : POOL_PLAIN;	/* 0: a MemPool, which others than graphs use */
	torch.pool[torch.n_pools].uses = 0;
	return ++torch.n_pools;
}

static void active_add(uint64_t id0, uint64_t id1)
{
	const uint64_t id[2] = {id0, id1};
	uint32_t pool;

	atomic_fetch_add(&torch.n_begun, 1);
	if (!rec_enter())
		return;
	rec_nesting = 2;
	if (spin_try(&pool_lock)) {
		pool = pool_find(id, true);
		if (pool)
			torch.pool[pool - 1].uses++;
		if (torch.n_active < ACTIVE) {
			torch.active[torch.n_active].id[0] = id0;
			torch.active[torch.n_active].id[1] = id1;
			torch.active[torch.n_active++].tid = rec_self->tid;
		}
		spin_done(&pool_lock);
	}
	rec_leave();
}

static void active_remove(uint64_t id0, uint64_t id1)
{
	uint32_t i;

	if (atomic_load(&torch.n_begun))
		atomic_fetch_sub(&torch.n_begun, 1);
	if (!rec_enter())
		return;
	rec_nesting = 2;
	if (spin_try(&pool_lock)) {
		for (i = torch.n_active; i && (torch.active[i - 1].id[0] != id0 || torch.active[i - 1].id[1] != id1); i--)
			;
		for (; i && i < torch.n_active; i++)
			torch.active[i - 1] = torch.active[i];
		torch.n_active -= i != 0;
		spin_done(&pool_lock);
	}
	rec_leave();
}

/* The one that this thread has begun, or the only one: backward has threads of its own. NULL: it may be one or the other, and memory
 * of the wrong one would be unmapped too early. */
static const uint64_t *active_now(void)
{
	uint32_t mine = 0, found = 0;

	for (uint32_t i = 0; i < torch.n_active; i++)
		if (torch.active[i].tid == rec_self->tid) {
			mine++;
			found = i;
		}
	if (torch.n_active != atomic_load(&torch.n_begun) || mine > 1 || (!mine && torch.n_active != 1))
		return NULL;
	return torch.active[found].id;
}

/* The pool into which a tensor of this stream goes now: 0 = none. False: it is not guarded. */
static bool pool_now(uint64_t stream, uint32_t *pool)
{
	const uint64_t *id;
	int capturing = 0;

	*pool = 0;
	if (drv.cuStreamIsCapturing && drv.cuStreamIsCapturing((void *)stream, &capturing) != 0)
		capturing = 0;
	if (!atomic_load(&torch.n_begun))
		return !capturing;
	if (!spin_try(&pool_lock))
		return false;
	id = active_now();
	*pool = id ? pool_find(id, true) : 0;
	if (*pool && torch.pool[*pool - 1].state == POOL_NEW)
		torch.pool[*pool - 1].state = capturing ? POOL_GUARDED : POOL_PLAIN;
	capturing = *pool && torch.pool[*pool - 1].state == POOL_GUARDED && capturing;
	spin_done(&pool_lock);
	return capturing;
}

static void totals_of(int device, int64_t *of)
{
	struct guard_totals t;

	guard_totals(device, &t);
	of[STAT_NONE] = 0;
	of[STAT_ALLOCATED] = (int64_t)t.allocated;
	of[STAT_REQUESTED] = (int64_t)t.requested;
	of[STAT_COUNT] = (int64_t)t.count;
	of[STAT_RESERVED] = (int64_t)t.reserved;
}

static void told(uint64_t addr, int64_t size, int device)
{
	struct peak *peak = &torch.peaks[device];
	int64_t now[STAT_KINDS];

	totals_of(device, now);
	for (int i = 0; i < STAT_KINDS; i++)
		if (now[i] > peak->of[i])
			peak->of[i] = now[i];
	torch_report(&(struct torch_block_note){.addr = addr, .size = size, .device = device,
						.allocated = (uint64_t)now[STAT_ALLOCATED],
						.reserved = (uint64_t)now[STAT_RESERVED]});
}

static void ever_add(struct peak *peak, enum stat_of what, int64_t more)
{
	__atomic_fetch_add(&peak->ever[what], more, __ATOMIC_RELAXED);
}

static bool has_limit(int device)
{
	return device >= 0 && device < CW_MAX_DEVICES && torch.fraction[device] > 0 && guard_card(device);
}

static double limit_of(int device)
{
	return torch.fraction[device] * (double)guard_card(device);
}

static void our_set_fraction(void *self, double fraction, int8_t device)
{
	if (device >= 0 && device < CW_MAX_DEVICES)
		torch.fraction[device] = fraction < 1 ? fraction : 0;
	REAL(set_fraction, void (*)(void *, double, int8_t))(self, fraction, device);
}

static int64_t real_reserved(void *self, int device)
{
	struct stat all[STATS_SIZE / sizeof(struct stat)];

	REAL(stats, struct stat * (*)(struct stat *, void *, int8_t))(all, self, (int8_t)device);
	for (uint32_t i = 0; i < STATS; i++)
		if (torch.stats[i] == STAT_RESERVED)
			return all[i].current;
	return 0;
}

static bool is_over_limit(void *self, size_t size, int device)
{
	return has_limit(device) &&
	       (double)guard_in_use(device, size) + (double)real_reserved(self, device) > limit_of(device);
}

/* Before it allocates: what is guarded is not left for it. It throws when that is too little. */
static void limit_lower(void *self, int device)
{
	double left;

	if (!has_limit(device) || torch.through)
		return;
	left = limit_of(device) - (double)guard_in_use(device, 0);
	REAL(set_fraction, void (*)(void *, double, int8_t))
	(self, left > 0 ? left / (double)guard_card(device) : 0, (int8_t)device);
}

static double our_get_fraction(void *self, int8_t device)
{
	return has_limit(device) ? torch.fraction[device] : REAL(get_fraction, double (*)(void *, int8_t))(self, device);
}

/* 0: PyTorch's own allocator must do it. */
static uint64_t tensor_new(void *self, size_t size, int device, uint64_t stream)
{
	uint64_t addr = 0;
	uint32_t pool;

	if (!size || torch.through || device < 0 || device >= CW_MAX_DEVICES || is_over_limit(self, size, device) ||
	    !rec_enter())
		return 0;
	rec_nesting = 2;
	if (!pool_now(stream, &pool))
		shared_add(&guard.told->skipped[CW_GUARD_SKIP_POOL], 1);
	else
		addr = guard_alloc(&(struct guard_request){
			.size = size, .stream = stream, .torch = true, .device = device, .pool = pool});
	rec_leave();
	if (!addr)
		return 0;
	ever_add(&torch.peaks[device], STAT_ALLOCATED, (int64_t)guard_block(size));
	ever_add(&torch.peaks[device], STAT_REQUESTED, (int64_t)size);
	ever_add(&torch.peaks[device], STAT_COUNT, 1);
	told(addr, (int64_t)size, device);
	return addr;
}

/* False: it is not one of ours. */
static bool tensor_gone(uint64_t addr)
{
	struct guarded g;
	bool entered, inherited, ours;

	if (!addr)
		return false;
	entered = rec_enter();
	if (entered)
		rec_nesting = 2;
	inherited = guard_of_parent(addr);
	ours = !inherited && guard_find(addr, &g) && g.addr == addr && g.torch;
	if (ours && entered)
		rec_leave();
	if (ours) {
		told(addr, -(int64_t)g.size, g.device);
		entered = rec_enter();
		if (entered)
			rec_nesting = 2;
		ours = guard_free(addr, g.stream[0]);
	}
	if (entered)
		rec_leave();
	return ours || inherited;
}

static uint64_t stream_now(int device)
{
	struct c10_cuda_stream s = torch.current((int8_t)device);

	return torch.stream_of(&s);
}

static void trial_run(void *self);

static inline void trial_first(void *self)
{
	while (unlikely(atomic_load_explicit(&torch.trial, memory_order_acquire) != TRIAL_PASSED))
		trial_run(self);
}

static void our_deleter(void *p)
{
	if (!tensor_gone((uintptr_t)p) && p)
		((void (*)(void *))(uintptr_t)torch.deleter)(p);
}

/* Of no bytes, PyTorch's allocator makes an answer that has all but the memory. */
static struct data_ptr *our_allocate(struct data_ptr *out, void *self, size_t size)
{
	uint64_t addr;

	trial_first(self);
	REAL(allocate, allocate_fn *)(out, self, 0);
	addr = tensor_new(self, size, out->index, size ? stream_now(out->index) : 0);
	if (!addr && size) {
		limit_lower(self, out->index);
		REAL(allocate, allocate_fn *)(out, self, size);
	}
	if (addr)
		out->data = out->context = addr;
	if (out->deleter == torch.deleter)
		out->deleter = (uintptr_t)our_deleter;
	return out;
}

static void *our_raw_alloc_with_stream(void *self, size_t size, uint64_t stream)
{
	struct data_ptr none;
	uint64_t addr;

	trial_first(self);
	REAL(allocate, allocate_fn *)(&none, self, 0);	/* the device that is current */
	addr = tensor_new(self, size, none.index, stream);
	if (addr)
		return (void *)(uintptr_t)addr;
	limit_lower(self, none.index);
	return REAL(raw_alloc_with_stream, void *(*)(void *, size_t, uint64_t))(self, size, stream);
}

static void *our_raw_alloc(void *self, size_t size)
{
	struct data_ptr none;
	uint64_t addr;

	trial_first(self);
	REAL(allocate, allocate_fn *)(&none, self, 0);
	addr = tensor_new(self, size, none.index, size ? stream_now(none.index) : 0);
	if (addr)
		return (void *)(uintptr_t)addr;
	limit_lower(self, none.index);
	return REAL(raw_alloc, void *(*)(void *, size_t))(self, size);
}

static void our_raw_delete(void *self, void *p)
{
	if (!tensor_gone((uintptr_t)p))
		REAL(raw_delete, void (*)(void *, void *))(self, p);
}

static void *our_raw_deleter(const void *self)
{
	(void)self;
	return (void *)(uintptr_t)our_deleter;
}

/* The real one does nothing for a block whose deleter is not its own. */
static void our_record_stream(void *self, const struct data_ptr *p, uint64_t device, uint64_t id)
{
	struct c10_cuda_stream s = {device, id};
	struct data_ptr theirs;
	struct guarded g;

	if (p->data && guard_find(p->data, &g)) {
		guard_used_by(g.addr, torch.stream_of(&s));
		return;
	}
	memcpy(&theirs, p, offsetof(struct data_ptr, room));
	if (theirs.deleter == (uintptr_t)our_deleter)
		theirs.deleter = torch.deleter;
	REAL(record_stream, void (*)(void *, const void *, uint64_t, uint64_t))(self, &theirs, device, id);
}

static void *our_base_allocation(void *self, void *p, size_t *size)
{
	struct guarded g;

	if (!guard_find((uintptr_t)p, &g))
		return REAL(base_allocation, void *(*)(void *, void *, size_t *))(self, p, size);
	if (size)
		*size = g.size;
	return (void *)(uintptr_t)g.addr;
}

/* Its figures, plus ours. The peaks may not have been at the same time: their sum is an upper bound. */
static struct stat *our_stats(struct stat *out, void *self, int8_t device)
{
	const struct peak *peak = &torch.peaks[(uint8_t)device % CW_MAX_DEVICES];
	int64_t now[STAT_KINDS], ever;

	REAL(stats, struct stat * (*)(struct stat *, void *, int8_t))(out, self, device);
	totals_of(device, now);
	for (uint32_t i = 0; i < STATS; i++) {
		enum stat_of what = (enum stat_of)torch.stats[i];

		ever = what == STAT_RESERVED ? now[what] : peak->ever[what];
		out[i].current += now[what];
		out[i].peak += peak->of[what];
		out[i].allocated += ever;
		out[i].freed += ever + (what == STAT_RESERVED ? 0 : peak->since[what]) - now[what];
	}
	return out;
}

static void our_reset_peak(void *self, int8_t device)
{
	totals_of(device, torch.peaks[(uint8_t)device % CW_MAX_DEVICES].of);
	REAL(reset_peak, void (*)(void *, int8_t))(self, device);
}

static void our_reset_ever(void *self, int8_t device)
{
	struct peak *peak = &torch.peaks[(uint8_t)device % CW_MAX_DEVICES];

	totals_of(device, peak->since);
	for (int i = 0; i < STAT_KINDS; i++)
		__atomic_store_n(&peak->ever[i], 0, __ATOMIC_RELAXED);
	REAL(reset_ever, void (*)(void *, int8_t))(self, device);
}

static void our_begin_pool(void *self, int8_t device, uint64_t id0, uint64_t id1, void *filter)
{
	REAL(begin_pool, void (*)(void *, int8_t, uint64_t, uint64_t, void *))(self, device, id0, id1, filter);
	active_add(id0, id1);
}

static void our_end_pool(void *self, int8_t device, uint64_t id0, uint64_t id1)
{
	active_remove(id0, id1);
	REAL(end_pool, void (*)(void *, int8_t, uint64_t, uint64_t))(self, device, id0, id1);
}

/* Graphs may share a pool: it goes with the last one. */
static uint32_t pool_let_go(uint64_t id0, uint64_t id1)
{
	const uint64_t id[2] = {id0, id1};
	uint32_t pool = 0;

	if (!rec_enter())
		return 0;
	rec_nesting = 2;
	if (spin_try(&pool_lock)) {
		pool = pool_find(id, false);
		if (pool && torch.pool[pool - 1].uses)
			torch.pool[pool - 1].uses--;
		if (pool && (torch.pool[pool - 1].uses || torch.pool[pool - 1].state != POOL_GUARDED))
			pool = 0;
		spin_done(&pool_lock);
	}
	rec_leave();
	return pool;
}

static void our_release_pool(void *self, int8_t device, uint64_t id0, uint64_t id1)
{
	uint32_t pool = pool_let_go(id0, id1);

	REAL(release_pool, void (*)(void *, int8_t, uint64_t, uint64_t))(self, device, id0, id1);
	if (pool)
		guard_pool_gone(pool);
}

static void our_empty_cache(void *self, uint64_t id0, uint64_t id1)
{
	REAL(empty_cache, void (*)(void *, uint64_t, uint64_t))(self, id0, id1);
	if (rec_enter()) {
		rec_nesting = 2;
		guard_flush(true);
		guard_cache_emptied();
		rec_leave();
	}
}

static void *our_share(void *out, void *self, void *p)
{
	struct guarded g;

	if (guard_find((uintptr_t)p, &g))
		guard_refuse_sharing();
	return REAL(share, void *(*)(void *, void *, void *))(out, self, p);
}

/* Mapped memory of two devices that are not peers needs the other kind of copy. */
static uint32_t our_copy_async(void *self, void *to, int to_device, const void *from, int from_device, size_t n,
			       uint64_t stream, bool p2p)
{
	if (!p2p && to_device != from_device && torch.copy_peer)
		return torch.copy_peer(to, to_device, from, from_device, n, stream);
	return REAL(copy_async, uint32_t(*)(void *, void *, int, const void *, int, size_t, uint64_t, bool))(
		self, to, to_device, from, from_device, n, stream, p2p);
}

#define REFUSED \
	"this PyTorch's allocator does not answer as expected, so its tensors cannot be guarded; run without --guard"

static bool is_code_of(const struct elf_object *o, uint64_t address)
{
	return address >= o->start && address < o->end;
}

static bool is_block(const struct data_ptr *p)
{
	return p->data && p->context == p->data && p->type == 1 && p->index >= 0 && p->index < CW_MAX_DEVICES &&
	       is_code_of(&torch.library, p->deleter);
}

/* With its cache switched off, or as a front of cudaMallocAsync, it has no figures of its own. */
static bool asks_driver(const struct data_ptr *p)
{
	struct guarded g;

	return guard_find(p->data, &g) && g.addr == p->data;
}

static enum stat_of stat_of(int64_t first, int64_t second)
{
	switch (second) {
	case BLOCK: return STAT_ALLOCATED;
	case TRIAL: return STAT_REQUESTED;
	case 1:	    return STAT_COUNT;
	default:    return first == SEGMENT && !second ? STAT_RESERVED : STAT_NONE;
	}
}

/* The first block may need a segment, the second one not: the figures that the second one changes are about tensors. */
static void trial_run(void *self)
{
	struct stat was[STATS_SIZE / sizeof(struct stat)], first[STATS_SIZE / sizeof(struct stat)],
		then[STATS_SIZE / sizeof(struct stat)];
	struct stat *(*stats)(struct stat *, void *, int8_t) =
		REAL(stats, struct stat * (*)(struct stat *, void *, int8_t));
	struct data_ptr none, one, two;
	uint32_t due = TRIAL_DUE, found = 0;

	if (!atomic_compare_exchange_strong(&torch.trial, &due, TRIAL_UNDER_WAY)) {
		sched_yield();		/* another thread is at it */
		return;
	}
	memset(was, 0, sizeof(was));
	memset(first, 0, sizeof(first));
	memset(then, 0, sizeof(then));
	REAL(allocate, allocate_fn *)(&none, self, 0);
	stats(was, self, none.index);
	REAL(allocate, allocate_fn *)(&one, self, TRIAL);
	stats(first, self, none.index);
	REAL(allocate, allocate_fn *)(&two, self, TRIAL);
	stats(then, self, none.index);
	if (none.data || none.context || !is_block(&one) || !is_block(&two) || none.deleter != one.deleter ||
	    none.index != one.index)
		guard_refuse(REFUSED);
	torch.deleter = one.deleter;
	for (uint32_t i = 0; i < STATS; i++) {
		torch.stats[i] = (uint8_t)stat_of(first[i].current - was[i].current, then[i].current - first[i].current);
		found += torch.stats[i] == STAT_ALLOCATED;
	}
	torch.through = asks_driver(&two) || (!found && (guard.sample > 1 || guard.only[0]));
	if (found || asks_driver(&two))
		__atomic_fetch_or(&guard.told->flags, CW_GUARD_TORCH, __ATOMIC_RELAXED);
	((void (*)(void *))(uintptr_t)torch.deleter)((void *)(uintptr_t)two.data);
	((void (*)(void *))(uintptr_t)torch.deleter)((void *)(uintptr_t)one.data);
	if (!found && !torch.through)
		guard_refuse(REFUSED);
	atomic_store(&torch.trial, TRIAL_PASSED);
}

static const void *ours_of(enum slot_id id)
{
	switch (id) {
#define X(name, symbol, needed) case SLOT_##name: return (const void *)(uintptr_t)our_##name;
	SLOT_LIST(X)
#undef X
	default: return NULL;
	}
}

/* The slot in which the pluggable allocator's table has this function; 0 = none. The table ends before a word that is no
 * code of either library. */
static uint32_t slot_of(const void *const *table, const void *function)
{
	for (uint32_t i = 2; function && i < SLOTS + 2; i++)
		if (table[i] == function)
			return i;
	return 0;
}

static bool slots_find(const struct elf_object *cuda, uint32_t *at_slot)
{
	const void *const *table = elf_symbol(cuda, TABLE);

	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		at_slot[i] = table ? slot_of(table, elf_symbol(cuda, slots[i].symbol)) : 0;
		if (!at_slot[i] && slots[i].needed)
			return false;
	}
	return true;
}

static void install(void **object, const uint32_t *at_slot)
{
	const void *const *was = (const void *const *)*object - 2;

	size_t room = torch.library.end - (uintptr_t)was, all = sizeof(torch.table);

	memcpy(torch.table, was, (uintptr_t)was < torch.library.end && room < all ? room : all);
	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		if (!at_slot[i])
			continue;
		torch.real[i] = was[at_slot[i]];
		torch.table[at_slot[i]] = ours_of((enum slot_id)i);
	}
	__atomic_store_n(object, (void *)(torch.table + 2), __ATOMIC_RELEASE);
}

bool guard_torch_guarded(void)
{
	return atomic_load(&torch.trial) == TRIAL_PASSED;
}

bool guard_torch_through(void)
{
	return torch.through;
}

/* When PyTorch is found, which may be long before it has a tensor. */
void guard_torch_start(void)
{
	uint32_t at_slot[SLOT_COUNT], was = atomic_load(&torch.generation);
	struct elf_object cuda, runtime;
	void **allocator, **object;

	if (!guard_on() || was == rec.generation || !elf_find_object("libc10_cuda.so", &torch.library) ||
	    !elf_find_object("libtorch_cuda.so", &cuda))
		return;
	allocator = elf_symbol(&torch.library, ALLOCATOR);
	object = allocator ? __atomic_load_n(allocator, __ATOMIC_ACQUIRE) : NULL;
	if (allocator && !object)
		return;		/* not yet */
	if (!atomic_compare_exchange_strong(&torch.generation, &was, rec.generation))
		return;
	*(void **)&torch.current = elf_symbol(&torch.library, "_ZN3c104cuda20getCurrentCUDAStreamEa");
	*(void **)&torch.stream_of = elf_symbol(&torch.library, "_ZNK3c104cuda10CUDAStream6streamEv");
	if (elf_find_object("libcudart.so", &runtime))
		*(void **)&torch.copy_peer = elf_symbol(&runtime, "cudaMemcpyPeerAsync");
	if (!object || !torch.current || !torch.stream_of || !slots_find(&cuda, at_slot))
		guard_refuse("this PyTorch's allocator is not one that cuwhy knows, so its tensors cannot be guarded; run without --guard");
	if (*object != (void *)(torch.table + 2))	/* a forked child has its parent's */
		install(object, at_slot);
}
