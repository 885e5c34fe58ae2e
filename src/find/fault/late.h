/* SPDX-License-Identifier: Apache-2.0
 * A fault that was reported late: the dump has its instruction, but no longer the thread. Which launch was it, and which address?
 */
#ifndef CUWHY_LATE_H
#define CUWHY_LATE_H

struct trace;
struct culprit;
struct cw_failure;
struct fault_launch;

/* Executes the launches of the kernel. NULL when none is seen to leave its memory; else the culprit with its threads, and `m` has
 * those launches. Free it before the dump's own. */
struct culprit *late_find(struct trace *t, const struct culprit *k, const struct cw_failure *noticed,
			  struct fault_launch *m);

#endif
