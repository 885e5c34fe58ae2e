/* SPDX-License-Identifier: Apache-2.0
 * Judges a process, with what other inputs add to its case.
 */
#ifndef CUWHY_JUDGE_PROCESS_H
#define CUWHY_JUDGE_PROCESS_H

struct casefile;
struct process_end;
struct trace;
struct verdict;

/* Observes into the case of the failure that ended the process, after the recording has. */
struct process_also {
	void (*observe)(struct casefile *c, const void *arg);
	const void *arg;
};

/* Like verdict_of_process, plus `also`, which may be NULL. */
struct verdict *verdict_of_process_and(struct trace *t, const struct process_end *end, const struct process_also *also);

#endif
