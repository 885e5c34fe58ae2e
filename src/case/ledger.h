/* SPDX-License-Identifier: Apache-2.0
 * Who holds a device's memory at one moment: parts that add up to the card's total, and the lines behind them.
 */
#ifndef CUWHY_LEDGER_H
#define CUWHY_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/line.h"
#include "base/pool.h"

struct trace;
struct cw_failure;
struct playback;

enum ledger_at { LEDGER_END, LEDGER_PEAK, LEDGER_OOM, LEDGER_TIME };

/* The parts of a GPU's memory: id in JSON, label for people. */
#define LEDGER_PARTS(X)                                                                        \
	X(TENSORS, "tensors", "tensors")                                                       \
	X(CACHE_USED, "cache_in_used_segments", "PyTorch's cache, in segments that tensors use") \
	X(CACHE_FREE, "cache_free_segments", "PyTorch's cache, whole segments")                \
	X(POOLS, "private_pools", "PyTorch's private pools (CUDA graphs, MemPool), in no tensor") \
	X(LIBRARIES, "other_libraries", "other allocations of this process")                   \
	X(CONTEXT, "context", "CUDA context and modules of this process")                      \
	X(PROCESSES, "other_processes", "other processes")                                     \
	X(OUTSIDE, "outside", "CUDA contexts, modules and other processes")                    \
	X(REST, "rest", "not accounted for")                                                   \
	X(UNMEASURED, "unmeasured", "free, contexts and other processes (not measured)")       \
	X(FREE, "free", "free")

enum ledger_part {
#define X(name, id, text) PART_##name,
	LEDGER_PARTS(X)
#undef X
	PART_COUNT
};

/* What tensors are for. */
#define LEDGER_KINDS(X)                                                         \
	X(PARAMETERS, "parameters", "parameters and buffers")                   \
	X(GRADIENTS, "gradients", "gradients")                                  \
	X(OPTIMIZER, "optimizer", "optimizer state")                            \
	X(ACTIVATIONS, "activations", "activations, for backward")              \
	X(BACKWARD, "backward", "allocated by the current backward")            \
	X(GRAPHS, "graphs", "CUDA graph memory")                                \
	X(WORKSPACES, "workspaces", "cuBLAS workspaces")                        \
	X(LOADED, "loaded", "loaded from a file")                               \
	X(OTHER, "other", "other tensors")

enum ledger_kind {
#define X(name, id, text) KIND_##name,
	LEDGER_KINDS(X)
#undef X
	KIND_COUNT
};

struct ledger_line {
	enum ledger_part part;		/* TENSORS, LIBRARIES or PROCESSES */
	enum ledger_kind kind;		/* TENSORS */
	struct place place;		/* `file` NULL = not known */
	const char *library;		/* LIBRARIES: the file that asked the driver; NULL = not known */
	uint32_t module;		/* TENSORS, while the ledger is made: whose they are */
	uint32_t pid;			/* PROCESSES; 0 = not in this container */
	const char *command;
	uint64_t bytes, count;
	uint64_t made, made_bytes;	/* ever allocated at this line; 0 = not known */
	uint64_t first_ticks, last_ticks;	/* the oldest and the newest of those that are live */
};

/* The tensors of one module of the program's models: allocated in its own methods, not in those of modules in it. */
struct ledger_module {
	const char *path;		/* "transformer.h.7.mlp"; "" = the outermost one; NULL = no module is known */
	const char *class_name, *root;	/* of it, and of the outermost one around it */
	uint64_t bytes;
	uint64_t kind[KIND_COUNT];
};

/* PyTorch segments that tensors keep from being returned to the driver. */
#define SEGMENT_MAP 40

struct ledger_segment {
	uint64_t addr, size, free, largest;
	size_t first, n;		/* its blocks, among those of this moment */
	bool kept;			/* of a private pool: of use to nothing else, and not returned to the driver */
	char map[SEGMENT_MAP + 1];	/* '#' = tensors, '-' = some, '.' = free */
};

