/* SPDX-License-Identifier: Apache-2.0
 * The reader of the knowledge base, for the files kb_read.c (causes) and kb_signs.c (signs).
 */
#ifndef CUWHY_KB_READER_H
#define CUWHY_KB_READER_H

#include "base/buf.h"
#include "base/pool.h"
#include "knowledge/compile/compile.h"

#define SECTION_MAX (16 << 10)

enum section {
	SECTION_BEFORE,
	SECTION_HEADER,
	SECTION_TEXT,
	SECTION_WHY,
	SECTION_FIX,
	SECTION_CONFUSED,
	SECTION_SETTLE,
	SECTION_EXAMPLE,
	SECTION_PROGRAM
};

struct reader {
	struct arena *a;		/* where the knowledge base is made */
	struct pool *pool;		/* of texts that are not part of it */
	struct kb *kb;
	struct kb_sign **sign_named;	/* by name: rules name them thousands of times */
	size_t n_signs;
	struct cause *cause;
	struct err *e;
	enum section section;
	const char *file;
	int line;
	struct buf text;		/* the prose or the sentence being read */
	struct buf command;
	struct when *when;		/* whose expression may continue */
	bool in_because;		/* its expression is complete */
	const char *when_text;
	struct kb_sign *sign;		/* likewise */
	const char *sign_text;
	struct expr_scope scope;	/* of what is being read */
};

/* -EINVAL; the error gets file, line and reason. */
int reader_complain(struct reader *r, const char *why);
/* The reason is in r->e already: puts file and line before it. */
int reader_complain_inner(struct reader *r);
const char *reader_trim(char *s);
/* An expression that is yes or no. NULL, and the error says why: `what`, if it is of another kind. */
const struct expr *reader_flag(struct reader *r, const char *text, const char *what);

/* The expression with signs in place of their names, as a reader of the rule sees it. */
const char *reader_spell_out(struct reader *r, const char *text);
const struct kb_sign *sign_look_up(void *arg, const char *name, size_t len, struct err *e);
int blob_signs(struct reader *r, char *blob);

#endif
