/* SPDX-License-Identifier: Apache-2.0
 * Which moment of a recorded process `cuwhy memory` shows, and the ledger of a device at that moment.
 */
#ifndef CUWHY_MEMORY_MOMENT_H
#define CUWHY_MEMORY_MOMENT_H

#include "base/buf.h"
#include "case/ledger.h"
#include "find/memory/playback.h"

struct err;
struct recorded_process;
struct trace;

/* As a user asks for it. */
struct memory_when {
	bool given;		/* false: when memory ran out, else the peak */
	enum ledger_at at;
	uint64_t time_ns;	/* LEDGER_TIME: since the start of a process */
};

/* NULL gives the default. -EINVAL with `e` filled. */
int memory_when_parse(struct memory_when *w, const char *text, struct err *e);

/* Of a file in which memory did not run out, asked for that moment. */
int memory_when_no_oom(const char *path, struct err *e);

/* In one recorded process. */
struct memory_moment {
	struct memory_when when;
	struct trace *trace;
	const struct recorded_process *process;
	uint64_t ticks;		/* LEDGER_TIME */
	bool traced;		/* there is a memory trace, and `playback` is at it */
	struct playback playback;
	struct buf bytes;	/* of the trace */
};

/* -ERANGE with `e` filled when the process had ended by then. A memory trace that cannot be read is reported, and done without.
 * To be closed in either case. */
int memory_moment_open(struct memory_moment *m, struct trace *t, const struct recorded_process *p,
		       const struct memory_when *w, struct err *e);
void memory_moment_close(struct memory_moment *m);

/* Did the process use this device at all? */
bool memory_device_used(struct trace *t, int device);

/* False when the moment that was asked for never was. The ledger has all of its lines, and borrows from the trace. */
bool memory_moment_ledger(struct ledger *l, const struct memory_moment *m, int device, struct pool *pool);

#endif
