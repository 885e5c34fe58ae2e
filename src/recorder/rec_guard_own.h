/* SPDX-License-Identifier: Apache-2.0
 * Guard mode inside (see rec_guard.h): address space, memory, what was freed. Each has its own file; one lock for all.
 */
#ifndef CUWHY_REC_GUARD_OWN_H
#define CUWHY_REC_GUARD_OWN_H

#include "rec_guard.h"

#pragma GCC visibility push(hidden)

#define GUARD_UNIT	((uint64_t)2 << 20)	/* the driver's page; a multiple of its granularity */

bool guard_hold(void);			/* the lock; false: a signal handler has interrupted its holder */
void guard_let_go(void);

/* Address space (rec_guard_space.c): ranges with a hole behind them. All with the lock held. */
void space_start(uint64_t budget);	/* 0 = the usual one */
uint32_t range_take(uint64_t len);	/* a record with its range, 0 = none */
void range_drop(uint32_t i);
struct guarded *record(uint32_t i);
uint32_t record_at(uint64_t address);	/* 0 = none */
uint32_t records_end(void);		/* one behind the last; the first is 1 */

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
bool device_enter(int device);		/* another one's context may be current in the thread that frees */
void device_leave(bool entered);
uint64_t handle_take(int device, uint64_t len);	/* with the lock held; 0 = none is kept */
void handles_release(void);		/* all that are kept */
CUresult pages_map(struct guarded *r);
CUresult pages_access(const struct guarded *r);
void pages_unmap(const struct guarded *r);

/* What was freed (rec_guard_free.c). */
void free_start(void);
void free_add(uint32_t i);		/* with the lock held */
void free_step(int device);		/* unmaps what can be, waits for nothing */

#pragma GCC visibility pop

#endif
