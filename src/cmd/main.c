/* SPDX-License-Identifier: Apache-2.0
 * The command table.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "base/banned.h"

struct cmd {
	const char *name, *args, *summary;
	int (*run)(int argc, char **argv);
};

static const struct cmd cmds[] = {
	{"run", "[options] PROGRAM ...", "run a program; if CUDA fails in it, say why", cmd_run},
	{"doctor", "[options] [BUNDLE]", "can this machine run CUDA and PyTorch, and if not, why", cmd_doctor},
	{"explain", "[FILE | TEXT | CODE]", "what a log, a recording, a dump or a code means", cmd_explain},
	{"memory", "[RECORDING | SNAPSHOT]", "who holds the memory, in a file or on this machine", cmd_memory},
	{"report", "[options] [RECORDING]", "make one HTML page of a recording, a dump or a snapshot", cmd_report},
	{"export", "[options] [RECORDING]", "make a PyTorch memory snapshot of a recording", cmd_export},
};

#define N_CMDS (sizeof(cmds) / sizeof(cmds[0]))

static void usage(FILE *out)
{
	size_t i;

	fputs("usage: cuwhy COMMAND [options] [arguments]\n\n"
	      "Says why CUDA failed in a program, at which line, and what to do.\n\ncommands:\n",
	      out);
	for (i = 0; i < N_CMDS; i++)
		fprintf(out, "  %-8s %-22s %s\n", cmds[i].name, cmds[i].args, cmds[i].summary);
	fputs("\n'cuwhy COMMAND -h' tells more. 'cuwhy --version' prints the version.\n", out);
}

static int unknown(const char *word)
{
	const char *names[N_CMDS + 2] = {NULL}, *near;
	struct err e = {0};
	size_t i;

	for (i = 0; i < N_CMDS; i++)
		names[i] = cmds[i].name;
	names[N_CMDS] = "help";
	err_set(&e, -1, "unknown %s '%s'", word[0] == '-' ? "option" : "command", word);
	near = str_nearest(word, names);
	if (near)
		err_hint(&e, "did you mean 'cuwhy %s'?", near);
	else
		err_hint(&e, "'cuwhy --help' lists the commands");
	return cmd_fail(stderr, false, &e, EXIT_TROUBLE);
}

static const struct cmd *find(const char *name)
{
	size_t i;

	for (i = 0; i < N_CMDS; i++)
		if (strcmp(cmds[i].name, name) == 0)
			return &cmds[i];
	return NULL;
}

static int help(const char *name)
{
	char flag[] = "--help", *args[] = {NULL, flag, NULL};
	const struct cmd *c = name ? find(name) : NULL;

	if (name && !c)
		return unknown(name);
	if (c) {
		args[0] = (char *)c->name;
		return c->run(2, args);
	}
	usage(stdout);
	return cmd_finish(EXIT_NOTHING);
}

/* With stdin, stdout or stderr closed, the next file we open would take its place, and messages
 * would go into it. Closed again on exec: the program finds what cuwhy found. */
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
	if (!word) {
		usage(stderr);
		return EXIT_TROUBLE;
	}
	if (strcmp(word, "--version") == 0)
		return cmd_version(argc - 1, argv + 1);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return help(NULL);
	if (strcmp(word, "help") == 0)
		return help(argv[2]);
	c = find(word);
	return c ? c->run(argc - 1, argv + 1) : unknown(word);
}
