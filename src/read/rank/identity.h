/* SPDX-License-Identifier: Apache-2.0
 * Which job, attempt and rank a process belongs to, from the variables that its launcher gave it (identity.def).
 */
#ifndef CUWHY_JOB_IDENTITY_H
#define CUWHY_JOB_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct job_rank;

/* The value of a variable in this environment; NULL = not set. */
typedef const char *(*job_variable)(const char *name, const void *env);

/* Fills job, attempt, requeue, rank, world, local and node. What this environment does not say stays as it is. `by` gets the number
 * of the row that gave the rank: a smaller one is a launcher further inside; may be NULL. */
void job_identify(struct job_rank *r, job_variable get, const void *env, struct pool *pool, int *by);

/* What is said if nothing names the job. */
#define JOB_UNNAMED	"unnamed"

/* This machine since it was started; "" if it cannot be known. */
void job_boot(char *to, size_t size);

/* A name for a file or folder made of any text: harmless bytes stay, and texts that differ have different names. */
void job_file_name(char *to, size_t size, const char *text);

#endif
