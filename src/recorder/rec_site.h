/* SPDX-License-Identifier: Apache-2.0
 * Who asks for memory, how much there is of it on each device, and how that went over time.
 */
#ifndef CUWHY_REC_SITE_H
#define CUWHY_REC_SITE_H

#include "rec.h"

/* The number of the site that asks for `a`: 0 when there is no room for another one. Its stack, library, kind and
 * device are set; the rest is what the thread does now. */
uint32_t site_number(struct rec_thread *t, const struct cw_allocation *a, uint32_t forward_stack);

/* An entry came to or left the table of what is live. Called with that table's lock held: a kind of memory is always
 * in the same table, so its sites have one writer at a time. */
void site_came(const struct cw_allocation *a);
void site_gone(const struct cw_allocation *a, uint64_t ticks);

/* What PyTorch's allocator says after each event. */
void totals_torch(int device, uint64_t allocated, uint64_t reserved, uint64_t ticks);
void totals_torch_gave_up(int device, uint64_t allocated, uint64_t reserved);

/* What the driver gave or took back. */
void totals_driver(const struct cw_allocation *a, bool came, uint64_t ticks);

/* The file that holds the code which asks the driver now: the caller of the CUDA runtime where one stands between.
 * Off of a cw_string, 0 = not known. */
uint32_t library_at(const void *address);	/* off of its path, 0 = not known */
uint32_t library_asking(const struct rec_thread *t);
bool library_is_torch(uint32_t library);	/* PyTorch's allocator itself */

/* Every event, if that was asked for. */
extern _Atomic(struct cw_events *) events_ring __attribute__((visibility("hidden")));
void events_start(void);
void events_write(const struct cw_allocation *a, bool came, uint64_t ticks);
void events_oom(int device, uint64_t request);

static inline bool events_wanted(void)
{
	return unlikely(atomic_load_explicit(&events_ring, memory_order_relaxed) != NULL);
}

void timeline_start(void);
void timeline_note(int device, uint64_t ticks);

/* Moments at which it counts what each site of a device holds: its peaks, and those of epochs. */
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
