/* SPDX-License-Identifier: Apache-2.0
 * A cause file that is being read: shared by the readers of its header and of its sections, by nobody else.
 */
#ifndef CUWHY_KB_READER_H
#define CUWHY_KB_READER_H

#include "base/buf.h"
#include "rules/kb.h"

enum section { SECTION_BEFORE, SECTION_HEADER, SECTION_TEXT, SECTION_WHY, SECTION_FIX, SECTION_CONFUSED, SECTION_SETTLE, SECTION_EXAMPLE,
	       SECTION_PROGRAM };

struct reader {
	struct kb *kb;
	struct cause *cause;
	struct err *e;
	enum section section;
	int line;
	struct buf text;		/* the prose, or the sentence, being read */
	struct buf command;
	struct when *when;		/* whose expression may go on */
	bool in_because;
};

/* What is wrong with the line being read: -EINVAL, with its place before the reason. */
int reader_complain(struct reader *r, const char *why);
int reader_complain_inner(struct reader *r);	/* the reason is in r->e already */

/* Without spaces at its ends; `s` is changed. */
const char *reader_trim(char *s);

/* A guard "[...]" at the beginning of a text, which then begins behind it. */
int reader_guard(struct reader *r, struct advice *a, const char **text);

/* kb_header.c: a line of the header; and its last `when` is complete. */
int reader_header(struct reader *r, char *line);
int reader_when_end(struct reader *r);

#endif
