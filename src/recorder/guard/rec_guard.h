/* SPDX-License-Identifier: Apache-2.0
 * Guard mode (`cuwhy run --guard`): every allocation in a mapping of its own, so that the hardware notices what leaves it.
 *
 * A range of address space is used once: 2 MiB pages for the allocation, then a page that is never mapped. The
 * allocation ends where its pages end, rounded to 16 bytes. What is freed is unmapped once the work that was queued
 * before has ended, and its addresses are not used again until the budget of address space is spent. The driver's
 * entry points (rec_wrap.c) and PyTorch's allocator (rec_guard_torch.c) come here.
 */
#ifndef CUWHY_REC_GUARD_H
#define CUWHY_REC_GUARD_H

#include "recorder/rec.h"

#pragma GCC visibility push(hidden)

#define GUARD_STREAMS	4u
#define GUARD_PATTERN_EVEN	0xfeu	/* bytes at even addresses; 0xfffe is NaN in every float type and no usual number */
#define GUARD_PATTERN_ODD	0xffu

enum guard_given { GIVEN_NOT, GIVEN_IN_TABLE, GIVEN };	/* IN_TABLE: its address was copied to the GPU, among other data */
/* READY: mapped in advance, not yet handed out. KEPT: freed, and a graph may use it. */
enum guard_state { GUARD_UNUSED, GUARD_MAKING, GUARD_READY, GUARD_LIVE, GUARD_KEPT, GUARD_FREED };

struct guarded {
	uint64_t addr, size;		/* the allocation */
	uint64_t map, len;		/* the pages it is in */
	uint64_t handle;		/* their memory */
	uint64_t ticks;
	uint64_t memory_pool;		/* the driver's; 0 = none */
	uint64_t stream[GUARD_STREAMS];	/* that use it, the first is the one it was allocated for */
	uint32_t stack, forward;	/* where it was allocated */
	uint32_t free_stack;
	uint32_t slack;			/* bytes behind it that hold the pattern, to be checked */
	uint32_t next;			/* in a list */
	uint32_t pool;			/* PyTorch's, of a captured graph: index + 1; 0 = none */
	uint32_t captured_first, captured_last;	/* numbers of captures of which a launch was given it; 0 = none */
	int16_t device;
	uint8_t state;			/* enum guard_state */
	uint8_t n_streams;		/* above GUARD_STREAMS: any stream may use it */
	bool mapped;
	bool torch;
	bool filled;			/* all of it held the pattern at first */
	bool own;			/* an allocator or a library keeps it for itself: what is in it is no result */
	uint8_t given;			/* enum guard_given: has a kernel or a copy had a pointer to it? */
};

/* What `cuwhy run` was asked for. */
struct guard {
	bool before, values;
	uint32_t align, sample, only_from, only_to;
	char only[256];			/* end of a file's path; "" = every line */
	struct cw_guard *told;		/* in the recording; never NULL if on */
};
extern struct guard guard;
extern _Atomic bool guard_armed;

static inline bool guard_on(void)
{
	return unlikely(atomic_load_explicit(&guard_armed, memory_order_relaxed));
}

void guard_start(void);			/* a recording begins */

/* An allocation of the driver's: its address, 0 = not guarded, the driver must allocate it. `stream` ~0: it is ready at once. */
#define GUARD_AT_ONCE (~(uint64_t)0)
struct guard_request {
	uint64_t size;
	uint64_t stream;
	bool torch;
	int device;			/* PyTorch's: its own context is made current if the thread has none */
	uint32_t pool;
	uint64_t memory_pool;		/* the driver's */
};
uint64_t guard_alloc(const struct guard_request *q);

/* Frees it in the order of `stream`; GUARD_AT_ONCE: waits. False: it is not one of ours. */
bool guard_free(uint64_t addr, uint64_t stream);
bool guard_find(uint64_t address, struct guarded *out);	/* a live one that contains the address */
bool guard_of_parent(uint64_t address);	/* this process was forked, and the address was guarded in its parent */
void guard_used_by(uint64_t addr, uint64_t stream);
void guard_stream_waits(uint64_t stream);		/* will wait for another one */
void guard_stream_gone(uint64_t stream);			/* will be */
void guard_device_gone(int device);			/* will be, with all memory */
void guard_pool_gone(uint32_t pool);	/* no graph uses it any more */
void guard_workspace(uint64_t addr);	/* a library of PyTorch's works there */
void guard_graph_gone(void);		/* one is */
bool guard_flush(bool give_back);			/* wait for what was freed and unmap it; false: some of it was not */
bool guard_make_room(void);				/* gives back all that is free; false: nothing was */
void guard_peer(void);					/* the current device may use memory of another one */
/* What PyTorch's allocator would say of its guarded tensors. */
struct guard_totals {
	uint64_t requested, allocated, count;
	uint64_t in_use, reserved;	/* segments; with those that it would have kept */
};
void guard_totals(int device, struct guard_totals *out);
uint64_t guard_block(uint64_t size);			/* of the block for a tensor */
uint64_t guard_in_use(int device, uint64_t more);	/* segments, with another tensor of this size */
uint64_t guard_card(int device);			/* its memory; 0: not used so far */
void guard_cache_emptied(void);
uint64_t guard_pool_bytes(uint64_t pool, bool most, bool anew);	/* of one of the driver's pools */
uint64_t guard_extra(int device);			/* what we took beyond what the program needs */
void guard_out_of_memory(void);				/* the program runs out of it */

/* A kernel is about to be launched: pointers to freed memory must not find it mapped. */
bool guard_pending(void);		/* is anything freed and still mapped? */
struct guard_launch {
	uint32_t function, param;	/* which one is looked at */
	const uint32_t *grid;
	uint32_t capture;		/* that the launch belongs to */
};
bool guard_points_to_freed(const struct guard_launch *l, const void *bytes, size_t n);
void guard_wait_for_freed(void);	/* then the launch may begin */

/* Where values may come from: memory whose address was among the parameters of a launch, or was read by a copy. */
bool guard_give(const void *words, size_t n, enum guard_given how);	/* marks what they point to; false */
bool guard_capture(const struct guard_launch *l, const void *words, size_t n);	/* a graph was given what they point to; false */
void guard_unseen(void);		/* a launch of which the parameters are not known */
uint64_t guard_unseen_last(void);	/* when: ticks; 0 = never */

/* The pattern (rec_guard_check.c). */
bool guard_check_start(int device);
void guard_fill(struct guarded *g, uint64_t stream);
bool guard_check(const struct guarded *list, uint32_t n);	/* behind each; all work on them has ended. False: not this one */
void guard_copy(enum api api, const uint64_t *arg, uint32_t n);		/* the program copied something */
void guard_copied(uint64_t to, uint64_t from, uint64_t bytes, bool done);	/* the program copied to the host */
void guard_waited(void);		/* and has waited for it */
void guard_at_exit(void);
uint32_t guard_list(struct guarded *out, uint32_t max, uint32_t *cursor, bool (*wanted)(const struct guarded *g));

/* PyTorch's allocator (rec_guard_torch.c). */
void guard_torch_start(void);
bool guard_torch_guarded(void);		/* its tensors are */
bool guard_torch_through(void);		/* it has no cache: what it asks the driver for is a tensor */

/* Says why the program cannot be guarded, and ends it before work is lost. Guarded memory cannot be shared with another process. */
void guard_refuse_sharing(void) __attribute__((noreturn));
void guard_refuse(const char *why) __attribute__((noreturn));

#pragma GCC visibility pop

#endif
