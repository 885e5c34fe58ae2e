/* SPDX-License-Identifier: Apache-2.0
 * The life of every PyTorch block on a page: from which event to which, where in memory, how large, and the line that asked for it.
 *
 * A million of them must fit: they are columns of small numbers (differences, seven bits in a byte), deflated, in base64, outside of
 * the page's JSON. If there are more, those that held the least memory for the shortest time are left out, and counted.
 */
#ifndef CUWHY_PAGE_BLOCKS_H
#define CUWHY_PAGE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/map.h"
#include "show/page_words.h"

struct buf;
struct snap_device;
struct snap_lines;
struct snapshot;
struct trace;

#define PAGE_BLOCKS_MAX ((size_t)1 << 20)	/* of a page */

#define LIFE_OPEN UINT32_MAX	/* it was there at the end */

struct life {
	uint64_t addr, size;
	uint32_t born, died;	/* numbers of events */
	int32_t line;		/* in the page's list of these; -1 = not known */
	int32_t device;
};

struct lives {
	struct life *list;
	size_t n, cap;
	struct map live;	/* by address */
	size_t most;		/* more than twice as many are never kept */
	uint32_t events;
	uint32_t failed;	/* event at which memory ran out, the last time; LIFE_OPEN = it did not */
	size_t left_out;
	double area_left_out;	/* bytes times events */
	/* when each event was: every `stride`-th of them */
	uint64_t *us;
	size_t n_us;
	uint32_t stride;
	struct page_words lines;
};

void lives_init(struct lives *l, size_t most);
void lives_release(struct lives *l);

/* The next event, at this time. What is still there at the address has gone unnoticed; what goes without having come was there
 * from the start. */
void lives_event(struct lives *l, uint64_t us);
void lives_made(struct lives *l, const struct life *what);
void lives_freed(struct lives *l, const struct life *what);

/* All that came so far was there before the first event. */
void lives_start(struct lives *l);

/* Those of a device; its columns are appended to `out` as a line, whose number is `island`. `left` is how many more the page may have.
 * Null if there are none. */
json_t *lives_json(struct lives *l, int device, size_t island, size_t *left, struct buf *out);

/* From the events of a recording (`bytes`, as events.h has them), and of a device of a snapshot. */
void lives_of_recording(struct lives *l, struct trace *t, const void *bytes, size_t len);
void lives_of_snapshot(struct lives *l, const struct snapshot *s, const struct snap_lines *lines,
		       const struct snap_device *d);

#endif
