/* SPDX-License-Identifier: Apache-2.0
 * Starts the probe and collects what it reports, for two seconds or the time it was given: then it is killed, and what it
 * reported counts.
 */
#ifndef CUWHY_PROBE_H
#define CUWHY_PROBE_H

#include <sys/types.h>

#include "base/buf.h"
#include "probe/cuda.h"
#include "probe/usage.h"

struct probe {
	pid_t pid;		/* 0 = not running */
	int fd;			/* what it writes; -1 = not running */
	const char *mode;	/* its argument; NULL = none */
	uint64_t asked_ns, until_ns;
	struct buf told;
};

/* What libcuda answered. */
struct cuda_answer {
	struct cuda_library library;
	struct cuda_device *device;
	size_t n, cap;
	enum usage_trouble trouble;	/* not USAGE_COMPLETE: this may be only a part */
	char why[240];		/* in words; "" = no trouble */
};

/* Starts one. Prints no errors: what went wrong is in the result. */
void probe_start(struct probe *p);

#define PROBE_ASK_DETAILS	"details"	/* NVML, with struct gpu_details: probe_finish returns it */
#define PROBE_ASK_CUDA		"cuda"		/* libcuda: probe_finish_cuda returns it */
void probe_start_as(struct probe *p, const char *mode, uint64_t limit_ns);
bool probe_runs(const struct probe *p);

/* Collects what was reported; never waits. True when it has finished or must be ended. */
bool probe_step(struct probe *p, uint64_t now_ns);

/* Ends it and returns what it reported; owned by the caller, never NULL. */
struct gpu_usage *probe_finish(struct probe *p);

void probe_finish_cuda(struct probe *p, struct cuda_answer *a);
void cuda_answer_init(struct cuda_answer *a);		/* nothing is known */
void cuda_answer_release(struct cuda_answer *a);

/* Waits until it finishes or times out. */
void probe_wait(struct probe *p);

/* All of the above in one call that waits. */
struct gpu_usage *probe_gpus(void);

#endif
