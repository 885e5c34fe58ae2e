/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain DIR` on the folder of a job.
 */
#ifndef CUWHY_EXPLAIN_JOB_H
#define CUWHY_EXPLAIN_JOB_H

#include <stdbool.h>
#include <stdio.h>

struct err;
struct job;
struct job_answer;
struct text_style;

/* Do these words tell of a job: a job folder, dumps of PyTorch's flight recorder, error files of torchelastic, with or without logs? */
bool explain_is_job(char **words, int n);

/* What they tell together. NULL with the reason in `e`. */
struct job *explain_job_collect(char **words, int n, struct err *e);

/* Of each attempt, in their order. */
struct job_answer **explain_job_judge(const struct job *j);
void explain_job_free(const struct job *j, struct job_answer **list);

/* The exit status. */
int explain_job(char **words, int n, bool json, const struct text_style *style);

/* Prints the answer about what is in `dir`, if anything failed; for the end of a run. */
void explain_job_end(FILE *out, const char *dir, const struct text_style *style);

/* 1 if something failed in the last attempt. */
int job_print(FILE *out, struct job *j, bool json, const struct text_style *style);

#endif
