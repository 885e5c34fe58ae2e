/* SPDX-License-Identifier: Apache-2.0
 * Changes to a user's file that let go of autograd graphs and leave what is trained as it is. Where a statement is not of a form that
 * is known, there is none.
 */
#ifndef CUWHY_EDITS_H
#define CUWHY_EDITS_H

#include "find/code/flow.h"

/* What the recording knows of the code of this file. */
struct seen_tensor { uint32_t line; const char *name; };	/* a variable, or an item of it, of the function that has this line */
struct seen_frame { uint32_t stack, line; };
struct code_facts {
	const struct seen_tensor *tensor;
	size_t n_tensors;
	const struct seen_frame *pending;	/* the lines of nodes that backward has not run, stack by stack; line 0: no line of this file */
	size_t n_pending;
	bool all;				/* these are all of them */
};

/* As text, a line for each line that goes or comes; NULL: not known. `shown`: the file's name, for people. */
const char *edit_detach(const struct code *c, const struct holder *h, size_t n, const char *shown,
			const struct code_facts *facts, struct pool *pool);

/* A sum, and where backward runs over it: backward in each iteration instead. `value`: where the parts of the sum come from. */
const char *edit_spread(const struct code *c, const struct flow *value, const struct holder *sum, int backward,
			const char *shown, const struct code_facts *facts, struct pool *pool);

/* A decorator for a function. */
const char *edit_no_grad(const struct code *c, int function, const char *shown, struct pool *pool);

#endif
