/* SPDX-License-Identifier: Apache-2.0
 * Prefixes of lines that are not known in advance: their shape is learned from the lines of a traceback, which are known to begin
 * with "Traceback" and "  File", or from what all lines of a text begin with. Digits and the spaces between words may differ.
 */
#ifndef CUWHY_TEXT_PREFIX_H
#define CUWHY_TEXT_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

struct text_line;

#define PREFIX_SHAPES	8
#define PREFIX_SHAPE_MAX	120

struct prefixes {
	char shape[PREFIX_SHAPES][PREFIX_SHAPE_MAX];	/* '#': digits; no prefix that is learned has a '#' of its own */
	size_t n;
	/* what all lines of a text begin with, as far as they were read */
	char common[PREFIX_SHAPE_MAX];
	size_t lines;
	bool error;		/* one of them is about an error */
};

/* Learns from a line of a traceback. */
void prefix_learn(struct prefixes *p, const struct text_line *l);

/* Learns from several lines: begin, one call each until it returns false, end. */
void prefix_common_begin(struct prefixes *p);
bool prefix_common_line(struct prefixes *p, const struct text_line *l);
void prefix_common_end(struct prefixes *p);

/* Takes a prefix that was learned away. */
void prefix_strip(const struct prefixes *p, struct text_line *l);

#endif
