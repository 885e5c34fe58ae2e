/* SPDX-License-Identifier: Apache-2.0
 * Device-side asserts looked up in kb/asserts.def: what a kernel or a condition is about.
 */
#ifndef CUWHY_ASSERT_H
#define CUWHY_ASSERT_H

#include <stdbool.h>

#include "case/case.h"

/* What all assertions of a kernel are about: label, index, …; "" when they can be about anything. Kernels that serve
 * many operators have the operator among their template arguments, which only the full name has. */
const char *assert_about_kernel(const char *kernel, const char *full);
const char *assert_about_condition(const char *kernel, const char *condition);

/* "index out of bounds: 0 <= tmp4 < 10": generated code contains the number itself. */
bool assert_bound_in_text(const char *condition, double *bound);

/* Does a line of code name a table of positions? */
bool assert_names_position(const char *line);

/* After every input has observed: what none of them could say about an assertion becomes empty. */
void assert_facts_complete(struct casefile *f);

#endif
