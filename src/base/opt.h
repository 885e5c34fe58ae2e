/* SPDX-License-Identifier: Apache-2.0
 * Commands and their options as tables. One row per option: the parser and the -h text read it.
 */
#ifndef CUWHY_OPT_H
#define CUWHY_OPT_H

#include <stdbool.h>
#include <stdio.h>

struct err;

struct opt {
	const char *name;	/* without the dashes; NULL ends the table */
	char letter;		/* 0 = none */
	const char *arg;	/* name of its value in -h; NULL = a flag; "X ..." = may be repeated, the values are joined by ';'; "[=X]" = optional */
	const char *help;
	bool *flag;		/* set to true when given */
	const char **value;	/* set to its argument */
};

static inline bool opt_needs_value(const struct opt *o)
{
	return o->arg && o->arg[0] != '[';
}

struct opt_usage {
	const char *command;	/* "run" */
	const char *synopsis;	/* "[options] PROGRAM [argument ...]" */
	const char *summary;	/* one sentence */
	const char *notes;	/* printed after the options, as are the two below; each may be NULL */
	const char *exits;	/* exit statuses, in sentences */
	const char *examples;	/* lines "  command    what it does" */
};

/* Words that an option takes, for completion. */
struct opt_words {
	const char *name, *words;	/* "color", "auto always never"; a NULL name ends the list */
};

/* What comes after the options. */
enum opt_operand { OPERAND_FILE, OPERAND_PROGRAM, OPERAND_CAUSE /* or a file */ };

/* Everything that a command's -h, man page and completions are generated from. */
struct opt_table {
	const struct opt_usage *usage;
	const struct opt *options;
	const struct opt_words *words;	/* NULL = none */
	enum opt_operand operand;
};

/* Parses up to the first operand (or "--"); of a command that takes recordings and no program, options may also follow them, and
 * argv is sorted. Returns its index in argv; -EINVAL with `e` filled. */
int opt_parse(const struct opt_usage *u, const struct opt *opts, int argc, char **argv,
	      struct err *e);

void opt_help(FILE *out, const struct opt_usage *u, const struct opt *opts);

#endif
