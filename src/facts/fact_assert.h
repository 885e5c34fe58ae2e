/* SPDX-License-Identifier: Apache-2.0
 * Facts about a device-side assert: what the kernel checked, what that is about, and which size was exceeded.
 */
#ifndef CUWHY_FACT_ASSERT_H
#define CUWHY_FACT_ASSERT_H

#include <stddef.h>
#include <stdint.h>

#include "facts/facts.h"

struct culprit;
struct cw_failure;
struct place;
struct trace;

/* From the core dump. */
void assert_facts_of_dump(struct facts *f, const struct culprit *c);

/* From the line that a failing kernel printed; `stack` is the traceback that came with it, or "". */
void assert_facts_of_text(struct facts *f, const char *function, const char *condition, const char *file, uint32_t line,
			  const char *stack);

/* Without a dump: the suspects that are known to assert, when all of them check the same thing. The stack of
 * their launch; 0 when there is none, or more than one. */
uint32_t assert_facts_of_suspects(struct facts *f, struct trace *t, const struct cw_failure *noticed);

/* From the Python stacks of the launches that it can have been: what all of them have in common. */
void assert_facts_of_lines(struct facts *f, const struct trace *t, const struct place *line, size_t n);

/* No assertion: what rules ask of one is empty, where it is not known yet. */
void facts_without_assert(struct facts *f);

#endif
