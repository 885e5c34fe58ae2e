/* SPDX-License-Identifier: Apache-2.0
 * Joins a GPU core dump with the recording of its process: which launch the faulting kernel was. (What its
 * address has to do with the memory of the process: address.h.)
 */
#ifndef CUWHY_FAULT_H
#define CUWHY_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "facts/place.h"

struct trace;
struct culprit;
struct cw_failure;
struct cw_launch;

#define FAULT_LINES_MAX 8

struct fault_launch {
	struct place line[FAULT_LINES_MAX];	/* lines that launched this kernel so, newest first */
	size_t n;
	struct place replay;	/* the kernel was captured: the line that ran the graph */
	const struct cw_launch *newest;	/* NULL = not found */
	uint64_t stream;	/* of the newest */
	uint32_t shared;
	bool found;
};

/* By kernel, dimensions and, where both are known, parameter bytes. */
void fault_find_launch(struct fault_launch *m, struct trace *t, const struct culprit *c,
		       const struct cw_failure *noticed);

#endif
