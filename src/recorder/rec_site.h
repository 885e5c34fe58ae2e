/* SPDX-License-Identifier: Apache-2.0
 * Who allocates memory, how much of it is allocated on each device, and how that changed over time.
 */
#ifndef CUWHY_REC_SITE_H
#define CUWHY_REC_SITE_H

#include "rec.h"

/* The number of the site that allocates `a`, 0 = no room for another one. The stack, library, kind and device of `a`
 * are set; the rest is what the thread is doing now. */
uint32_t site_number(struct rec_thread *t, const struct cw_allocation *a, uint32_t forward_stack);

/* The same for memory of a module, as long as there is room for sites that tell modules apart; 0 = of none. */
uint32_t site_number_in(struct rec_thread *t, const struct cw_allocation *a, uint32_t forward_stack, uint32_t module);

/* An entry was added to or removed from a table of live allocations. Called with that table's lock held: each kind of
 * memory is always in the same table, so its sites have one writer at a time. */
void site_came(const struct cw_allocation *a);
void site_gone(const struct cw_allocation *a, uint64_t ticks);

/* What PyTorch's allocator reports after each event. */
void totals_torch(int device, uint64_t allocated, uint64_t reserved, uint64_t ticks);
void totals_torch_gave_up(int device, uint64_t allocated, uint64_t reserved);

/* The driver allocated or freed `a`. */
void totals_driver(const struct cw_allocation *a, bool came, uint64_t ticks);

/* The file whose code is calling the driver: the caller of the CUDA runtime, if the call goes through the runtime.
 * Off of a cw_string, 0 = not known. */
uint32_t library_at(const void *address);	/* off of its path, 0 = not known */
uint32_t library_asking(const struct rec_thread *t);
bool library_is_torch(uint32_t library);	/* PyTorch's allocator itself */

/* Every event, if requested (rec_events.c). */
extern _Atomic(struct cw_events *) events_ring __attribute__((visibility("hidden")));
void events_start(void);
void events_write(const struct cw_allocation *a, bool came, uint64_t ticks);

/* What happens beside blocks and allocations: to the newest events, and to the file if requested. */
void events_oom(int device, uint64_t request);
void events_more(enum cw_event_more what, int device, uint64_t value);

/* Of the block that is written next, with the lock of PyTorch's blocks held. */
struct events_block {
	uint64_t asked;			/* bytes, rounded up to CW_EVENT_UNIT; 0 = as large as the block */
	uint64_t stream;
	uint32_t pool;
	bool later;			/* freed: it waits for other streams */
};
void events_block(const struct events_block *b);

static inline bool events_wanted(void)
{
	return unlikely(atomic_load_explicit(&events_ring, memory_order_relaxed) != NULL);
}

/* The newest events (rec_event_log.c), in a process that uses PyTorch. */
extern struct event_log {
	struct cw_event_slot *at;	/* the next one, never the first of a page */
	_Atomic(struct cw_event_log *) h;	/* NULL: off */
	uint64_t stream;		/* of the newest block */
	uint32_t pool, lane;
	uint32_t freed;			/* the kind of the next free: CW_EVENT_FREED or CW_SLOT_LATER */
	atomic_bool look;		/* the card has less or more free than when it was last asked */
} event_log __attribute__((visibility("hidden")));
void event_log_forget(void);
void event_log_start(void);		/* when PyTorch's blocks are */
void event_log_block(const struct cw_allocation *a, uint32_t kind);	/* PyTorch's, with their lock held */
void event_log_driver(const struct cw_allocation *a, bool came, uint64_t ticks);
void event_log_oom(int device, uint64_t request);
void event_log_more(enum cw_event_more what, int device, uint64_t value);
uint32_t event_log_detail(const struct events_block *b, uint64_t size);	/* `library` of a block; with its lock held */
uint32_t event_log_lane(int device);	/* of what PyTorch's allocator asks the driver for now, + 1; 0 = off */

static inline bool event_log_on(void)
{
	return likely(atomic_load_explicit(&event_log.h, memory_order_acquire) != NULL);
}

/* A kind of memory is always in the same table. */
static inline void events_note(const struct cw_allocation *a, bool came, uint64_t ticks)
{
	if (events_wanted())
		events_write(a, came, ticks);
	if (event_log_on() && a->kind == CW_MEM_TORCH)
		event_log_block(a, came ? CW_EVENT_MADE : event_log.freed);
	else if (event_log_on())
		event_log_driver(a, came, ticks);
}

void timeline_start(void);
void timeline_note(int device, uint64_t ticks);

/* Moments for which we keep what each site of a device held: the device's peaks, and the moments of epochs. */
extern uint32_t site_generation[CW_MAX_DEVICES] __attribute__((visibility("hidden")));
static inline uint32_t site_moment(int device)
{
	return shared_add(&site_generation[device], 1) + 1;
}

/* What sites held over time (struct cw_epochs in format.h). */
#define SITES_MAX	24576u
void epochs_start(void);
void epochs_moment(int device, const struct cw_sample *now, uint64_t sample_every, bool sample_begins);
void epochs_keep(const struct cw_site *s, uint32_t number, uint32_t since);

#endif
