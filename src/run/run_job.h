/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy run --job DIR`: what a job's other nodes should know about the processes of this run (docs/jobs.md).
 *
 * DIR is on a shared file system, which may be slow, full or gone. So a process of its own writes to it: the keeper only sends it
 * what to write, never waits for it while the program runs, and leaves it behind if it does not come back in time.
 */
#ifndef CUWHY_RUN_JOB_H
#define CUWHY_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pool.h"

struct child;
struct judge;
struct keeper;
struct process;
struct run_job;
struct server;
struct trace;

/* NULL without a `dir`. */
struct run_job *run_job_new(const char *dir, char **argv);
void run_job_free(struct run_job *j);

/* In the keeper, before anything else: starts the process that writes. */
void run_job_start(struct run_job *j, const struct server *s);

/* Reports processes that are new or were judged, and every minute those that run. */
void run_job_step(struct run_job *j, const struct server *s, const struct child *c);
int run_job_wait_ms(const struct run_job *j);	/* until the next step is due; -1 = nothing to do */

/* What the recording of a process that ended says about its collectives; while it is open. */
void run_job_note(struct run_job *j, const struct process *p, struct trace *t);

/* The end of the run: the last word about each process. Before their verdicts are joined. */
void run_job_end(struct run_job *j, const struct server *s, const struct child *c);

/* Waits until all is written, a few seconds at most. Where rank 0 ran, also for the other nodes, and prints who failed first. */
void run_job_finish(struct run_job *j, const struct keeper *self, bool print, bool color, int width);

/* NCCL's communicators of a recording, as a job folder has them. */

struct job_rank;

/* Also the last line that launched or called something, if there is no better one. */
void job_comms_of(struct job_rank *r, struct trace *t, struct pool *pool);

#endif
