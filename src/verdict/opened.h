/* SPDX-License-Identifier: Apache-2.0
 * One process of a recording, opened to be judged: its part, and the core dump next to it.
 */
#ifndef CUWHY_OPENED_H
#define CUWHY_OPENED_H

#include <stdbool.h>

struct culprit;
struct dump;
struct err;
struct inputs_beside;
struct recorded_process;
struct trace;
struct verdict;

struct opened {
	struct trace *trace;	/* NULL = it has no part: it never used CUDA */
	struct dump *dump;
	struct culprit *fault;	/* p->end.fault points to it */
};

/* -errno with `e` filled if its part cannot be read; then there is nothing to release. */
int opened_read(struct opened *o, struct recorded_process *p, struct err *e);
void opened_release(struct opened *o, struct recorded_process *p);

/* The verdict on it, with what other inputs (may be NULL) add to its case. What the doctor found when the program ended is
 * kept: this may be a different machine. */
struct verdict *opened_judge_beside(const struct opened *o, const struct recorded_process *p,
				    const struct inputs_beside *beside);
struct verdict *opened_judge(const struct opened *o, const struct recorded_process *p);

#endif
