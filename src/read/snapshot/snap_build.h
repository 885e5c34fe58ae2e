/* SPDX-License-Identifier: Apache-2.0
 * Between the reader of pickles and the snapshot: what each list and dictionary turns out to be.
 *
 * A dictionary is recognized by its keys when they are set, a list by what is appended. No Python object is kept: a
 * list or dictionary is one number, which says what it is and where.
 */
#ifndef CUWHY_SNAP_BUILD_H
#define CUWHY_SNAP_BUILD_H

#include "formats/pickle.h"
#include "read/snapshot/snapshot.h"

struct snap_past {		/* of a block before 2.1 */
	uint64_t size;
	uint32_t stack;
};

struct snap_build {
	struct snapshot *s;
	uint32_t *dict, *list;	/* what it is << 28 | where */
	size_t n_dicts, cap_dicts, n_lists, cap_lists;
	struct snap_range *range;	/* of lists of segments, blocks, events, traces */
	size_t n_ranges, cap_ranges;
	struct snap_past *past;
	size_t n_past, cap_past;
	struct snap_range top_segments, top_traces;
	struct err *err;
};

void build_init(struct snap_build *b, struct snapshot *s, struct err *e);
void build_release(struct snap_build *b);

extern const struct pickle_sink build_sink;	/* for a struct snap_build */

#endif
