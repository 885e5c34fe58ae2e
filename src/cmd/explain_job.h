/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain DIR` on the folder of a job.
 */
#ifndef CUWHY_EXPLAIN_JOB_H
#define CUWHY_EXPLAIN_JOB_H

#include <stdbool.h>
#include <stdio.h>

struct job;
struct text_style;

/* Do these words tell of a job: a job folder, dumps of PyTorch's flight recorder, error files of torchelastic, with or without logs? */
bool explain_is_job(char **words, int n);

/* The exit status. */
int explain_job(char **words, int n, bool json, const struct text_style *style);

/* Prints the answer about what is in `dir`, if anything failed; for the end of a run. */
void explain_job_end(FILE *out, const char *dir, const struct text_style *style);

/* 1 if something failed in the last attempt. */
int job_print(FILE *out, struct job *j, bool json, const struct text_style *style);

#endif
