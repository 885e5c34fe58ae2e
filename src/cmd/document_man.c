/* SPDX-License-Identifier: Apache-2.0
 * Man pages, in the macros of man(7).
 */
#include <ctype.h>
#include <string.h>

#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/document.h"
#include "base/banned.h"

static const struct variable { const char *name, *commands, *text; } variables[] = {
#define VARIABLE(name, commands, text) {name, commands, text},
#include "cmd/variables.def"
#undef VARIABLE
};

/* A character that means something to roff is written as itself. */
static void put_char(FILE *out, char c)
{
	if (c == '\\')
		fputs("\\e", out);
	else if (c == '-')
		fputs("\\-", out);
	else if (c == '\'')
		fputs("\\(aq", out);
	else if (c == '`')
		fputs("\\(ga", out);
	else if (c == '^')
		fputs("\\(ha", out);
	else if (c == '~')
		fputs("\\(ti", out);
	else
		putc(c, out);
}

/* Text on lines of its own; one that begins with a full stop would be a request. */
static void put_text(FILE *out, const char *s, size_t n)
{
	if (n && *s == '.')
		fputs("\\&", out);
	for (size_t i = 0; i < n; i++)
		put_char(out, s[i]);
}

static void put_line(FILE *out, const char *s)
{
	put_text(out, s, strlen(s));
	putc('\n', out);
}

/* Paragraphs are parted by empty lines; lines that begin with a blank stay as they are. */
static void put_paragraphs(FILE *out, const char *s)
{
	bool filled = true;

	while (*s) {
		size_t n = strcspn(s, "\n");
		bool fill = *s != ' ';

		if (n && fill != filled) {
			fputs(fill ? ".fi\n.RE\n" : ".RS 4\n.nf\n", out);
			filled = fill;
		}
		if (n) {
			size_t skip = fill ? 0 : strspn(s, " ");

			put_text(out, s + skip, n - skip);
			putc('\n', out);
		} else if (s[1]) {
			fputs(filled ? ".PP\n" : "", out);
		}
		s += n + (s[n] != '\0');
	}
	if (!filled)
		fputs(".fi\n.RE\n", out);
}

static void put_option(FILE *out, const struct opt *o)
{
	fputs(".TP\n", out);
	if (o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", out);
	put_text(out, o->name, strlen(o->name));
	fputs("\\fR", out);
	if (o->arg) {
		fputs(" \\fI", out);
		put_text(out, o->arg, strlen(o->arg));
		fputs("\\fR", out);
	}
	putc('\n', out);
	put_line(out, o->help);
}

/* "  command   what it does": told apart by two blanks or more. */
static void put_example(FILE *out, const char *s, size_t n)
{
	size_t from = strspn(s, " "), to = from;

	while (to + 1 < n && !(s[to] == ' ' && s[to + 1] == ' '))
		to++;
	if (to + 1 >= n)
		to = n;
	fputs(".TP\n\\fB", out);
	put_text(out, s + from, to - from);
	fputs("\\fR\n", out);
	to += strspn(s + to, " ");
	if (to < n)
		put_text(out, s + to, n - to);
	putc('\n', out);
}

static void put_examples(FILE *out, const char *s)
{
	for (; *s; s += s[0] == '\n') {
		size_t n = strcspn(s, "\n");

		if (n)
			put_example(out, s, n);
		s += n;
	}
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; *list; list += strspn(list, " ")) {
		size_t n = strcspn(list, " ");

		if (n == len && !memcmp(list, word, n))
			return true;
		list += n;
	}
	return false;
}

static void put_environment(FILE *out, const char *command)
{
	fputs(".SH ENVIRONMENT\n", out);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const struct variable *v = &variables[i];

		if (command && *v->commands && !has_word(v->commands, command))
			continue;
		fprintf(out, ".TP\n.B %s\n", v->name);
		put_line(out, v->text);
	}
}

static void put_title(FILE *out, const char *command, const char *summary)
{
	fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made by the build of the option tables: do not edit.\n.TH CUWHY", out);
	if (command)
		putc('-', out);
	for (const char *c = command; c && *c; c++)
		putc(toupper((unsigned char)*c), out);
	fprintf(out, " 1 \"\" \"cuwhy %s\" \"cuwhy manual\"\n.SH NAME\ncuwhy%s%s \\- ", CUWHY_VERSION, command ? "\\-" : "",
		command ? command : "");
	put_line(out, summary);
}

static void put_see_also(FILE *out, const char *command)
{
	const char *before = "";

	fputs(".SH SEE ALSO\n", out);
	if (command) {
		fputs(".BR cuwhy (1)", out);
		before = ",\n";
	}
	for (size_t i = 0; i < commands_n; i++) {
		if (command && !strcmp(commands[i].name, command))
			continue;
		fprintf(out, "%s.BR cuwhy\\-%s (1)", before, commands[i].name);
		before = ",\n";
	}
	putc('\n', out);
}

static void man_command(FILE *out, const struct cmd *c)
{
	const struct opt_usage *u = c->table->usage;

	put_title(out, c->name, c->summary);
	fprintf(out, ".SH SYNOPSIS\n.B cuwhy %s\n", c->name);
	put_line(out, u->synopsis);
	fputs(".SH DESCRIPTION\n", out);
	put_paragraphs(out, u->summary);

	if (u->notes) {
		fputs(".PP\n", out);
		put_paragraphs(out, u->notes);
	}
	fputs(".SH OPTIONS\n", out);
	for (const struct opt *o = c->table->options; o->name; o++)
		put_option(out, o);
	fputs(".SH EXIT STATUS\n", out);
	put_paragraphs(out, u->exits ? u->exits : "");
	put_environment(out, c->name);
	if (u->examples) {
		fputs(".SH EXAMPLES\n", out);
		put_examples(out, u->examples);
	}
	put_see_also(out, c->name);
}

static void man_main(FILE *out)
{
	put_title(out, NULL, "says why CUDA failed in a program, at which line, and what to do");
	fputs(".SH SYNOPSIS\n.B cuwhy\n.I COMMAND\n[options] [arguments]\n.SH DESCRIPTION\n", out);
	put_paragraphs(out, "cuwhy names the root cause of a CUDA failure in a PyTorch program, the line of the user's own code,\n"
		       "the evidence and the fix. It works on stock PyTorch, without a change to the program, without root.\n"
		       "\n"
		       "Each verdict says how sure it is. certain: direct evidence that nothing contradicts. likely: evidence that\n"
		       "excludes the other causes seen. possible: candidates, in order.\n");
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < commands_n; i++) {
		fprintf(out, ".TP\n.BR cuwhy\\-%s (1)\n", commands[i].name);
		put_line(out, commands[i].summary);
	}
	fputs(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nlist the commands; behind a command, its options\n"
	      ".TP\n\\fB\\-\\-version\\fR\nprint the version\n.SH EXIT STATUS\n", out);
	put_paragraphs(out, "cuwhy run returns the program's own exit status: 128+N when signal N ended it; 127, 126 or 125 when\n"
		       "it could not be started. The other commands return:\n");
	fputs(".TP\n.B 0\nnothing wrong was found\n.TP\n.B 1\nsomething was found\n.TP\n.B 2\n"
	      "wrong usage, or cuwhy itself failed. With \\-\\-json it tells so in an object with the key \"failure\".\n", out);
	put_environment(out, NULL);
	put_see_also(out, NULL);
}

void man_write(FILE *out, const struct cmd *c)
{
	if (c)
		man_command(out, c);
	else
		man_main(out);
}
