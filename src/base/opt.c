/* SPDX-License-Identifier: Apache-2.0
 * Options from tables, on getopt_long.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"

#define OPTS_MAX	24
#define LONG_BASE	256	/* values of getopt_long: LONG_BASE + row */

static int count_options(const struct opt *opts)
{
	int n = 0;

	while (opts[n].name)
		n++;
	return n;
}

static int no_such_option(const struct opt_usage *u, const struct opt *opts, const char *word, struct err *e)
{
	const char *names[OPTS_MAX + 1] = {NULL}, *near;
	int i, n = count_options(opts);
	char plain[64];

	err_set(e, -EINVAL, "unknown option '%s'", word);
	for (i = 0; i < n && i < OPTS_MAX; i++)
		names[i] = opts[i].name;
	str_copy(plain, sizeof(plain), word + strspn(word, "-"));
	plain[strcspn(plain, "=")] = '\0';
	near = strlen(plain) > 1 ? str_nearest(plain, names) : NULL;
	if (near)
		return err_hint(e, "did you mean '--%s'? 'cuwhy %s -h' lists the options", near,
				u->command);
	return err_hint(e, "'cuwhy %s -h' lists the options", u->command);
}

/* What follows the first operand is another program's, or a text that may begin with dashes; not so after a recording. */
static bool takes_recordings(const struct opt_usage *u)
{
	return strstr(u->synopsis, "RECORDING") && !strstr(u->synopsis, "PROGRAM");
}

/* Rows to getopt_long's format. '+': the first operand ends the options. ':': distinguish a missing
 * argument from an unknown option. */
static void make_getopt_tables(const struct opt_usage *u, const struct opt *opts, struct option *longs, char *shorts)
{
	int i, n = count_options(opts);

	if (!takes_recordings(u))
		*shorts++ = '+';
	*shorts++ = ':';
	for (i = 0; i < n && i < OPTS_MAX; i++) {
		longs[i] = (struct option){.name = opts[i].name,
					   .has_arg = opt_needs_value(&opts[i]) ? required_argument :
						      opts[i].arg ? optional_argument : no_argument,
					   .val = LONG_BASE + i};
		if (!opts[i].letter)
			continue;
		*shorts++ = opts[i].letter;
		if (opts[i].arg)
			*shorts++ = ':';
	}
	longs[i] = (struct option){0};
	*shorts = '\0';
}

static const struct opt *option_of(const struct opt *opts, int c)
{
	if (c >= LONG_BASE)
		return &opts[c - LONG_BASE];
	for (; opts->name; opts++)
		if (opts->letter == c)
			return opts;
	return NULL;
}

int opt_parse(const struct opt_usage *u, const struct opt *opts, int argc, char **argv,
	      struct err *e)
{
	struct option longs[OPTS_MAX + 1];
	char shorts[2 * OPTS_MAX + 3], letter[3] = "-?";
	const struct opt *o;
	const char *word;
	int c;

	make_getopt_tables(u, opts, longs, shorts);
	opterr = 0;
	optind = 0;	/* glibc: start over */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		o = option_of(opts, c);
		if (o) {
			if (o->flag)
				*o->flag = true;
			if (o->value && optarg)
				*o->value = *o->value && str_ends(o->arg, " ...") ? xasprintf("%s;%s", *o->value, optarg) : optarg;
			continue;
		}
		letter[1] = (char)optopt;
		word = optopt > 0 && optopt < LONG_BASE ? letter : argv[optind - 1];
		if (c == ':')
			return err_set(e, -EINVAL, "option '%s' needs an argument", word);
		if (optopt >= LONG_BASE)
			return err_set(e, -EINVAL, "option '--%s' takes no argument",
				       opts[optopt - LONG_BASE].name);
		return no_such_option(u, opts, word, e);
	}
	return optind;
}

void opt_help(FILE *out, const struct opt_usage *u, const struct opt *opts)
{
	char left[64], letter[8];

	fprintf(out, "usage: cuwhy %s %s\n\n%s\n\noptions:\n", u->command, u->synopsis, u->summary);
	for (; opts->name; opts++) {
		letter[0] = '\0';
		if (opts->letter)
			snprintf(letter, sizeof(letter), "-%c, ", opts->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, opts->name, opt_needs_value(opts) ? " " : "",
			 opts->arg ? opts->arg : "");
		fprintf(out, "  %-24s %s\n", left, opts->help);
	}
	if (u->notes)
		fprintf(out, "\n%s", u->notes);
	if (u->exits)
		fprintf(out, "\n%s", u->exits);
	if (u->examples)
		fprintf(out, "\nexamples:\n%s", u->examples);
}
