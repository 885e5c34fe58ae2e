/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy run --hang-after`: the threads of a process that wait for the GPU.
 */
#ifndef CUWHY_RUN_HANG_H
#define CUWHY_RUN_HANG_H

#include "cmd/run.h"

struct waiters {		/* of one process, the longest wait first */
	struct waiter list[CW_HANG_THREADS];
	size_t n;
	char dump_path[256], pipe_path[256];	/* as the recorder says */
	uint32_t pipe_reason;
};

/* Those that wait since `before_ns` or longer; false when there are none. */
bool waiters_find(struct waiters *w, struct process *p, uint64_t before_ns);
bool waiter_still(const struct process *p, const struct waiter *w);

/* Writes into the recording what was found. */
bool hang_write(const struct process *p, const struct cw_hang *h);

#endif
