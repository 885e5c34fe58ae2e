/* SPDX-License-Identifier: Apache-2.0
 * Messages of open packages, as kb/messages.def lists them: which one a text is, what the program filled in, and which causes it
 * stands for.
 */
#ifndef CUWHY_KNOWN_MESSAGE_H
#define CUWHY_KNOWN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "case/case.h"

#define KNOWN_HOLES_MAX	12

struct known_message {
	const char *template;	/* fixed words and holes */
	const char *package, *version, *file;	/* where it is from */
	const char *causes;	/* ids of kb/causes, separated by commas, the most likely one first */
	bool logged;		/* a line of a log with it, without any exception, is an error */
};

/* What a hole stands for in a text. */
struct known_hole {
	const char *name;	/* as in the template; a fact, or a word to print. Its length is */
	size_t name_len;	/* 0 when it has none */
	const char *at;		/* in the text */
	size_t len;
};

struct known_holes {
	struct known_hole list[KNOWN_HOLES_MAX];
	size_t n;
};

/* The message that the text begins with, or the one in a wrapper that it begins with: a message of an exception, or what a
 * line says after its prefix. Upper and lower case are the same, and so are line breaks and spaces.
 * Of several, the one with the most words. NULL: none. `holes` may be NULL. */
const struct known_message *known_message(const char *text, struct known_holes *holes);
/* Only messages that are errors without an exception. */
bool known_message_logged(const char *line);

/* Does the text begin with this template? `words`: how many of its characters are fixed. */
bool template_matches(const char *template, const char *text, struct known_holes *holes, size_t *words);
/* What is wrong with a template; NULL = nothing. */
const char *template_flaw(const char *template);

/* Every row, for tests and for the reader of logs, which looks for words[i] = the longest fixed words of row i. */
const struct known_message *known_messages(size_t *n);
/* The longest part without a hole, in `words` (at most `size` - 1 bytes). Its length. */
size_t template_words(const char *template, char *words, size_t size);

/* Facts: message.*, and those that holes name and that are still unknown. */
void facts_from_known_message(struct casefile *c, const char *text);

#endif
