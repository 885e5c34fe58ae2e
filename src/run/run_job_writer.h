/* SPDX-License-Identifier: Apache-2.0
 * The process that writes to a job folder, and waits for the others at the end (see run_job.h).
 */
#ifndef CUWHY_RUN_JOB_WRITER_H
#define CUWHY_RUN_JOB_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "show/report.h"

struct job_rank;
struct server;

struct job_writer {
	pid_t pid;		/* 0 = there is none */
	int to;			/* -1 = closed */
	bool lost;		/* it did not take something */
};

#define JOB_MESSAGE_MAX	(160u << 10)

void job_writer_start(struct job_writer *w, const char *dir, const struct server *s);

/* Never waits. `old`: the name under which the same process was told of before; may be NULL. */
void job_writer_send(struct job_writer *w, const struct job_rank *r, const char *name, const char *old, const char *text);

struct job_farewell {
	bool wait;		/* for the other nodes */
	bool print;
	const char *job;	/* NULL = it has no name */
	struct text_style style;
};

/* What it does last. */
void job_writer_close(struct job_writer *w, const struct job_farewell *f);
bool job_writer_gone(struct job_writer *w);
void job_writer_kill(struct job_writer *w);

#endif
