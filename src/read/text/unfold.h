/* SPDX-License-Identifier: Apache-2.0
 * A traceback that a log collector wrote into one line, as the lines that it was.
 */
#ifndef CUWHY_TEXT_UNFOLD_H
#define CUWHY_TEXT_UNFOLD_H

#include <stddef.h>

/* The piece of the text that was a line of its own begins at `s`: its length, and in `*indent` how far it was indented. Call it again for
 * what follows; spaces between pieces belong to neither. */
struct unfold {
	const char *at;
	size_t folds;		/* frames and headers so far */
	int source;		/* the piece before was a frame: a line of code may follow */
};

/* 0 at the end. A text that is one line is one piece. */
size_t unfold_next(struct unfold *u, const char **piece, size_t *indent);

#endif
