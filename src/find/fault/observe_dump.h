/* SPDX-License-Identifier: Apache-2.0
 * What a GPU core dump says.
 */
#ifndef CUWHY_OBSERVE_DUMP_H
#define CUWHY_OBSERVE_DUMP_H

#include <stddef.h>

#include "case/case.h"

struct culprit;

#define DUMP_OBSERVER "core-dump"

/* Everything that a dump alone says. */
void dump_observe(struct casefile *c, const struct culprit *k);

/* The fault without the error: a recording knows which error it was. */
void dump_observe_fault(struct casefile *c, const struct culprit *k);

/* Which of its lanes is shown, and how many there are: the memory map may know better than the dump. */
void dump_observe_thread(struct casefile *c, const struct culprit *k, size_t lane, size_t threads);

/* observe_values.c: the values that an assertion checked, and the number that an address was computed from. `kernel` is the short name. */
void dump_observe_values(struct casefile *c, const struct culprit *k, const char *kernel);
void dump_observe_index(struct casefile *c, const struct culprit *k);

/* observe_view.c: the tensor that a kernel of PyTorch's accessed, and where in it this thread did. */
void dump_observe_view(struct casefile *c, const struct culprit *k, size_t lane);

/* The element that this thread accessed. `block` to `end` is the memory that its pointer, at this byte of the parameters, leads into; `bytes` is
 * how large an element is, if others know (0 = they do not). */
void dump_observe_element(struct casefile *c, const struct culprit *k, size_t lane, unsigned pointer, uint64_t end,
			  unsigned bytes);

#endif
