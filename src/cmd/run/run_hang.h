/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy run --hang-after`: the threads of a process that wait for the GPU.
 */
#ifndef CUWHY_RUN_HANG_H
#define CUWHY_RUN_HANG_H

#include "cmd/run/run.h"

#define MS_NS		1000000u
#define SECOND_NS	1000000000u

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

/* Asks for a dump of the GPU that `p` waits for, or goes without where nobody listens; then sees it come. */
void hang_ask(const struct hang *h, const struct server *s, struct process *p, const struct waiters *w);
void hang_follow_dump(const struct hang *h, struct process *p, uint64_t now);

#endif
