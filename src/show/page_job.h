/* SPDX-License-Identifier: Apache-2.0
 * The data of the page of a job: its ranks over time, by one clock as far as that is known (docs/develop/report.md).
 */
#ifndef CUWHY_PAGE_JOB_H
#define CUWHY_PAGE_JOB_H

#include <jansson.h>

struct job;
struct job_answer;

#define PAGE_RANKS_MAX		8192	/* listed one by one; groups count them all */
#define PAGE_VERDICTS_MAX	24	/* in full */
#define PAGE_VERDICTS_BYTES	((size_t)512 << 10)

/* `answer`: of each attempt, in their order; the last one is shown. The caller owns it. */
json_t *page_job_json(const struct job *j, struct job_answer *const *answer);

#endif
