/* SPDX-License-Identifier: Apache-2.0
 * What a recording says about memory over the whole run: who requested it, how much there was when, and the autograd
 * nodes that keep some of it. Checked like everything else in a recording (trace.h).
 */
#ifndef CUWHY_TRACE_MEMORY_H
#define CUWHY_TRACE_MEMORY_H

#include "read/recording/trace.h"

/* Sites by index, as in cw_allocation.site; the length of the list. Index 0 and those that were never
 * written have kind 0. */
size_t trace_sites(struct trace *t, const struct cw_site **sites);

/* The site of an allocation that was freed; 0 = not known. */
uint32_t trace_freed_site(const struct trace *t, const struct cw_freed *f);

/* Bytes of a site when its device's memory was at its peak. */
uint64_t trace_site_at_peak(const struct trace *t, const struct cw_site *s);

/* The memory of a device over time, oldest sample first; NULL (and n = 0) where none was kept. */
const struct cw_timeline *trace_timeline(struct trace *t, int device, const struct cw_sample **samples, size_t *n);

/* The epochs of a device, oldest first, at most CW_EPOCHS; NULL (and n = 0) where none were kept. */
const struct cw_epochs *trace_epochs(struct trace *t, int device, const struct cw_epoch **list, size_t *n);

/* Bytes of a site at the moment of each epoch of its device: as many values as there are epochs. False when they are
 * not known; a site without room for a history counts as empty before its last change. */
bool trace_site_held(struct trace *t, size_t site, uint64_t *held);

/* The totals of a device; NULL when there can be no such device. */
const struct cw_memory_now *trace_memory(const struct trace *t, int device);

/* An autograd node that a forward op created. */
struct trace_node {
	uint64_t sequence;		/* counts the nodes of its thread */
	uint32_t tid;			/* the thread that created it, or last used its ring */
	uint32_t stack;			/* where */
	bool has_run;			/* backward has run it */
	bool released;			/* and it has let go of what it had saved */
};

/* The newest nodes, thread by thread, oldest first in each. */
size_t trace_nodes(struct trace *t, const struct trace_node **nodes);

/* What was read of it so far belongs to the trace, which frees it. */
struct run_memory;
struct run_memory **trace_run_memory(struct trace *t);
void run_memory_free(struct run_memory *m);

#endif
