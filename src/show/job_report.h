/* SPDX-License-Identifier: Apache-2.0
 * The answer about a job: text for people, JSON for programs.
 */
#ifndef CUWHY_JOB_REPORT_H
#define CUWHY_JOB_REPORT_H

#include <stdio.h>

#include <jansson.h>

struct job;
struct job_answer;
struct text_style;

/* `answer`: of each attempt, in their order. The last one is printed in full, the others in a line each. */
void job_text(FILE *out, const struct job *j, struct job_answer *const *answer, const struct text_style *style);
json_t *job_json(const struct job *j, struct job_answer *const *answer);

#endif
