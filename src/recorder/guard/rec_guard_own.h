/* SPDX-License-Identifier: Apache-2.0
 * Guard mode inside (see rec_guard.h): address space, memory, what was freed. Each has its own file; one lock for all.
 */
#ifndef CUWHY_REC_GUARD_OWN_H
#define CUWHY_REC_GUARD_OWN_H

#include "recorder/guard/rec_guard.h"

#pragma GCC visibility push(hidden)

#define GUARD_WAIT_NS	10000000000u	/* for the GPU, at most: it may wait for the program */
#define GUARD_UNIT	((uint64_t)2 << 20)	/* the driver's page; a multiple of its granularity */

/* False: this thread has it, and a signal handler has interrupted it. A thread may have no record: a free must not fail for that. */
bool guard_wait(struct spin *lock);
bool guard_hold(void);			/* the lock */
void guard_let_go(void);

/* Address space (rec_guard_space.c): ranges with a hole behind them. All with the lock held. */
void space_start(uint64_t budget);	/* 0 = the usual one */
uint32_t range_take(uint64_t len);	/* a record with its range, 0 = none */
void range_drop(uint32_t i);
struct guarded *record(uint32_t i);
uint32_t record_at(uint64_t address);	/* 0 = none */
bool address_is_dead(uint64_t address);	/* it was handed out, and nothing is mapped there now */
uint32_t records_end(void);		/* one behind the last; the first is 1 */

/* What there is of what (rec_guard_totals.c). */
void totals_start(void);
void totals_in(const struct guarded *r);
void totals_out(const struct guarded *r);
void totals_taken(int device, uint64_t bytes, bool in);	/* from the driver, or given back */
bool totals_allow(const struct guarded *r, uint64_t card);	/* may it have pages of its own? */

/* Memory (rec_guard_pages.c). */
struct guard_device {
	void *context;
	bool ready, failed;
	uint64_t total;			/* of the card */
	uint64_t least;			/* smaller ones are no longer guarded */
};
void pages_start(void);
struct guard_device *device_ready(int device);	/* NULL: memory cannot be mapped there */
struct guard_device *device_known(int device);	/* NULL: not used so far */
void device_forget(int device);
/* Another one's context may be current in the thread that frees; and a capture that begins in another thread meanwhile must not end
 * for what this one does. */
struct visit { bool pushed; int mode; };
struct visit device_enter(int device);
void device_leave(struct visit v);
uint32_t pages_take(int device, uint64_t len);	/* with the lock held: a record with its range, perhaps mapped; 0 = none */
CUresult pages_map(struct guarded *r);		/* if it is not */
CUresult pages_access(const struct guarded *r);
void pages_unmap(const struct guarded *r);
bool pages_prepare(void);		/* maps some memory that is kept at new addresses; false: there is none */
bool pages_release(void);		/* gives the driver all that is kept; false: there was nothing */
uint32_t pages_peers(void);		/* changes when other devices get access */
void pages_peer(void);			/* other devices got access: what was mapped in advance has none */

/* What was freed (rec_guard_free.c). */
void free_start(void);
bool free_add(uint32_t i);		/* with the lock held; true: the hand should know */
void free_reused(int device, uint64_t stream);	/* likewise: what was freed there could be the memory of a new tensor */
void free_close(void);			/* what was freed waits for the work that is queued by now */
void free_step(int device);		/* unmaps what can be, waits for nothing */
bool free_old(int device);		/* closes what has been open for long; false: there is nothing */
bool free_one(int device);		/* a batch that can be; false: there is none */
uint64_t free_closed(void);		/* batches so far */
uint64_t free_finished(void);		/* all work that was queued before this one was closed has ended well */
bool free_waits(void);			/* is there a batch that cannot be yet? */

/* Pointers that kernels do not follow (rec_guard_unread.c), with the lock held. */
void unread_start(void);
bool unread_known(const struct guard_launch *l, uint32_t offset);
/* There is a pointer to memory that is unmapped, or will be when the launch begins. */
void unread_learn(const struct guard_launch *l, uint32_t offset, bool unmapped);
void unread_launching(bool unmapped);	/* is what waited to be unmapped? Else the launch proves nothing */

/* The hand (rec_guard_hand.c): a thread of ours that unmaps and maps, so that the program's threads need not. */
void hand_reset(void);
void hand_start(void);
void hand_ring(void);			/* there is something to do */
void hand_nudge(void);			/* there will be soon */
void hand_stop(void);			/* for good: it calls the driver no more */
bool hand_waits(CUresult (*call)(void));	/* in a thread of its own, for GUARD_WAIT_NS at most; false: it failed, or goes on */
bool hand_works(void);			/* else the program's threads do it */

#pragma GCC visibility pop

#endif
