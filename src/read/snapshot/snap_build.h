/* SPDX-License-Identifier: Apache-2.0
 * Between the reader of pickles and the snapshot: what each list and dictionary turns out to be.
 *
 * A dictionary is recognized by its keys when they are set, a list by what is appended. No Python object is kept: a
 * list or dictionary is one number, which says what it is and where.
 */
#ifndef CUWHY_SNAP_BUILD_H
#define CUWHY_SNAP_BUILD_H

#include "read/snapshot/snapshot.h"

enum value_kind { V_OTHER, V_NONE, V_BOOL, V_INT, V_FLOAT, V_STRING, V_LIST, V_DICT, V_PAIR };

struct pickle_value {
	uint8_t kind;		/* enum value_kind */
	union {
		int64_t number;
		double real;
		uint32_t id;	/* STRING, LIST, DICT, PAIR */
	};
};

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

/* Each fills `v`; negative errno with the error filled when there are too many of them. */
int build_string(struct snap_build *b, const uint8_t *bytes, size_t len, struct pickle_value *v);
int build_dict(struct snap_build *b, struct pickle_value *v);
int build_list(struct snap_build *b, struct pickle_value *v);
int build_pair(struct snap_build *b, const struct pickle_value *two, struct pickle_value *v);

/* `n` values: key, value, key, value. */
int build_set(struct snap_build *b, uint32_t dict, const struct pickle_value *v, size_t n);
int build_append(struct snap_build *b, uint32_t list, const struct pickle_value *v, size_t n);

/* The top-level value of the file. */
int build_root(struct snap_build *b, const struct pickle_value *root);

#endif
