/* SPDX-License-Identifier: Apache-2.0
 * Starts the probe and takes in what it tells, for at most two seconds: then it is killed, and what it told counts.
 */
#ifndef CUWHY_PROBE_H
#define CUWHY_PROBE_H

#include <sys/types.h>

#include "base/buf.h"
#include "probe/usage.h"

struct probe {
	pid_t pid;		/* 0 = not running */
	int fd;			/* what it writes; -1 = not running */
	uint64_t asked_ns, until_ns;
	struct buf told;
};

/* Starts one. Never fails aloud: what went wrong is in the result. */
void probe_start(struct probe *p);
bool probe_runs(const struct probe *p);

/* Takes in what was told; never waits. True when it has finished, or has to be ended. */
bool probe_step(struct probe *p, uint64_t now_ns);

/* Ends it and gives what it told; owned by the caller, never NULL. */
struct gpu_usage *probe_finish(struct probe *p);

/* All of that, waiting for it. */
struct gpu_usage *probe_gpus(void);

#endif
