/* SPDX-License-Identifier: Apache-2.0
 * The frames of a traceback, line by line, as Python, notebooks and rich write them.
 */
#ifndef CUWHY_TEXT_TRACEBACK_H
#define CUWHY_TEXT_TRACEBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

#define TRACEBACK_FRAMES_MAX	64

struct text_frame {
	const char *file;	/* NULL: only its text is known */
	const char *function, *source;	/* may be NULL */
	uint32_t line;
};

/* A frame that is being read: most are never kept. */
struct raw_frame {
	char file[240], function[80], source[200];
	uint32_t line;
};

struct traceback {
	struct raw_frame frame[TRACEBACK_FRAMES_MAX];	/* a ring: the innermost ones count */
	size_t n;		/* frames so far; 0 empties it */
};

/* Takes a line that is a frame, or the arrow that names the line of the frame above. False: something else. */
bool traceback_frame(struct traceback *t, const char *s);
bool traceback_arrow(struct traceback *t, const char *s);
/* Rich and IPython: a numbered line of the code around the one with the arrow. It was not executed: what it says is not said. */
bool traceback_context(const struct traceback *t, const char *s);
/* The source line of the frame above, or of a frame without other data. */
void traceback_source(struct traceback *t, const char *s);

/* What is kept of it, innermost last. Returns how many. */
size_t traceback_keep(const struct traceback *t, struct pool *pool, struct text_frame **frames);

#endif
