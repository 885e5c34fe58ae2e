/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy _document`: prints a man page (man [COMMAND]) or a completion (bash, zsh, fish). The build calls it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/document.h"
#include "judge/verdict.h"
#include "write/report.h"
#include "base/banned.h"

const char *option_words(const struct opt_table *t, const struct opt *o)
{
	for (const struct opt_words *w = t->words; w && w->name; w++)
		if (!strcmp(w->name, o->name))
			return w->words;
	return NULL;
}

/* The first word of each line of the list. */
static size_t read_causes(char ***ids)
{
	char *text = NULL, *at, *line;
	size_t len = 0, n = 0, cap = 0;
	FILE *f = open_memstream(&text, &len);

	*ids = NULL;
	if (f) {
		report_cause_list(f);
		fclose(f);
	}
	for (line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		line += strspn(line, " ");
		line[strcspn(line, " ")] = '\0';
		*ids = xgrow(*ids, n, &cap, sizeof(**ids));
		(*ids)[n++] = xstrdup(line);
	}
	free(text);
	return n;
}

static int complete(void (*write)(FILE *, char **, size_t))
{
	char **causes;
	size_t n = read_causes(&causes);

	write(stdout, causes, n);
	while (n)
		free(causes[--n]);
	free(causes);
	return cmd_finish(EXIT_NOTHING);
}

static int man(const char *name)
{
	for (size_t i = 0; name && i < commands_n; i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		man_write(stdout, &commands[i]);
		return cmd_finish(EXIT_NOTHING);
	}
	if (name)
		return -1;
	man_write(stdout, NULL);
	return cmd_finish(EXIT_NOTHING);
}

/* One line per command, for the build. */
static int list(void)
{
	for (size_t i = 0; i < commands_n; i++)
		puts(commands[i].name);
	return cmd_finish(EXIT_NOTHING);
}

int cmd_document(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct err e = {0};
	int status = -1;

	if (!strcmp(what, "man"))
		status = man(argc > 2 ? argv[2] : NULL);
	else if (!strcmp(what, "commands"))
		status = list();
	else if (!strcmp(what, "bash"))
		status = complete(complete_bash);
	else if (!strcmp(what, "zsh"))
		status = complete(complete_zsh);
	else if (!strcmp(what, "fish"))
		status = complete(complete_fish);
	if (status >= 0)
		return status;
	err_set(&e, -EINVAL, "_document prints 'man [COMMAND]', 'commands', 'bash', 'zsh' or 'fish'");
	return cmd_fail(stdout, false, &e, EXIT_TROUBLE);
}
