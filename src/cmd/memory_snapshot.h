/* SPDX-License-Identifier: Apache-2.0
 * Between memory_snapshot.c, which finds out, and memory_snapshot_print.c, which tells.
 */
#ifndef CUWHY_MEMORY_SNAPSHOT_H
#define CUWHY_MEMORY_SNAPSHOT_H

#include "cmd/memory.h"
#include "input/snapshot/snap_analyse.h"

#define CHART_COLUMNS	60

struct memory_row {		/* of a table: a line, a function, a stream or a pool */
	char *name;
	uint64_t bytes, blocks;
	const struct snap_line *line;	/* NULL when it is none */
};

struct memory_view {		/* of one device */
	const struct snapshot *s;
	const struct snap_device *d;
	const struct snap_lines *l;
	const char *by, *at;	/* as they were chosen */
	size_t moment;
	struct snap_now now;
	struct memory_row *row;	/* the largest first */
	size_t n;
	uint64_t chart[CHART_COLUMNS];
};

void memory_print(const struct memory_view *v, int width);
void memory_print_json(const struct memory_view *v, size_t n);

#endif
