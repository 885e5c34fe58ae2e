/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's own blocks: those that tensors use now, and those freed most recently.
 *
 * PyTorch allocates large segments from the driver and splits them into blocks for tensors; the driver knows
 * nothing of tensors. PyTorch's allocator reports every block it allocates or frees to a profiler, and so to
 * us (rec_torch.c). It holds its own lock while it does, so everything here must be quick.
 */
#include <errno.h>

#include "recorder/guard/rec_guard.h"
#include "rec_live.h"
#include "rec_site.h"

#define LOOK_TICKS 3000000u	/* about a millisecond */
#define SMALL	((int64_t)1 << 20)	/* PyTorch puts blocks up to this size into shared segments, which it rarely frees */

HOT_DATA static struct live_table live = {.chunk = CW_CHUNK_BLOCKS};
LOCK_LISTED(blocks, live.lock);
HOT_DATA static struct {
	_Atomic uint32_t generation;	/* of the recording that the tables belong to */
	_Atomic uint32_t failed;	/* the same, if there was no memory for them */
	_Atomic uint32_t workspaces_gone;
} blocks;

static struct spin start_lock;
LOCK_LISTED(block_start, start_lock);

static void torch_block_lost(void)
{
	if (!shared_get(&rec.h->blocks_inexact_since_ns))
		shared_set(&rec.h->blocks_inexact_since_ns, rec_mono_ns());
	shared_add(&rec.h->lost_blocks, 1);
}

/* Only a program that uses PyTorch pays for the tables: they are created when CUDA starts if PyTorch is loaded, else
 * at the first block. */
void torch_block_start(void)
{
	int saved = errno;
	struct signals signals;
	bool ok;

	signals = signals_block();
	if (!spin_try_early(&start_lock))
		goto out;
	if (blocks.generation != rec.generation && blocks.failed != rec.generation) {
		ok = live_start(&live, CW_RING_FREED);
		turn_table_start();
		if (ok && !guard_on())		/* its addresses are multiples of 512 */
			event_log_start();
		atomic_store(ok ? &blocks.generation : &blocks.failed, rec.generation);
	}
	spin_done(&start_lock);
out:
	signals_unblock(&signals);
	errno = saved;
}

HOT static bool ready(void)
{
	if (unlikely(atomic_load_explicit(&blocks.generation, memory_order_acquire) != rec.generation))
		torch_block_start();
	return blocks.generation == rec.generation && spin_try(&live.lock);
}

bool torch_block_lock(void)
{
	return blocks.generation == rec.generation && spin_try(&live.lock);
}

void torch_block_unlock(void)
{
	spin_done(&live.lock);
}

/* What the card has free tells what is in use besides PyTorch's memory: contexts, code, libraries, other processes. The driver
 * is asked for it now and then, without `--memory-trace` only after it gave or took memory, which takes longer, and never while
 * a stream is captured. */
static __attribute__((noinline)) void look_at_card(int device, uint64_t ticks)
{
	static _Atomic uint64_t looked;
	CUresult (*info)(size_t *, size_t *) = door(ENTRY_cuMemGetInfo_v2);
	size_t free_bytes, total;
	uint32_t nesting = rec_nesting;

	if (ticks - looked < LOOK_TICKS || !info || atomic_load(&rec.captures))
		return;
	looked = ticks;
	atomic_store_explicit(&event_log.look, false, memory_order_relaxed);
	rec_nesting = 2;
	if (info(&free_bytes, &total) == 0)
		events_more(CW_MORE_FREE, device, free_bytes);
	rec_nesting = nesting;
}

/* What the allocator's answer depended on besides the size of the block. */
static inline struct events_block asked_of(const struct torch_block_note *b)
{
	return (struct events_block){.asked = (b->asked + CW_EVENT_UNIT - 1) / CW_EVENT_UNIT * CW_EVENT_UNIT,
				     .stream = torch_stream(b->device),
				     .pool = capture_newest()};
}

/* In backward, most threads have no Python frames: then it is the module whose forward created the node that runs. */
static inline uint32_t block_module(struct rec_thread *t, const struct cw_allocation *a)
{
	uint32_t module = likely(a->stack) ? module_here(t, a->ticks) : 0;

	return likely(module || !t->node_depth) ? module : t->node[t->node_depth - 1].module;
}

