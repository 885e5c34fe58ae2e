/* SPDX-License-Identifier: Apache-2.0
 * What the program does with what a line makes, by its source and by what backward has run: only kept, or still needed by a backward.
 */
#ifndef CUWHY_USES_H
#define CUWHY_USES_H

#include "find/code/flow.h"

struct trace;

struct uses {
	enum use use;			/* of what holds the results of the line */
	const char *held;		/* the name of that; NULL: not known */
	const char *keeper;		/* file:line that puts it there */
	const char *edit;		/* what to change; NULL: not known */
	const char *no_grad;		/* a function that needs no gradients, decorated; NULL: none is known */
	enum use pass;			/* where the line's own value goes */
	bool read;			/* its source is known */
};

/* Of the lines of a stack, from the frame of this file and line outward. */
void uses_find(struct uses *u, struct trace *t, uint32_t stack, const char *file, uint32_t line, struct pool *pool);

/* Has backward run nodes that were created at this line? */
bool line_was_run(struct trace *t, const char *file, uint32_t line);

#endif
