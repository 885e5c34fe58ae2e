/* SPDX-License-Identifier: Apache-2.0
 * Reads the knowledge base when cuwhy is built, and makes what is linked in (knowledge/kb.h, knowledge/words.h). Not a part of cuwhy: a
 * mistake in a cause file stops the build.
 */
#ifndef CUWHY_COMPILE_H
#define CUWHY_COMPILE_H

#include "base/map.h"
#include "base/needles.h"
#include "base/ref.h"
#include "knowledge/kb.h"
#include "knowledge/likeness.h"
#include "knowledge/words.h"

/* Where the knowledge base is made: one piece of memory that never moves, so that what refers to something else in it (base/ref.h) stays
 * right when all of it is written to a file. */

struct arena {
	char *base;
	size_t used;
	struct map texts;	/* those in it, each once */
	uint32_t *text;		/* where they begin */
	size_t n_texts, room;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);

/* Zeroed, aligned for everything that is in it. Never NULL: the program exits when there is no room left. */
void *arena_alloc(struct arena *a, size_t size);
/* A text that may be shared. */
const char *arena_text(struct arena *a, const char *text);
const char *arena_copy(struct arena *a, const char *text, size_t len);

/* All that was made, in as much memory as it needs; the caller's (free). Nothing but arena_release may follow. */
void *arena_give(struct arena *a);

/* What it refers to, to be changed while it is made. */
#define OWN(ref) ref_at(&(ref), (ref).by)

/* An element of a list begins with its `next`. `head` is the reference to the first one. */
void list_append(void *head, void *element);
/* The same, in order; false: an equal one is there. */
typedef int list_compare(const void *a, const void *b);
bool list_insert(void *head, void *element, list_compare *compare);

struct err;

/* Where an expression appears decides what must have a name in it. */
enum expr_place {
	EXPR_FREE,	/* anything goes: in signs, in kb/checks.def */
	EXPR_SENTENCE,	/* of a cause file: phrases are signs, CUDA's codes have names */
	EXPR_RULE,	/* of a cause file, or the guard of a sentence: numbers to compare with have names, too */
};

struct expr_scope {
	enum expr_place place;
	/* NULL with the reason in `e`. */
	const struct kb_sign *(*sign)(void *arg, const char *name, size_t len, struct err *e);
	void *arg;
};

/* NULL with the reason in `e`. `len` bytes of text. Without a scope: anything except signs. */
const struct expr *expr_parse(const struct expr_scope *scope, struct arena *a, const char *text, size_t len,
			      struct err *e);
/* The number of kb/limits.def; false = there is none of that name. */
bool expr_threshold(const char *name, size_t len, double *value);
/* Calls `fn` for every says(), including those of its signs. */
typedef void expr_words_fn(void *arg, const struct expr *says);
void expr_says(const struct expr *x, expr_words_fn *fn, void *arg);
/* Can only words fulfill it: what an error or a text says, or what nothing but a text tells? */
bool expr_only_of_words(const struct expr *x);
/* It is so, and asks for a text besides (`text.is`). */
bool expr_asks_in_vain(const struct expr *x);

/* Likewise: a sentence with {expressions} (verdict/rules/template.h). */
const struct template *template_parse(const struct expr_scope *scope, struct arena *a, const char *text, size_t len,
				      struct err *e);

/* Resolves the names of `over:` and `explains:` lines. -EINVAL, with the reason, for an unknown name or a cycle. */
int order_resolve(struct arena *a, const struct kb *kb, struct err *e);

/* The rows of kb/checks.def. */
int checks_parse(struct arena *a, struct kb *kb, struct err *e);

/* The rows of kb/questions.def. */
void questions_put(struct arena *a, struct kb *kb);

/* Numbers the words of all signs, and makes the table of them and of all others that logs are searched for. */
void words_make(struct arena *a, struct kb *kb);

/* What was learned about a cause: "word weight word weight ...", the heaviest first; "one+two" are neighbors in a line that says what
 * failed. The first row is of cause "": how rare each word is, in the same unit. */
struct likeness_row {
	const char *cause, *words;
};

const struct like_table *likeness_make(struct arena *a, const struct likeness_row *rows, size_t n);
/* The rows of kb/words.def. */
void likeness_put(struct arena *a, struct kb *kb);

/* Needles without six characters in a row are found nowhere. */
bool needle_ok(const char *word);
const struct needle_table *needle_table_make(struct arena *a, const char *const *words, size_t n, size_t window);

/* Reads a blob: each file is preceded by a line "%%% <id>", or "%%% signs/<file>" for signs. What it makes is `kb->size` bytes long and
 * the caller's (free). NULL with the reason in `e`. */
struct kb *kb_parse(const char *blob, size_t len, struct err *e);

#endif
