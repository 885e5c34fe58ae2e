/* SPDX-License-Identifier: Apache-2.0
 * Joins a GPU core dump with the recording of its process: which launch the faulting kernel came from. (Which
 * memory its address belongs to: address.h.)
 */
#ifndef CUWHY_FAULT_H
#define CUWHY_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"
#include "find/failure/incident.h"
#include "find/failure/suspects.h"
#include "case/line.h"

struct trace;
struct culprit;
struct cw_failure;
struct dump;
struct cw_launch;

#define FAULT_LINES_MAX 8
#define FAULT_LAUNCHES_MAX 64

struct fault_launch {
	const struct cw_launch *newest;		/* NULL = none was found */
	struct scene at[FAULT_LINES_MAX];	/* lines of matching launches, each once, newest first */
	size_t n;
	struct place replay;	/* the kernel was captured: the line that ran the graph */
	uint64_t ran;		/* and when; 0 = it was not captured */
	const struct cw_launch *all[FAULT_LAUNCHES_MAX];	/* newest first */
	size_t n_all;		/* may exceed that: the older ones are not listed */
};

/* What the dump of a recorded process shows. A dump that `cuwhy run` requested is never taken for a fault. */
struct culprit *culprit_of_process(struct dump *d, const struct trace *t);

/* By kernel, dimensions and, if both are known, parameter bytes. */
void fault_find_launch(struct fault_launch *m, struct trace *t, const struct culprit *c,
		       const struct cw_failure *noticed);

/* Is it a launch of the kernel that the dump names, with its dimensions, if it has them? */
bool fault_same_kernel(struct trace *t, const struct culprit *c, const struct cw_launch *l);
/* Launches before it was noticed, newest first; then what was captured, if a graph ran. */
void fault_each_launch(struct trace *t, const struct cw_failure *noticed, launches_fn *each, suspect_fn *fn, void *arg);

/* Is there any matching launch of this kernel? */
bool fault_has_launch(struct trace *t, const struct culprit *k);

/* Puts what both say about the fault into the case; the scene becomes that of the launch. */
void join_dump(struct casefile *c, const struct incident *i, struct trace *t, const struct culprit *k, struct scene *s);

#endif
