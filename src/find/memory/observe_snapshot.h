/* SPDX-License-Identifier: Apache-2.0
 * Facts about the last failed allocation, from a PyTorch memory snapshot.
 */
#ifndef CUWHY_OBSERVE_SNAPSHOT_H
#define CUWHY_OBSERVE_SNAPSHOT_H

#include "case/case.h"
#include "find/memory/snap_analyze.h"

/* Whose code a frame of a snapshot is, by the rules in place.h. */
enum snap_owner snapshot_owner(const char *file, const char *torch_path);

bool snapshot_is_python(const char *file);

/* "train.py:12"; NULL when the line is not known. */
const char *snapshot_line_text(const struct snapshot *s, const struct snap_lines *l, uint32_t line, struct pool *pool);

#define SNAPSHOT_OBSERVER "snapshot"

/* The last oom of the device. */
void snapshot_observe(struct casefile *c, const struct snapshot *s, const struct snap_lines *l,
		      const struct snap_device *d);

/* The line of which earlier turns of the program's loops have left the most, at the last oom, else at the end. False: there is none. */
struct snap_keeps { const char *line; uint64_t bytes, blocks; size_t turns; };
bool snapshot_keeps(struct snap_keeps *k, const struct snapshot *s, const struct snap_device *d, struct pool *pool);

/* What is wrong with it, in words; NULL = nothing. */
const char *snapshot_damage(const struct snapshot *s, struct pool *pool);

#endif
