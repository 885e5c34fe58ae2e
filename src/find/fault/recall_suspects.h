/* SPDX-License-Identifier: Apache-2.0
 * The values behind an assertion of which there is no dump: kernels that check a list of indices, whose list was copied to the GPU.
 */
#ifndef CUWHY_RECALL_SUSPECTS_H
#define CUWHY_RECALL_SUSPECTS_H

#include <stdint.h>

struct asserting;
struct casefile;
struct cw_failure;
struct trace;

/* Of the launches that may have failed, the oldest with an index that is out of bounds: its values become facts. The stack of that launch, 0:
 * there is none. */
uint32_t recall_suspects(struct casefile *c, struct trace *t, const struct cw_failure *noticed,
			 const struct asserting *a);

#endif