struct ledger_segments {
	struct ledger_segment *list;	/* most free bytes first */
	size_t n, used;			/* the first `used` hold tensors */
	uint64_t free_used, free_whole;	/* in segments with tensors, and in those without */
	uint64_t largest;		/* free block */
	uint64_t kept, kept_free;	/* bytes in segments of private pools, and those of them in no tensor */
	struct ledger_line kept_line;	/* for which most of those bytes were taken from the driver */
	struct ledger_line *pin;	/* lines of the tensors in segments that are more than half empty */
	size_t n_pins;
	uint64_t pinned;		/* free bytes in those segments */
};

/* From NVML, when it was asked: which processes use this GPU's memory. */
struct ledger_holder { uint32_t pid; const char *command; uint64_t bytes; };
struct ledger_seen {
	bool known;
	uint64_t own;			/* this process's; 0 = not reported */
	const struct ledger_holder *holder;	/* others */
	size_t n;
};

/* `usage` may be NULL. Known only when NVML reports every process's bytes and this process can be told from the others. */
struct gpu_usage;
struct cw_device;
void ledger_seen_from(struct ledger_seen *s, const struct gpu_usage *usage, const struct cw_device *d, uint32_t pid,
		      struct pool *pool);

struct ledger {
	enum ledger_at at;
	int device;
	const char *device_name;
	uint64_t ticks;			/* of the moment; UINT64_MAX = the end */
	bool total_known, free_known;
	uint64_t total;
	uint64_t allocated, reserved;	/* PyTorch's */
	uint64_t driver;		/* this process's, through the driver */
	uint64_t part[PART_COUNT];	/* add up to `total` */
	uint64_t kind[KIND_COUNT];	/* add up to part[PART_TENSORS] */
	struct ledger_line *line;	/* biggest first */
	size_t n;
	struct ledger_module *module;	/* biggest first; add up to `allocated` */
	size_t n_modules;
	uint64_t modules_known;		/* bytes of those that have a path */
	bool several_roots;
	struct ledger_segments segments;
	uint64_t pinned, pinned_peak;	/* host memory */
	uint64_t peak_allocated, peak_reserved;
	bool lines_complete;		/* every tensor has a line in `line` */
	bool sampled;			/* LEDGER_TIME without a memory trace: sums from the timeline, no lines */
	bool of_epoch;			/* but with the lines of ledger_build_epoch */
	uint64_t missing;		/* LEDGER_TIME: events that the memory trace lost before it */
};

/* `f` is the failure for LEDGER_OOM, else NULL. `seen` may be NULL. Everything lives in the pool. */
void ledger_build(struct ledger *l, struct trace *t, int device, enum ledger_at at, const struct cw_failure *f,
		  const struct ledger_seen *seen, struct pool *pool);

/* At any moment: exact from a memory trace that was played back to it, else (`play` is NULL) what the timeline holds. */
void ledger_build_at(struct ledger *l, struct trace *t, int device, uint64_t ticks, const struct playback *play,
		     struct pool *pool);

/* What was held when memory use was highest in the interval of the run that the moment is in (at most 126 of them), with lines, without
 * a memory trace: `ticks` says when that was. False: nothing is known of that time. */
bool ledger_build_epoch(struct ledger *l, struct trace *t, int device, uint64_t ticks, struct pool *pool);

/* A device's most recent out-of-memory failure; NULL when there was none. `device` -1 = any. */
const struct cw_failure *ledger_oom(const struct trace *t, int device);

/* The moment that counts: when memory ran out, else when PyTorch held the most, else the end. */
enum ledger_at ledger_moment(struct trace *t, int device);

/* It requested host memory, not device memory. */
bool failure_is_host(const struct cw_failure *f);

/* Makes the ledger independent of its recording: the strings of its biggest lines are copied to the pool, the other lines
 * are dropped. Files are shown relative to `cwd`. */
void ledger_own(struct ledger *l, const char *cwd, struct pool *pool);

/* The same, with all of its lines. */
void ledger_own_all(struct ledger *l, const char *cwd, struct pool *pool);

const char *ledger_part_id(enum ledger_part p);
const char *ledger_part_text(enum ledger_part p);
const char *ledger_kind_id(enum ledger_kind k);
const char *ledger_kind_text(enum ledger_kind k);

#endif
