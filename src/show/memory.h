/* SPDX-License-Identifier: Apache-2.0
 * Writers of the answers of `cuwhy memory`: who holds the memory of a machine, of a recorded process, in a snapshot.
 */
#ifndef CUWHY_WRITE_MEMORY_H
#define CUWHY_WRITE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "show/report_ledger.h"

struct gpu_usage;
struct ram_state;
struct snap_views;
struct snapshot;
struct trace;

/* The table of one sample. Commands are cut at `width` columns; 0 = they are not. */
void usage_print(FILE *out, const struct gpu_usage *u, int width);

struct memory_table {
	enum ledger_by by;
	size_t top;		/* lines, the biggest first */
	int width;
};

/* One of its devices: the ledger of a moment, and how it grew. */
void memory_device_print(FILE *out, struct trace *t, const struct ledger *l, const struct memory_table *how);
json_t *memory_device_json(struct trace *t, const struct ledger *l, uint64_t time_ns);	/* LEDGER_TIME: since the start */

/* The moment of a ledger, in words. */
const char *memory_moment_words(const struct ledger *l, const struct trace *t, struct pool *pool);

/* Its pinned host memory, against the host's RAM and the limits on it. */
struct memory_host {
	uint32_t pid;
	uint64_t pinned, peak;
	const struct ram_state *ram;	/* when memory ran out; NULL = nobody looked */
};

/* False when there is nothing to say: none was pinned, and nobody looked. */
bool memory_host_used(const struct memory_host *h);
void memory_host_print(FILE *out, const struct memory_host *h);
json_t *memory_host_json(const struct memory_host *h);

/* Its devices that were used. `by` is "line", "function", "stream" or "pool", NULL = line; `at` is "peak", "oom" or "end",
 * NULL = oom where there is one, else peak. The snapshot must outlive it. */
struct snap_views *snap_views_new(const struct snapshot *s, const char *by, const char *at);
void snap_views_free(struct snap_views *v);

bool snap_views_print(FILE *out, const struct snap_views *v, int width);	/* false: none was used */
bool snap_views_ran_out(const struct snap_views *v);	/* on any device */
json_t *snap_views_json(const struct snap_views *v);

/* What tensors held, line by line, as a ledger without a card; the moment in words. The views must be by line. */
size_t snap_views_count(const struct snap_views *v);
const char *snap_views_ledger(const struct snap_views *v, size_t i, struct ledger *l, struct pool *pool);

#endif
