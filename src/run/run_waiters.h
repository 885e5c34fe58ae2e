/* SPDX-License-Identifier: Apache-2.0
 * Threads of a process that wait for the GPU: reads the marks that its recorder leaves, and writes our findings next to them.
 */
#ifndef CUWHY_RUN_WAITERS_H
#define CUWHY_RUN_WAITERS_H

#include "run/run.h"

struct waiters {		/* of one process, the longest wait first */
	struct waiter list[CW_HANG_THREADS];
	size_t n;
	char dump_path[256], pipe_path[256];	/* as the recorder says */
	uint32_t pipe_reason;
};

/* Threads that have waited since `before_ns` or longer; false if there are none. */
bool waiters_find(struct waiters *w, struct process *p, uint64_t before_ns);
bool waiter_still(const struct process *p, const struct waiter *w);

/* A number that changes when the process launches anything, or when a wait of any of its threads ends or begins. */
uint64_t process_progress(const struct process *p);

/* Is it in a call that loads code? The driver may be compiling. */
bool waiter_loads(const struct waiter *w);

/* Was work launched that has not been synchronized successfully since? */
bool process_has_work(const struct process *p);

/* Writes the findings into the recording. */
bool hang_write(const struct process *p, const struct cw_hang *h);

#endif
