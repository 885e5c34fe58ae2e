/* SPDX-License-Identifier: Apache-2.0
 * The knowledge base: one file per cause (kb/causes/<id>.md) and the signs that their rules use (kb/signs). It is read when cuwhy is built
 * (knowledge/compile), and linked in as these structures. docs/develop/cause-files.md describes the files.
 */
#ifndef CUWHY_KB_H
#define CUWHY_KB_H

#include "knowledge/expr.h"

enum sureness { KB_POSSIBLE, KB_LIKELY, KB_CERTAIN };

/* What evidence does to a cause that a rule has found. */
enum grade {
	GRADE_FOR,		/* one step more certain, at most likely */
	GRADE_AGAINST,		/* one step less certain */
	GRADE_EXCLUDED,		/* it cannot be the cause */
};

enum part_format { FORMAT_PLAIN, FORMAT_N, FORMAT_BYTES };

/* Lists begin with the next element: that is how they are appended to (compile/compile.h). */

struct part {
	REF(const struct part) next;
	REF(const char) literal;	/* or */
	REF(const struct expr) expr;
	uint32_t format;		/* enum part_format */
};

/* A sentence with facts in it (verdict/rules/template.h). */
struct template {
	REF(const char) text;		/* as written */
	REF(const struct part) first;
};

/* One name of an `over:` line. */
struct over {
	REF(const struct over) next;
	REF(const char) name;		/* "cause" or "cause/rule" */
	REF(const char) file;		/* and line: where it is written */
	uint32_t line;
	REF(const struct order_place) place;	/* the place that it names */
};

/* The place of a cause or of a rule in the order: which of two causes comes first when both match with equal certainty.
 *
 * A cause, or a single rule, is over others. This is a transitive partial order. A rule that has its own `over:`, or is
 * named in one, has its own place in the order: its cause's place does not apply to it. */
struct order_place {
	REF(const char) name;
	REF(const struct over) over;
	bool alone;		/* of a rule: it has its own place, not its cause's */
	bool open;		/* while the order is being checked */
	uint16_t number;
	REF(const uint32_t) below;	/* a bit for each place that this one is over, by number */
};

/* What a rule looks for: phrases in a text, or facts that go together. Rules refer to it as sign.name. */
struct kb_sign {
	REF(const struct kb_sign) next;	/* by name */
	REF(const char) name;
	REF(const char) text;		/* its expression, with other signs expanded */
	REF(const char) source;		/* where the words were found */
	REF(const struct expr) expr;
	REF(const char) file;		/* and line: where it is written */
	uint32_t line;
	uint32_t questions;		/* a bit for each whose answer decides it */
	bool used;			/* used by a rule, a sentence or another sign */
	bool being_parsed;		/* while the knowledge base is being read */
};

/* A rule: one way to recognize a cause, with its own certainty; or evidence, which only moves what a rule has found. */
struct when {
	REF(const struct when) next;
	uint8_t sure;			/* of a rule: enum sureness */
	uint8_t grade;			/* of evidence: enum grade */
	REF(const char) id;		/* unique in its cause */
	REF(const char) text;		/* as people read it, with signs expanded */
	REF(const struct expr) expr;
	REF(const struct template) because;	/* may be NULL */
	struct order_place place;
};

/* A sentence that is printed when its guard (NULL = always) is true, and the command that goes with it. */
struct advice {
	REF(const struct advice) next;
	REF(const char) guard_text;	/* likewise */
	REF(const struct expr) guard;
	REF(const struct template) text;
	REF(const struct template) command;	/* may be NULL */
};

struct cause {
	REF(const struct cause) next;	/* by id */
	REF(const char) id;
	REF(const char) title;
	REF(const struct advice) headline;	/* the title, with numbers: the first with known facts; may be NULL */
	struct order_place place;
	REF(const struct over) explains;	/* causes that this one explains away when it fits */
	int32_t blames;			/* enum blamed_id; -1: the line that failed */
	REF(const char) check;		/* the doctor's check (kb/checks.def) that this cause fails; or NULL */
	REF(const struct when) when;	/* of equally certain ones, the first is reported */
	REF(const struct when) evidence;	/* for and against it */
	REF(const char) definition;
	REF(const struct advice) why, fix;
	REF(const char) confused;	/* "Not to be confused with", or NULL */
	REF(const char) settle;		/* "What would settle it": the observation that decides, or NULL */
	REF(const char) example;	/* a text that this cause must explain, or NULL; tested */
	REF(const char) program;	/* the file of a program that reproduces it, or NULL; run on a GPU */
	REF(const char) program_text;	/* its code, inserted by tools/make_kb.sh */
};

/* A row FINE, NONE or UNKNOWN of kb/checks.def, in its order. */
struct kb_check {
	REF(const struct expr) when;	/* NULL: always */
	REF(const struct template) text;
};

#define QUESTION_SHOWN 3
#define FACT_WORDS     ((FACT_COUNT + 31) / 32)

/* The question whose answer would tell causes apart: a row of kb/questions.def. */
struct kb_question {
	REF(const char) text;
	REF(const char) command;
	REF(const uint32_t) facts;	/* a bit for each that the answer decides */
	struct {
		REF(const char) name;	/* of a fact, or words, that the answer has; NULL: no more of them */
		int32_t fact;		/* -1: words */
	} shown[QUESTION_SHOWN];
};

struct kb {
	uint32_t size;			/* of all of it, in bytes */
	uint32_t n;			/* causes */
	REF(const struct cause) first;
	REF(const struct kb_sign) signs;
	REF(const struct kb_check) checks;
	uint32_t n_checks;
	uint32_t n_questions;
	REF(const struct kb_question) questions;
	REF(const struct word_table) words;
	REF(const struct like_table) likeness;
};

/* What is linked in. */
const struct kb *kb_get(void);

const struct cause *kb_find(const struct kb *kb, const char *id);

#endif
