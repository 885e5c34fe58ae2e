/* SPDX-License-Identifier: Apache-2.0
 * Completions for bash, zsh and fish.
 */
#include <string.h>

#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/document.h"
#include "base/banned.h"

#define MADE "SPDX-License-Identifier: Apache-2.0\n# Completion of cuwhy, made by its build of the option tables: do not edit.\n"

static bool wants_folder(const struct opt *o)
{
	return o->arg && !strcmp(o->arg, "DIR");
}

static bool wants_file(const struct opt *o)
{
	return o->arg && (!strcmp(o->arg, "FILE") || !strcmp(o->arg, "PATH"));
}

static void put_causes(FILE *out, char **causes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%s", i ? " " : "", causes[i]);
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
		else if (wants_folder(o))
			fputs(") _cuwhy_files -d;;\n", out);
		else if (wants_file(o))
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

/* Where the program of `cuwhy run` stands; from there on its own completion is asked. */
static void bash_program(FILE *out)
{
	fputs("_cuwhy_program() {\n\tlocal i=2\n\twhile ((i < COMP_CWORD)); do\n\t\tcase ${COMP_WORDS[i]} in\n\t\t", out);
	bash_takers(out, run_table.options);
	fputs(") ((i += 2));;\n\t\t--) ((i++)); break;;\n\t\t-*) ((i++));;\n\t\t*) break;;\n\t\tesac\n\tdone\n"
	      "\t((i < COMP_CWORD)) || return 1\n"
	      "\tif declare -F _command_offset >/dev/null; then _command_offset $i; else _cuwhy_files -f; fi\n}\n\n", out);
}

void complete_bash(FILE *out, char **causes, size_t n)
{
	fputs("# " MADE "_cuwhy_causes='", out);
	put_causes(out, causes, n);
	fputs("'\n\n_cuwhy_files() {\n\tlocal IFS=$'\\n'\n\tcompopt -o filenames 2>/dev/null\n\tCOMPREPLY=($(compgen \"$1\" -- \"$cur\"))\n}\n\n", out);
	bash_program(out);
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
			fputs(wants_folder(o) ? "_files -/" : wants_file(o) ? "_files" : "", out);
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

void complete_zsh(FILE *out, char **causes, size_t n)
{
	fputs("#compdef cuwhy\n# " MADE "_cuwhy_inputs() {\n\tlocal -a causes=(", out);
	put_causes(out, causes, n);
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
		fputs(wants_folder(o) ? " -x -a '(__fish_complete_directories)'" : wants_file(o) ? " -r -F" : " -x", out);
	}
	fputs(" -d ", out);
	fish_text(out, o->help);
	putc('\n', out);
}

void complete_fish(FILE *out, char **causes, size_t n)
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
		put_causes(out, causes, n);
		fputs("'\n", out);
	}
}
