/* SPDX-License-Identifier: Apache-2.0
 * Where a text starts a program again: people paste a failure, what they did about it, and the next failure.
 */
#ifndef CUWHY_TEXT_RESTART_H
#define CUWHY_TEXT_RESTART_H

#include <stdbool.h>

struct text_line;

/* In order: the later ones are the better proof that what failed before is over. */
enum restart {
	RESTART_NOT,
	RESTART_STATEMENT,	/* the next line typed into Python or a notebook: the same process goes on */
	RESTART_TOLD,		/* a sentence says that it was tried again */
	RESTART_PROGRAM,	/* a command: a new process */
};

struct restarts {
	unsigned long cell;	/* the last "In [n]:"; numbers that begin again are those of a new process */
	bool chained;		/* the line before says that the next exception follows from the last one */
};

/* Every line in order. `failed`: something did before it; otherwise nothing can be started again. */
enum restart restart_line(struct restarts *r, const struct text_line *line, bool failed);

#endif
