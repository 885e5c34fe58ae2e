/* SPDX-License-Identifier: Apache-2.0
 * A job folder: DIR/job-ID/attempt-N/rank-R.NODE.PID.json, one small file per process, on any shared file system.
 *
 * There are no locks and no server. A writer makes a file beside it, flushes it and renames it; a reader bears files that are
 * partial, stale or gone. Nobody else's links are followed, nothing outside the folder is written, and a file that another user
 * planted is not read.
 */
#ifndef CUWHY_JOB_FOLDER_H
#define CUWHY_JOB_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"
#include "base/pool.h"
#include "read/rank/rank.h"

#define JOB_FILE_MAX	(256u << 10)	/* bytes of a file: ours are 64 times smaller */
#define JOB_FILES_MAX	65536u		/* of an attempt */

struct job_attempt {
	uint32_t requeue, attempt;
	const char *path[2];		/* its folder, below the one that was read: up to two names; NULL = no further */
	struct job_rank *rank;		/* by rank; those without one last */
	size_t n;
	size_t n_damaged, n_foreign, n_older;	/* files that were left out: not ours, another user's, of an earlier run */
	uint32_t *unread;		/* ranks whose files were damaged or another user's, ascending, by their names */
	size_t n_unread;
	size_t n_twice;		/* and of ranks that ran twice at the same time: two programs under one job id */
	bool too_many;
	uint64_t newest_real_ns;
};

struct job {
	struct pool pool;
	const char *root;		/* the folder that was read; NULL = none was */
	const char *id;
	struct job_attempt *attempt;	/* ascending */
	size_t n_attempts;
	const char **other;		/* further jobs of the same folder, the newest first */
	size_t n_others;
};

/* Is this a job folder, the folder of one job, or of one attempt? */
bool job_folder_is(const char *path);

/* The newest job in it. NULL with the reason in `e`. */
struct job *job_folder_read(const char *path, struct err *e);
void job_free(struct job *j);

/* The whole verdict of a rank, which lies beside its file; the caller owns it. NULL = there is none, or it is not to be trusted. */
json_t *job_verdict_read(const struct job *j, const struct job_attempt *a, const struct job_rank *r);

/* Adds what another source knows about a rank. */
void job_attempt_add(struct job_attempt *a, const struct job_rank *r);
void job_attempt_sort(struct job_attempt *a);
/* A file of this rank was there, but could not be read. JOB_UNKNOWN: of no rank. */
void job_attempt_add_unread(struct job_attempt *a, uint32_t rank);

/* Creates what is missing of DIR/job-ID/attempt-N. A descriptor, or -errno with `e` filled: also if the folder is another user's, or
 * others can write to it. */
int job_folder_open(const char *dir, const struct job_rank *r, struct err *e);

/* "rank-3.node1.4711.json" */
void job_rank_name(char *to, size_t size, const struct job_rank *r);

/* All or nothing, flushed to disk. */
int job_file_write(int folder, const char *name, const char *text, size_t n);

#endif
