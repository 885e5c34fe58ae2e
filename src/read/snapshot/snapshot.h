/* SPDX-License-Identifier: Apache-2.0
 * What torch.cuda.memory._dump_snapshot writes, in compact arrays: segments, blocks, events, stacks.
 *
 * Nothing in the file is executed: only the opcodes that such a file needs are read (pickle.c). An event costs 32
 * bytes here, and 8 while the file is read; stacks, frames and strings are kept once.
 */
#ifndef CUWHY_SNAPSHOT_H
#define CUWHY_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* Equal bytes are kept once: strings, frames, stacks and pools of a snapshot repeat by the thousand. */

struct interned {
	uint32_t at, len;	/* in 4-byte words; in bytes */
};

struct intern {
	uint32_t *words;	/* the bytes, each followed by at least one zero byte */
	size_t n_words, cap_words;
	struct interned *item;
	size_t n, cap;
	struct map map;		/* of item */
	uint64_t seed;		/* random, so that no file can make all its bytes collide in one slot */
};

#define INTERN_MAX	((1u << 28) - 1)
#define INTERN_FULL	UINT32_MAX

void intern_init(struct intern *t);
void intern_release(struct intern *t);

/* The number of these bytes, the same for the same bytes; INTERN_FULL when there are too many. */
uint32_t intern_put(struct intern *t, const void *bytes, size_t len);

const void *intern_get(const struct intern *t, uint32_t id, size_t *len);	/* `len` may be NULL */
const char *intern_text(const struct intern *t, uint32_t id);

struct err;

enum snap_word {
#define WORD(id, text) W_##id,
#include "read/snapshot/snap_words.def"
#undef WORD
	W_COUNT
};

enum snap_action {
	SNAP_OTHER, SNAP_ALLOC, SNAP_FREE_REQUESTED, SNAP_FREE_COMPLETED, SNAP_SEGMENT_ALLOC, SNAP_SEGMENT_FREE,
	SNAP_SEGMENT_MAP, SNAP_SEGMENT_UNMAP, SNAP_SNAPSHOT, SNAP_OOM
};

enum snap_state { SNAP_INACTIVE, SNAP_PENDING, SNAP_ALLOCATED };

#define SNAP_NONE	UINT32_MAX
#define SNAP_DEVICES	256		/* on one machine */

struct snap_event {
	uint64_t addr;		/* for an oom: bytes free on the device */
	uint64_t size;
	uint64_t time_us;	/* 0 = not in the file */
	uint32_t stack;		/* 0 = none */
	uint8_t action;		/* enum snap_action */
};

struct snap_block {
	uint64_t addr, size;
	uint64_t requested;	/* 0 = not known */
	uint32_t stack;
	uint8_t state;		/* enum snap_state */
};

struct snap_segment {
	uint64_t addr, size, stream;
	uint64_t pool[2];
	uint32_t first, n;	/* its blocks */
	uint32_t stack;
	int32_t device;
	bool small, expandable;
};

struct snap_frame {
	uint32_t file, function, line;
};

struct snap_range {
	uint32_t first, n;
};

struct snapshot {
	struct snap_segment *segment;
	size_t n_segments, cap_segments;
	struct snap_block *block;
	size_t n_blocks, cap_blocks;
	struct snap_event *event;
	size_t n_events, cap_events;
	struct snap_range segments;	/* device memory only: a file may also have pinned memory */
	struct snap_range *trace;	/* events of each device, oldest first */
	size_t n_traces, cap_traces;
	struct intern text, frame, stack, pool;
	/* settings of the allocator */
	bool settings_known, expandable;
	uint32_t conf;			/* text */
	char torch_path[256];		/* where its library must be, by its files; "" = not known */
	uint64_t impossible;		/* figures that cannot be true, and were left out */
};

/* Does a file that starts like this (uncompressed) look like one? Pickles of protocol 2 to 5 do. */
bool snap_is_snapshot(const void *head, size_t len);

/* NULL, with `e` filled, when it cannot be read or is not a snapshot. */
struct snapshot *snap_open(const char *path, struct err *e);
struct snapshot *snap_from_bytes(const void *bytes, size_t len, struct err *e);
void snap_free(struct snapshot *s);

const char *snap_text(const struct snapshot *s, uint32_t text);
const struct snap_frame *snap_frame(const struct snapshot *s, uint32_t frame);
const uint32_t *snap_stack(const struct snapshot *s, uint32_t stack, size_t *n);	/* frames, innermost first */

/* Devices that have segments or events are below this. */
int snap_devices(const struct snapshot *s);
struct snap_range snap_trace(const struct snapshot *s, int device);

#endif
