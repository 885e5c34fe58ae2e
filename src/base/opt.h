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
	const char *arg;	/* what its value is called in -h; NULL = a flag */
	const char *help;
	bool *flag;		/* set to true when given */
	const char **value;	/* set to its argument */
};

struct opt_usage {
	const char *command;	/* "run" */
	const char *synopsis;	/* "[options] PROGRAM [argument ...]" */
	const char *summary;	/* one sentence */
	const char *notes;	/* printed after the options: exit status and the like */
};

/* Parses up to the first operand (or "--"). Returns its index in argv; -EINVAL with `e` filled. */
int opt_parse(const struct opt_usage *u, const struct opt *opts, int argc, char **argv,
	      struct err *e);

void opt_help(FILE *out, const struct opt_usage *u, const struct opt *opts);

#endif
