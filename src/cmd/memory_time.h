/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory --at TIME`: a moment of a recorded process, and its memory trace played back to it.
 */
#ifndef CUWHY_MEMORY_TIME_H
#define CUWHY_MEMORY_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "input/recording/playback.h"

struct err;
struct ledger;
struct recorded_process;
struct trace;

struct moment_at {
	uint64_t ticks;
	double seconds;			/* since the start */
	bool traced;			/* there is a memory trace, and `playback` is at it */
	struct playback playback;
	struct buf bytes;		/* of the trace */
};

/* "12.5s", "250ms", "5m", "1h" into nanoseconds; false when it is no time. */
bool time_parse(const char *text, uint64_t *ns);

/* The events of a process that has a memory trace beside its part. 0; 1 when there is none; -errno with `e` filled. */
int memory_trace_read(struct buf *b, const struct trace *t, const char *part, struct err *e);

/* -ERANGE with `e` filled when the process had ended by then. A trace that cannot be read is told of, and done without. */
int moment_at_open(struct moment_at *m, struct trace *t, const struct recorded_process *p, uint64_t ns, struct err *e);
void moment_at_close(struct moment_at *m);

/* What of the answer is not exact, in words; after the tables. */
void moment_at_tell(const struct ledger *l, struct trace *t);

#endif
