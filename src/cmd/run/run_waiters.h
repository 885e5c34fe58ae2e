/* SPDX-License-Identifier: Apache-2.0
 * The threads of a process that wait for the GPU: the marks that its recorder leaves, and what is written back beside them.
 */
#ifndef CUWHY_RUN_WAITERS_H
#define CUWHY_RUN_WAITERS_H

#include "cmd/run/run.h"

struct waiters {		/* of one process, the longest wait first */
	struct waiter list[CW_HANG_THREADS];
	size_t n;
	char dump_path[256], pipe_path[256];	/* as the recorder says */
	uint32_t pipe_reason;
};

/* Those that wait since `before_ns` or longer; false when there are none. */
bool waiters_find(struct waiters *w, struct process *p, uint64_t before_ns);
bool waiter_still(const struct process *p, const struct waiter *w);

/* Those that load code: the driver may be compiling. */
bool waiter_loads(const struct waiter *w);

/* Was work launched that nobody has waited for with success since? */
bool process_has_work(const struct process *p);

/* Writes into the recording what was found. */
bool hang_write(const struct process *p, const struct cw_hang *h);

#endif
