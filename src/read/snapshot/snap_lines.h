/* SPDX-License-Identifier: Apache-2.0
 * The line of code that represents a stack of a snapshot.
 */
#ifndef CUWHY_SNAP_LINES_H
#define CUWHY_SNAP_LINES_H

#include "read/snapshot/snapshot.h"

/* Whose code a file is; the caller passes it in (snapshot_owner in observe.h). */
enum snap_owner { SNAP_OWN, SNAP_LIBRARY, SNAP_PLUMBING };
typedef enum snap_owner snap_owner_fn(const char *file, const char *torch_path);

struct snap_line {
	uint32_t file, function, line;	/* texts and a number; all 0 = not known */
	uint32_t library;		/* no line of the user's code was on the stack */
};

struct snap_lines {
	struct intern table;	/* of struct snap_line; number 0 = not known */
	uint32_t *of_stack;	/* line of each stack */
};

/* The innermost frame of the user's own code, else the innermost of a library. */
void snap_lines_find(struct snap_lines *l, const struct snapshot *s, snap_owner_fn *owner);
void snap_lines_release(struct snap_lines *l);

const struct snap_line *snap_line(const struct snap_lines *l, uint32_t line);

#endif
