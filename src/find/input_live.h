/* SPDX-License-Identifier: Apache-2.0
 * Processes that run, as an input: several may be looked at in the same second.
 */
#ifndef CUWHY_LIVE_INPUT_H
#define CUWHY_LIVE_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/pool.h"
#include "case/case.h"
#include "case/live.h"
#include "read/live/look.h"

#define LIVE_OBSERVER "live"

struct live_source {
	struct process_look look;
	struct pool pool;
	struct live told;
	struct err e;		/* code != 0: it could not be looked at */
	bool ended;		/* it ended while it was looked at */
};

/* Looks at all of them; each has its own `e`. */
void live_look(struct live_source *list, const pid_t *pids, size_t n, const struct look_options *o);
void live_release(struct live_source *list, size_t n);

/* Adds what is known to the case, if it is hung; the source must live as long as the case. */
void live_observe(struct live_source *s, struct casefile *c);

/* "thread 4711 (Thread-1)", "the main thread" */
const char *live_thread_name(const struct live_thread *t, struct pool *pool);

/* Processes that have the CUDA driver loaded, and may be looked at by us; the list is the caller's. */
size_t live_cuda_processes(pid_t **list);

#endif
