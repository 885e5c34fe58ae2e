/* SPDX-License-Identifier: Apache-2.0
 * The knowledge base: one file per cause (kb/causes/<id>.md) and the signs that their rules use (kb/signs), read at run
 * time from a blob linked into the program. docs/cause-files.md describes them.
 */
#ifndef CUWHY_KB_H
#define CUWHY_KB_H

#include "verdict/rules/expr.h"
#include "verdict/rules/order.h"
#include "verdict/rules/template.h"

enum sureness { KB_POSSIBLE, KB_LIKELY, KB_CERTAIN };

/* What a rule looks for: phrases in a text, or facts that go together. Rules refer to it as sign.name. */
struct kb_sign {
	struct kb_sign *next;
	const char *name;
	const char *text;		/* its expression, with other signs expanded */
	const char *source;		/* where the words were found */
	const struct expr *expr;
	const char *file;		/* and line: where it is written */
	int line;
	bool used;			/* used by a rule, a sentence or another sign */
	bool being_parsed;		/* while the knowledge base is being read */
};

/* What evidence does to a cause that a rule has found. */
enum grade {
	GRADE_FOR,		/* one step more certain, at most likely */
	GRADE_AGAINST,		/* one step less certain */
	GRADE_EXCLUDED,		/* it cannot be the cause */
};

/* A rule: one way to recognize a cause, with its own certainty; or evidence, which only moves what a rule has found. */
struct when {
	struct when *next;
	const char *id;			/* unique in its cause */
	enum sureness sure;		/* of a rule */
	enum grade grade;		/* of evidence */
	struct order_place place;		/* in the order of causes and rules */
	const char *text;		/* as people read it, with signs expanded */
	const struct expr *expr;
	const struct template *because;	/* may be NULL */
};

/* A sentence that is printed when its guard (NULL = always) is true, and the command that goes with it. */
struct advice {
	struct advice *next;
	const char *guard_text;		/* likewise */
	const struct expr *guard;
	const struct template *text;
	const struct template *command;	/* may be NULL */
};

struct cause {
	struct cause *next;
	const char *id, *title;
	struct advice *headline;		/* the title, with numbers: the first with known facts; may be NULL */
	struct order_place place;			/* in the order of causes and rules */
	struct over *explains;			/* causes that this one explains away when it fits */
	int blames;		/* enum blamed_id; -1: the line that failed */
	const char *check;	/* the doctor's check (kb/checks.def) that this cause fails; or NULL */
	struct when *when;			/* of equally certain ones, the first is reported */
	struct when *evidence;			/* for and against it */
	const char *definition;
	struct advice *why, *fix;
	const char *confused;			/* "Not to be confused with", or NULL */
	const char *settle;			/* "What would settle it": the observation that decides, or NULL */
	const char *example;			/* a text that this cause must explain, or NULL; tested */
	const char *program;			/* the file of a program that reproduces it, or NULL; run on a GPU */
	const char *program_text;		/* its code, inserted by tools/make_kb.sh */
};

struct kb {
	struct pool pool;
	struct cause *first;			/* by id */
	size_t n;
	struct kb_sign *signs;			/* by name */
	const struct kb_sign **sign;		/* the same as an array */
	size_t n_signs;
};

/* Reads a blob: each file is preceded by a line "%%% <id>", or "%%% signs/<file>" for signs. NULL with the reason in
 * `e`. */
struct kb *kb_parse(const char *blob, size_t len, struct err *e);
void kb_free(struct kb *kb);

/* The knowledge base that is linked in. Exits if it is invalid: that is our bug, and a test finds it. */
const struct kb *kb_get(void);
const struct cause *kb_find(const struct kb *kb, const char *id);

const struct kb_sign *kb_find_sign(const struct kb *kb, const char *name, size_t len);

/* Every text in a says() of a sign, in no particular order. */
size_t kb_words(const struct kb *kb, const char ***words);	/* owned by the caller (free) */

/* The blob itself, for the test that loads every file. */
const char *kb_blob(size_t *len);

#endif
