/* SPDX-License-Identifier: Apache-2.0
 * Finds the command and starts it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/children.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"

static void print_usage(FILE *out)
{
	int width = 0;
	size_t i;

	for (i = 0; i < commands_n; i++)
		if ((int)strlen(commands[i].args) > width)
			width = (int)strlen(commands[i].args);
	fputs("usage: cuwhy COMMAND [options] [arguments]\n\n"
	      "Says why CUDA failed in a program, at which line, and what to do.\n\ncommands:\n",
	      out);
	for (i = 0; i < commands_n; i++)
		fprintf(out, "  %-8s %-*s  %s\n", commands[i].name, width, commands[i].args, commands[i].summary);
	fputs("\n'cuwhy COMMAND -h' says more. 'cuwhy --version' prints the version.\n", out);
}

static int unknown_command(const char *word)
{
	const char **names = xcalloc(commands_n + 2, sizeof(*names)), *near;
	struct err e = {0};
	size_t i;

	for (i = 0; i < commands_n; i++)
		names[i] = commands[i].name;
	names[commands_n] = "help";
	err_set(&e, -1, "unknown %s '%s'", word[0] == '-' ? "option" : "command", word);
	near = str_nearest(word, names);
	if (near)
		err_hint(&e, "did you mean 'cuwhy %s'?", near);
	else
		err_hint(&e, "'cuwhy --help' lists the commands");
	free(names);
	return cmd_fail(stderr, false, &e, EXIT_TROUBLE);
}

static const struct cmd *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < commands_n; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int print_help(const char *name)
{
	char flag[] = "--help", *args[] = {NULL, flag, NULL};
	const struct cmd *c = name ? find_command(name) : NULL;

	if (name && !c)
		return unknown_command(name);
	if (c) {
		args[0] = (char *)c->name;
		return c->run(2, args);
	}
	print_usage(stdout);
	return cmd_finish(EXIT_NOTHING);
}

/* If stdin, stdout or stderr is closed, the next file we open would take its descriptor, and messages
 * would go into it. Closed again on exec: the program sees what cuwhy was given. */
static void fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	const struct cmd *c;

	fill_standard_files();
	children_begin();
	term_guard();
	if (!word) {
		print_usage(stderr);
		return EXIT_TROUBLE;
	}
	if (strcmp(word, "--version") == 0)
		return cmd_version(argc - 1, argv + 1);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return print_help(NULL);
	if (strcmp(word, "help") == 0)
		return print_help(argv[2]);
	if (strcmp(word, "_document") == 0)
		return cmd_document(argc - 1, argv + 1);
	c = find_command(word);
	return c ? c->run(argc - 1, argv + 1) : unknown_command(word);
}
