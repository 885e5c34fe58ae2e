/* SPDX-License-Identifier: Apache-2.0
 * The page while it is made, its parts, and how it is kept small. Only for page*.c.
 */
#ifndef CUWHY_PAGE_PARTS_H
#define CUWHY_PAGE_PARTS_H

#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"

struct casefile;
struct culprit;
struct cw_header;
struct machine;
struct page_words;
struct process_end;
struct trace;
struct verdict;

struct page {
	json_t *data;			/* everything */
	json_t *processes, *missing;	/* in it */
	size_t n_processes, n_details, left_out;
	struct buf islands;		/* what is too large for JSON, a line each */
	size_t n_islands, blocks_left;
};

/* Labels and texts: of a recording, a dump, a machine; and what a recording does not have. */
json_t *page_environment(const struct cw_header *h);
json_t *page_environment_of_dump(const struct culprit *c);
json_t *page_environment_of_machine(const struct casefile *f, const struct machine *m);
json_t *page_gaps(const struct cw_header *h);

/* What happened; `lines` gets the lines of code. */
json_t *page_failures(struct trace *t, struct page_words *lines);
json_t *page_launches(struct trace *t, const struct verdict *v, struct page_words *lines);
json_t *page_neighbors(struct trace *t, const struct verdict *v, struct page_words *lines);
json_t *page_fault_lanes(const struct culprit *c);

/* The memory of each device. */
json_t *page_devices(struct trace *t, const struct process_end *end, struct page_words *lines);

/* Drops the least important first, starting with the last process: the one that failed is first. */
void page_bound(struct page *p);

#endif
