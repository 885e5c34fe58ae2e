/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain`: what a text, a recording, a core dump or a snapshot means, or what is known of a code or a cause.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "base/json_text.h"
#include "input/recording/recording.h"
#include "judge/verdict.h"
#include "base/banned.h"

static struct {
	struct explain_options o;
	bool list, help;
	const char *colour;
} given;

static const struct opt_usage usage = {
	"explain", "[options] [FILE ... | - | TEXT | CODE | CAUSE]",
	"Says what a log, a traceback, a recording, a GPU core dump or a memory snapshot of PyTorch means. Several\n"
	"files are judged together (train.log nvidia-smi.txt); - reads standard input and passes it on. A code is a\n"
	"number, a name or an Xid (700, CUBLAS_STATUS_ALLOC_FAILED, \"Xid 79\"). Without arguments: the newest recording.",
	.exits = "The exit status is 0 when nothing is wrong, 1 when something was found, 2 on failure.\n",
	.examples =
	"  cuwhy explain train.log                the first error of a log, and its cause\n"
	"  python train.py 2>&1 | cuwhy explain -  passes the log on, and says at its end what went wrong\n"
	"  cuwhy explain 700                      what a code means\n"
	"  cuwhy explain oom-fragmentation        what a cause is, and what to do\n",
};

static const struct opt options[] = {
	{"json", 0, NULL, "print one JSON object", &given.o.json, NULL},
	{"quiet", 'q', NULL, "with -: do not pass standard input on, print the answer only", &given.o.quiet, NULL},
	{"list", 'l', NULL, "list the causes", &given.list, NULL},
	{"color", 0, "WHEN", "auto, always or never", NULL, &given.colour},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
	{"color", COLOUR_WORDS},
	{0},
};

const struct opt_table explain_table = {&usage, options, words, OPERAND_CAUSE};

/* --- causes ----------------------------------------------------------------------------------- */

static char *cause_list(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		report_cause_list(f);
		fclose(f);
	}
	return text;
}

/* Cuts the next line off a text: its first word, and what follows it. */
static bool next_cause(char **text, char **id, char **title)
{
	char *line = *text, *end;

	if (!line || !*line)
		return false;
	end = line + strcspn(line, "\n");
	*text = *end ? end + 1 : end;
	*end = '\0';
	*id = line + strspn(line, " ");
	line = *id + strcspn(*id, " ");
	*title = line + strspn(line, " ");
	*line = '\0';
	return true;
}

static int list_causes(void)
{
	char *text, *at, *id, *title;
	json_t *o, *list;

	if (!given.o.json) {
		report_cause_list(stdout);
		return cmd_finish(EXIT_NOTHING);
	}
	list = json_array();
	text = at = cause_list();
	while (next_cause(&at, &id, &title))
		if (*id)
			json_array_append_new(list, json_pack("{s:o, s:o}", "id", json_text(id),
							      "title", json_text(title)));
	free(text);
	o = json_pack("{s:i, s:o}", "schema", 1, "causes", list);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
	return cmd_finish(EXIT_NOTHING);
}

static int no_such(const char *word)
{
	char *text = cause_list(), *at = text, *id, *title;
	const char **ids = NULL, *near;
	size_t n = 0, cap = 0;
	struct err e = {0};

	while (next_cause(&at, &id, &title)) {
		ids = xgrow(ids, n, &cap, sizeof(*ids));
		ids[n++] = id;
	}
	ids = xgrow(ids, n, &cap, sizeof(*ids));
	ids[n] = NULL;
	near = str_nearest(word, ids);
	err_set(&e, -ENOENT, "'%s' is neither a file, a code nor a cause", word);
	if (near)
		err_hint(&e, "did you mean '%s'? 'cuwhy explain --list' lists the causes", near);
	else
		err_hint(&e, "'cuwhy explain --list' lists the causes");
	free(ids);
	free(text);
	return cmd_fail(stdout, given.o.json, &e, EXIT_TROUBLE);
}

static int explain_cause(const char *id, const struct text_style *style)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	bool known = f && report_cause(f, id, style);
	json_t *o;

	if (f)
		fclose(f);
	if (known && given.o.json) {
		o = json_pack("{s:i, s:s, s:o}", "schema", 1, "id", id, "text", json_text(text));
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
	} else if (known) {
		fputs(text, stdout);
	}
	free(text);
	return known ? cmd_finish(EXIT_NOTHING) : no_such(id);
}

static void move_to(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
	argv[to] = word;
}

/* Options may follow what they are about: `cuwhy explain train.log --json`. */
static void options_first(int argc, char **argv)
{
	int front = 1;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (argv[i][0] != '-' || !argv[i][1])
			continue;
		move_to(argv, i, front++);
		if (!strcmp(argv[front - 1], "--color") && i + 1 < argc)
			move_to(argv, ++i, front++);
	}
}

int cmd_explain(int argc, char **argv)
{
	enum colour colour = COLOUR_AUTO;
	struct text_style style = {0};
	struct err e = {0};
	char *newest;
	int first, status;

	options_first(argc, argv);
	first = opt_parse(&usage, options, argc, argv, &e);
	if (first >= 0 && given.colour && !term_parse_colour(given.colour, &colour))
		first = err_set(&e, -EINVAL, "--color takes auto, always or never, not '%s'",
				given.colour);
	if (first < 0)
		return cmd_fail(stdout, given.o.json, &e, EXIT_TROUBLE);
	if (given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	given.o.colour = colour;
	if (given.o.json)
		progress_disable();
	style.colour = !given.o.json && term_colour(STDOUT_FILENO, colour);
	style.width = term_width(STDOUT_FILENO);
	if (given.list)
		return list_causes();
	if (first == argc) {
		newest = recording_newest(&e);
		status = newest ? explain_inputs(&newest, 1, &given.o, &style) : cmd_fail(stdout, given.o.json, &e, EXIT_TROUBLE);
		free(newest);
		return status;
	}
	if (!fs_exists(argv[first]) && explain_is_code(argv + first, argc - first))
		return explain_code(argv + first, argc - first, &given.o, &style);
	if (argc - first == 1 && !explain_is_input(argv[first]))
		return explain_cause(argv[first], &style);
	return explain_inputs(argv + first, argc - first, &given.o, &style);
}
