/* SPDX-License-Identifier: Apache-2.0
 * Facts about a device-side assert: what the kernel checked, what that is about, and which size was exceeded.
 */
#ifndef CUWHY_FACT_ASSERT_H
#define CUWHY_FACT_ASSERT_H

#include <stdint.h>

#include "facts/facts.h"

struct culprit;
struct suspects;
struct trace;

/* From the core dump. */
void assert_facts_of_dump(struct facts *f, const struct culprit *c);

/* Without a dump: the one kernel among the suspects that is known to assert. Returns the stack of its launch, 0 when
 * there is none or several. */
uint32_t assert_facts_of_suspects(struct facts *f, const struct suspects *s, struct trace *t);

/* From the Python stack of the launch. */
void assert_facts_of_stack(struct facts *f, const struct trace *t, uint32_t stack);

#endif
