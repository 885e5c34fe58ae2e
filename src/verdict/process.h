/* SPDX-License-Identifier: Apache-2.0
 * Judges a process, with what other inputs add to its case.
 */
#ifndef CUWHY_JUDGE_PROCESS_H
#define CUWHY_JUDGE_PROCESS_H

struct inputs_beside;
struct process_end;
struct trace;
struct verdict;

/* Like verdict_of_process, with what other inputs (may be NULL) add to the case of the failure that ended it. */
struct verdict *verdict_of_process_beside(struct trace *t, const struct process_end *end,
					  const struct inputs_beside *beside);

#endif