HOT void torch_block_made(const struct torch_block_note *b)
{
	struct rec_thread *t = rec_self;
	struct cw_allocation a = { .addr = b->addr, .size = (uint64_t)b->size, .ticks = rec_ticks(),
				  .kind = CW_MEM_TORCH,
				  .device = (int16_t)b->device};
	uint32_t forward = 0, name, turn;
	struct events_block more = {0};

	live_expect(&live, b->addr);
	reads_block_anew(a.addr, a.size);
	a.stack = stack_here();
	if (unlikely(t->node_depth) && torch_backward(t, &forward, &name))
		a.extra = forward;
	a.site = site_number_in(t, &a, forward, block_module(t, &a));
	if (likely(event_log_on() || events_wanted()))
		more = asked_of(b);
	if (unlikely(atomic_load_explicit(&event_log.look, memory_order_relaxed) || events_wanted()))
		look_at_card(b->device, a.ticks);
	if (!ready()) {
		torch_block_lost();
		return;
	}
	if (events_wanted())
		events_block(&more);
	if (event_log_on())
		a.library = event_log_detail(&more, a.size);
	turn = turn_keep(t);
	a.extra |= (uint64_t)turn << 32;
	if (likely(live_put(&live, &a))) {
		rec.h->n_blocks++;
	} else {
		turn_drop(turn);
		torch_block_lost();
	}
	totals_torch(b->device, b->allocated, b->reserved, a.ticks);
	spin_done(&live.lock);
}

void torch_block_is_workspace(uint64_t addr, const void *function)
{
	uint32_t library = library_at(function);	/* may call the loader: not under our lock */
	struct cw_allocation *a;

	if (blocks.generation != rec.generation || !ready())
		return;
	rec_self->workspace = addr;
	rec_self->workspaces_gone = blocks.workspaces_gone;
	a = live_find(&live, addr);
	if (a->addr)
		a->library = library;
	spin_done(&live.lock);
}

bool torch_block_workspace(uint64_t addr)
{
	bool is = false;

	if (blocks.generation == rec.generation && ready()) {
		is = live_find(&live, addr)->addr && block_is_workspace(live_find(&live, addr));
		spin_done(&live.lock);
	}
	return is;
}

/* PyTorch passes it to cuBLAS before every matmul: skip the known one. */
bool torch_block_at(uint64_t addr, struct cw_allocation *block)
{
	if (!torch_block_lock())
		return false;
	*block = *live_find(&live, addr);
	torch_block_unlock();
	return block->addr;
}

bool torch_block_known_workspace(uint64_t addr)
{
	const struct rec_thread *t = rec_self;

	return t && t->generation == rec.generation && t->workspace == addr &&
	       t->workspaces_gone == blocks.workspaces_gone;
}

/* A block allocated while recording was off is unknown, and does not count as lost. */
HOT void torch_block_freed(const struct torch_block_note *b)
{
	uint64_t ticks = rec_ticks();
	struct cw_allocation *a;
	uint32_t stack, turn;

	live_expect(&live, b->addr);
	reads_block_anew(b->addr, (uint64_t)-b->size);
	stack = -b->size > SMALL || guard_on() ? stack_here() : stack_before();
	if (!ready()) {
		torch_block_lost();
		return;
	}
	a = live_find(&live, b->addr);
	if (events_wanted())
		events_block(&(struct events_block){.later = b->later});
	if (likely(a->addr)) {
		event_log.freed = unlikely(b->later) ? CW_SLOT_LATER : CW_EVENT_FREED;
		if (unlikely(block_is_workspace(a)))
			blocks.workspaces_gone++;
		/* before it is removed: a kill in between leaves it in both, never in neither */
		live_keep_freed(&live, a, stack, ticks);
		turn = (uint32_t)(a->extra >> 32);
		live_remove(&live, a, ticks);
		turn_drop(turn);
		rec.h->n_blocks_freed++;
	}
	totals_torch(b->device, b->allocated, b->reserved, ticks);
	spin_done(&live.lock);
}
