/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy _document`: prints a man page (man [COMMAND]) or a completion (bash, zsh, fish), made of the tables that -h prints. The build
 * calls it.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "rules/kb.h"
#include "base/banned.h"

/* --- man pages, in the macros of man(7) --------------------------------------------------------- */

static const struct variable { const char *name, *commands, *text; } variables[] = {
#define VARIABLE(name, commands, text) {name, commands, text},
#include "cmd/variables.def"
#undef VARIABLE
};

/* A character that means something to roff is written as itself. */
static void man_char(FILE *out, char c)
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
static void man_text(FILE *out, const char *s, size_t n)
{
	if (n && *s == '.')
		fputs("\\&", out);
	for (size_t i = 0; i < n; i++)
		man_char(out, s[i]);
}

static void man_line(FILE *out, const char *s)
{
	man_text(out, s, strlen(s));
	putc('\n', out);
}

/* Paragraphs are parted by empty lines; lines that begin with a blank stay as they are. */
static void man_paragraphs(FILE *out, const char *s)
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

			man_text(out, s + skip, n - skip);
			putc('\n', out);
		} else if (s[1]) {
			fputs(filled ? ".PP\n" : "", out);
		}
		s += n + (s[n] != '\0');
	}
	if (!filled)
		fputs(".fi\n.RE\n", out);
}

static void man_option(FILE *out, const struct opt *o)
{
	fputs(".TP\n", out);
	if (o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", out);
	man_text(out, o->name, strlen(o->name));
	fputs("\\fR", out);
	if (o->arg) {
		fputs(" \\fI", out);
		man_text(out, o->arg, strlen(o->arg));
		fputs("\\fR", out);
	}
	putc('\n', out);
	man_line(out, o->help);
}

/* "  command   what it does": told apart by two blanks or more. */
static void man_example(FILE *out, const char *s, size_t n)
{
	size_t from = strspn(s, " "), to = from;

	while (to + 1 < n && !(s[to] == ' ' && s[to + 1] == ' '))
		to++;
	if (to + 1 >= n)
		to = n;
	fputs(".TP\n\\fB", out);
	man_text(out, s + from, to - from);
	fputs("\\fR\n", out);
	to += strspn(s + to, " ");
	if (to < n)
		man_text(out, s + to, n - to);
	putc('\n', out);
}

static void man_examples(FILE *out, const char *s)
{
	for (; *s; s += s[0] == '\n') {
		size_t n = strcspn(s, "\n");

		if (n)
			man_example(out, s, n);
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

static void man_environment(FILE *out, const char *command)
{
	fputs(".SH ENVIRONMENT\n", out);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const struct variable *v = &variables[i];

		if (command && *v->commands && !has_word(v->commands, command))
			continue;
		fprintf(out, ".TP\n.B %s\n", v->name);
		man_line(out, v->text);
	}
}

static void man_title(FILE *out, const char *command, const char *summary)
{
	fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made by the build of the option tables: do not edit.\n.TH CUWHY", out);
	if (command)
		putc('-', out);
	for (const char *c = command; c && *c; c++)
		putc(toupper((unsigned char)*c), out);
	fprintf(out, " 1 \"\" \"cuwhy %s\" \"cuwhy manual\"\n.SH NAME\ncuwhy%s%s \\- ", CUWHY_VERSION, command ? "\\-" : "",
		command ? command : "");
	man_line(out, summary);
}

static void man_see_also(FILE *out, const char *command)
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

static void man_of_command(FILE *out, const struct cmd *c)
{
	const struct opt_usage *u = c->table->usage;

	man_title(out, c->name, c->summary);
	fprintf(out, ".SH SYNOPSIS\n.B cuwhy %s\n", c->name);
	man_line(out, u->synopsis);
	fputs(".SH DESCRIPTION\n", out);
	man_paragraphs(out, u->summary);

	if (u->notes) {
		fputs(".PP\n", out);
		man_paragraphs(out, u->notes);
	}
	fputs(".SH OPTIONS\n", out);
	for (const struct opt *o = c->table->options; o->name; o++)
		man_option(out, o);
	fputs(".SH EXIT STATUS\n", out);
	man_paragraphs(out, u->exits ? u->exits : "");
	man_environment(out, c->name);
	if (u->examples) {
		fputs(".SH EXAMPLES\n", out);
		man_examples(out, u->examples);
	}
	man_see_also(out, c->name);
}

static void man_of_all(FILE *out)
{
	man_title(out, NULL, "says why CUDA failed in a program, at which line, and what to do");
	fputs(".SH SYNOPSIS\n.B cuwhy\n.I COMMAND\n[options] [arguments]\n.SH DESCRIPTION\n", out);
	man_paragraphs(out, "cuwhy names the root cause of a CUDA failure in a PyTorch program, the line of the user's own code,\n"
		       "the evidence and the fix. It works on stock PyTorch, without a change to the program, without root.\n"
		       "\n"
		       "Each verdict says how sure it is. certain: direct evidence that nothing contradicts. likely: evidence that\n"
		       "excludes the other causes seen. possible: candidates, in order.\n");
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < commands_n; i++) {
		fprintf(out, ".TP\n.BR cuwhy\\-%s (1)\n", commands[i].name);
		man_line(out, commands[i].summary);
	}
	fputs(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nlist the commands; behind a command, its options\n"
	      ".TP\n\\fB\\-\\-version\\fR\nprint the version\n.SH EXIT STATUS\n", out);
	man_paragraphs(out, "cuwhy run returns the program's own exit status: 128+N when signal N ended it; 127, 126 or 125 when\n"
		       "it could not be started. The other commands return:\n");
	fputs(".TP\n.B 0\nnothing wrong was found\n.TP\n.B 1\nsomething was found\n.TP\n.B 2\n"
	      "wrong usage, or cuwhy itself failed. With \\-\\-json it tells so in an object with the key \"failure\".\n", out);
	man_environment(out, NULL);
	man_see_also(out, NULL);
}

/* --- completions ------------------------------------------------------------------------------- */

#define MADE "SPDX-License-Identifier: Apache-2.0\n# Completion of cuwhy, made by its build of the option tables: do not edit.\n"

static bool takes_folder(const struct opt *o)
{
	return o->arg && !strcmp(o->arg, "DIR");
}

static bool takes_file(const struct opt *o)
{
	return o->arg && (!strcmp(o->arg, "FILE") || !strcmp(o->arg, "PATH"));
}

/* The words that an option takes; NULL = any. */
static const char *option_words(const struct opt_table *t, const struct opt *o)
{
	for (const struct opt_words *w = t->words; w && w->name; w++)
		if (!strcmp(w->name, o->name))
			return w->words;
	return NULL;
}

/* The ids of all causes, with a blank between them. */
static void put_causes(FILE *out)
{
	for (const struct cause *c = kb_get()->first; c; c = c->next)
		fprintf(out, "%s%s", c == kb_get()->first ? "" : " ", c->id);
}

static void put_commands(FILE *out)
{
	for (size_t i = 0; i < commands_n; i++)
		fprintf(out, "%s ", commands[i].name);
}

/* --- bash ------------------------------------------------------------------------------------- */

/* Names of the options that have an argument: the word behind one of them is its value. */
static void bash_takers(FILE *out, const struct opt *o)
{
	const char *before = "";

	for (; o->name; o++) {
		if (!o->arg)
			continue;
		fprintf(out, "%s--%s", before, o->name);
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
		before = "|";
	}
}

static void bash_values(FILE *out, const struct opt_table *t)
{
	for (const struct opt *o = t->options; o->name; o++) {
		const char *words = option_words(t, o);

		if (!o->arg)
			continue;
		fprintf(out, "\t\t--%s", o->name);
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
		if (words)
			fprintf(out, ") COMPREPLY=($(compgen -W '%s' -- \"$cur\"));;\n", words);
		else if (takes_folder(o))
			fputs(") _cuwhy_files -d;;\n", out);
		else if (takes_file(o))
			fputs(") _cuwhy_files -f;;\n", out);
		else
			fputs(") COMPREPLY=();;\n", out);
	}
}

static void bash_command(FILE *out, const struct cmd *c)
{
	const struct opt_table *t = c->table;

	fprintf(out, "_cuwhy_%s() {\n\tcase $prev in\n", c->name);
	bash_values(out, t);
	fputs("\t\t*) if [[ $cur == -* ]]; then\n\t\t\tCOMPREPLY=($(compgen -W '", out);
	for (const struct opt *o = t->options; o->name; o++)
		fprintf(out, "--%s ", o->name);
	fputs("' -- \"$cur\"))\n\t\telse\n", out);
	if (t->operand == OPERAND_CAUSE)
		fputs("\t\t\t_cuwhy_files -f\n\t\t\tCOMPREPLY+=($(compgen -W \"$_cuwhy_causes\" -- \"$cur\"))\n", out);
	else
		fputs(t->operand == OPERAND_PROGRAM ? "\t\t\t_cuwhy_files -c\n" : "\t\t\t_cuwhy_files -f\n", out);
	fputs("\t\tfi;;\n\tesac\n}\n\n", out);
}

/* Where the program of a command that runs one stands; from there on its own completion is asked. */
static void bash_program(FILE *out, const struct opt *options)
{
	fputs("_cuwhy_program() {\n\tlocal i=2\n\twhile ((i < COMP_CWORD)); do\n\t\tcase ${COMP_WORDS[i]} in\n\t\t", out);
	bash_takers(out, options);
	fputs(") ((i += 2));;\n\t\t--) ((i++)); break;;\n\t\t-*) ((i++));;\n\t\t*) break;;\n\t\tesac\n\tdone\n"
	      "\t((i < COMP_CWORD)) || return 1\n"
	      "\tif declare -F _command_offset >/dev/null; then _command_offset $i; else _cuwhy_files -f; fi\n}\n\n", out);
}

static void complete_bash(FILE *out)
{
	fputs("# " MADE "_cuwhy_causes='", out);
	put_causes(out);
	fputs("'\n\n_cuwhy_files() {\n\tlocal IFS=$'\\n'\n\tcompopt -o filenames 2>/dev/null\n\tCOMPREPLY=($(compgen \"$1\" -- \"$cur\"))\n}\n\n", out);
	for (size_t i = 0; i < commands_n; i++)
		if (commands[i].table->operand == OPERAND_PROGRAM)
			bash_program(out, commands[i].table->options);
	for (size_t i = 0; i < commands_n; i++)
		bash_command(out, &commands[i]);
	fputs("_cuwhy() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n\tCOMPREPLY=()\n"
	      "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '", out);
	put_commands(out);
	fputs("--help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n"
	      "\thelp) COMPREPLY=($(compgen -W '", out);
	put_commands(out);
	fputs("' -- \"$cur\"));;\n", out);
	for (size_t i = 0; i < commands_n; i++)
		fprintf(out, "\t%s) %s_cuwhy_%s;;\n", commands[i].name,
			commands[i].table->operand == OPERAND_PROGRAM ? "_cuwhy_program || " : "", commands[i].name);
	fputs("\tesac\n}\n\ncomplete -F _cuwhy cuwhy\n", out);
}

/* --- zsh -------------------------------------------------------------------------------------- */

/* Inside '...' and a description of _arguments: quotes, brackets and colons are special. */
static void zsh_text(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *s))
			fprintf(out, "\\%c", *s);
		else
			putc(*s, out);
	}
}

static void zsh_option(FILE *out, const struct opt_table *t, const struct opt *o)
{
	const char *words = option_words(t, o);

	fputs("\t\t", out);
	if (o->letter)
		fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
	else
		fprintf(out, "'--%s[", o->name);
	zsh_text(out, o->help);
	putc(']', out);
	if (o->arg) {
		putc(':', out);
		zsh_text(out, o->arg);
		putc(':', out);
		if (words) {
			putc('(', out);
			zsh_text(out, words);
			putc(')', out);
		} else {
			fputs(takes_folder(o) ? "_files -/" : takes_file(o) ? "_files" : "", out);
		}
	}
	fputs("' \\\n", out);
}

static void zsh_command(FILE *out, const struct cmd *c)
{
	fprintf(out, "_cuwhy_%s() {\n\t_arguments -S \\\n", c->name);
	for (const struct opt *o = c->table->options; o->name; o++)
		zsh_option(out, c->table, o);
	if (c->table->operand == OPERAND_PROGRAM)
		fputs("\t\t'(-)1:program:_command_names -e' \\\n\t\t'*::arguments:_normal'\n}\n\n", out);
	else if (c->table->operand == OPERAND_CAUSE)
		fputs("\t\t'*:file or cause:_cuwhy_inputs'\n}\n\n", out);
	else
		fputs("\t\t'*:file:_files'\n}\n\n", out);
}

static void complete_zsh(FILE *out)
{
	fputs("#compdef cuwhy\n# " MADE "_cuwhy_inputs() {\n\tlocal -a causes=(", out);
	put_causes(out);
	fputs(")\n\t_alternative 'files:file:_files' 'causes:cause:($causes)'\n}\n\n", out);
	for (size_t i = 0; i < commands_n; i++)
		zsh_command(out, &commands[i]);
	fputs("_cuwhy() {\n\tlocal -a commands=(\n", out);
	for (size_t i = 0; i < commands_n; i++) {
		fprintf(out, "\t\t'%s:", commands[i].name);
		zsh_text(out, commands[i].summary);
		fputs("'\n", out);
	}
	fputs("\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n"
	      "\t\t_arguments '--help[list the commands]' '--version[print the version]'\n\t\treturn\n\tfi\n"
	      "\tlocal name=$words[2]\n\tshift words\n\t((CURRENT--))\n"
	      "\t((${+functions[_cuwhy_$name]})) && _cuwhy_$name\n}\n\n"
	      "if [[ $funcstack[1] == _cuwhy ]]; then _cuwhy \"$@\"; else compdef _cuwhy cuwhy; fi\n", out);
}

/* --- fish ------------------------------------------------------------------------------------- */

static void fish_text(FILE *out, const char *s)
{
	putc('\'', out);
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			putc('\\', out);
		putc(*s, out);
	}
	putc('\'', out);
}

static void fish_option(FILE *out, const struct cmd *c, const struct opt *o)
{
	const char *words = option_words(c->table, o);

	fprintf(out, "complete -c cuwhy -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	if (words) {
		fputs(" -x -a ", out);
		fish_text(out, words);
	} else if (o->arg) {
		fputs(takes_folder(o) ? " -x -a '(__fish_complete_directories)'" : takes_file(o) ? " -r -F" : " -x", out);
	}
	fputs(" -d ", out);
	fish_text(out, o->help);
	putc('\n', out);
}

static void complete_fish(FILE *out)
{
	fputs("# " MADE "complete -c cuwhy -n __fish_use_subcommand -f -l help -s h -d 'list the commands'\n"
	      "complete -c cuwhy -n __fish_use_subcommand -f -l version -d 'print the version'\n", out);
	for (size_t i = 0; i < commands_n; i++) {
		fprintf(out, "complete -c cuwhy -n __fish_use_subcommand -f -a %s -d ", commands[i].name);
		fish_text(out, commands[i].summary);
		putc('\n', out);
		for (const struct opt *o = commands[i].table->options; o->name; o++)
			fish_option(out, &commands[i], o);
		if (commands[i].table->operand == OPERAND_PROGRAM)
			fprintf(out, "complete -c cuwhy -n '__fish_seen_subcommand_from %s' -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n",
				commands[i].name);
		if (commands[i].table->operand != OPERAND_CAUSE)
			continue;
		fprintf(out, "complete -c cuwhy -n '__fish_seen_subcommand_from %s' -a '", commands[i].name);
		put_causes(out);
		fputs("'\n", out);
	}
}

/* --- the command ------------------------------------------------------------------------------- */

static bool print_man(const char *name)
{
	for (size_t i = 0; name && i < commands_n; i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		man_of_command(stdout, &commands[i]);
		return true;
	}
	if (!name)
		man_of_all(stdout);
	return !name;
}

/* One line per command, for the build. */
static void list_commands(void)
{
	for (size_t i = 0; i < commands_n; i++)
		puts(commands[i].name);
}

int cmd_document(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct err e = {0};
	bool known = true;

	if (!strcmp(what, "man"))
		known = print_man(argc > 2 ? argv[2] : NULL);
	else if (!strcmp(what, "commands"))
		list_commands();
	else if (!strcmp(what, "bash"))
		complete_bash(stdout);
	else if (!strcmp(what, "zsh"))
		complete_zsh(stdout);
	else if (!strcmp(what, "fish"))
		complete_fish(stdout);
	else
		known = false;
	if (known)
		return cmd_finish(EXIT_NOTHING);
	err_set(&e, -EINVAL, "_document prints 'man [COMMAND]', 'commands', 'bash', 'zsh' or 'fish'");
	return cmd_fail(stdout, false, &e, EXIT_TROUBLE);
}
