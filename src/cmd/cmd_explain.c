/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain`: judges a recording again, or tells what is known of a cause.
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
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/json_text.h"
#include "cmd/memory.h"
#include "cmd/opened.h"
#include "cmd/recording.h"
#include "dump/culprit.h"
#include "report/verdict.h"
#include "base/banned.h"

static struct {
	bool json, list, help;
	const char *colour;
} given;

static const struct opt_usage usage = {
	"explain", "[options] [RECORDING | DUMP | SNAPSHOT | CAUSE]",
	"Judges a recording again (a folder, or one .cwr file; without one, the newest), reads a GPU\n"
	"core dump or a memory snapshot of PyTorch, or tells what is known of a cause.",
	"The exit status is 0 when nothing is wrong, 1 when something was found, 2 on failure.\n",
};

static const struct opt options[] = {
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"list", 'l', NULL, "list the causes", &given.list, NULL},
	{"color", 0, "WHEN", "auto, always or never", NULL, &given.colour},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

/* --- recordings ------------------------------------------------------------------------------- */

/* NULL, with `e` filled, when its part cannot be read. */
static struct verdict *judge(struct recorded_process *p, struct err *e)
{
	struct opened o;
	struct verdict *v;

	if (opened_read(&o, p, e))
		return NULL;
	v = verdict_of_process(o.trace, &p->end);
	opened_release(&o, p);
	return v;
}

/* What could not be read is left out and told, unless it was all: then it is the failure in `e`. */
static struct verdict *judge_all(struct recording *r, struct err *e)
{
	struct verdict **list = xcalloc(r->n + 1, sizeof(*list)), *all = NULL;
	struct err *left = xcalloc(r->n, sizeof(*left));
	size_t i, n = 0;

	for (i = 0; i < r->n; i++) {
		list[n] = judge(&r->process[i], &left[i]);
		if (left[i].code)
			*e = left[i];
		n += list[n] != NULL;
	}
	for (i = 0; n > 0 && i < r->n; i++)
		if (left[i].code)
			fprintf(stderr, "cuwhy: left out: %s\n", left[i].msg);
	if (n > 0 || r->n == 0)
		all = verdict_join(list, n);
	free(left);
	free(list);
	return all;
}

static void print(const struct verdict *v, const char *path, const struct text_style *style)
{
	if (given.json) {
		report_json(stdout, v, false);
		putchar('\n');
	} else if (strcmp(verdict_cause(v), "none") != 0) {
		report_text(stdout, v, style);
	} else if (verdict_notes(v) > 0) {
		report_line(stdout, v, path);
	} else {
		printf("cuwhy: no CUDA failure in '%s'\n", path);
	}
}

static int explain_recording(const char *path, struct text_style *style)
{
	struct err e = {0};
	struct recording r;
	struct verdict *v = NULL;
	int status;

	style->recording = path;
	if (recording_read(&r, path, &e) == 0)
		v = judge_all(&r, &e);
	if (!v) {
		recording_release(&r);
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	}
	print(v, path, style);
	status = strcmp(verdict_cause(v), "none") != 0 ? EXIT_FOUND : EXIT_NOTHING;
	verdict_free(v);
	recording_release(&r);
	return cmd_finish(status);
}

/* --- core dumps ------------------------------------------------------------------------------- */

static int explain_dump(const char *path, struct text_style *style)
{
	struct err e = {0};
	struct dump *d = dump_open(path, &e);
	struct culprit *c;
	struct verdict *v;
	int status;

	if (!d)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	c = culprit_find(d);
	v = verdict_of_dump(c);
	print(v, path, style);
	status = strcmp(verdict_cause(v), "none") != 0 ? EXIT_FOUND : EXIT_NOTHING;
	verdict_free(v);
	culprit_free(c);
	dump_free(d);
	return cmd_finish(status);
}

static int explain_newest(struct text_style *style)
{
	struct err e = {0};
	char *path = recording_newest(&e);
	int status = path ? explain_recording(path, style) : cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);

	free(path);
	return status;
}

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

	if (!given.json) {
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
	err_set(&e, -ENOENT, "'%s' is neither a recording nor a cause", word);
	if (near)
		err_hint(&e, "did you mean '%s'? 'cuwhy explain --list' lists the causes", near);
	else
		err_hint(&e, "'cuwhy explain --list' lists the causes");
	free(ids);
	free(text);
	return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
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
	if (known && given.json) {
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

int cmd_explain(int argc, char **argv)
{
	enum colour colour = COLOUR_AUTO;
	struct text_style style = {0};
	struct err e = {0};
	int first;

	first = opt_parse(&usage, options, argc, argv, &e);
	if (first >= 0 && given.colour && !term_parse_colour(given.colour, &colour))
		first = err_set(&e, -EINVAL, "--color takes auto, always or never, not '%s'",
				given.colour);
	if (first >= 0 && argc - first > 1)
		first = err_set(&e, -EINVAL, "explain takes one recording or cause, not %d",
				argc - first);
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	if (given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	style.colour = !given.json && term_colour(STDOUT_FILENO, colour);
	style.width = term_width(STDOUT_FILENO);
	if (given.list)
		return list_causes();
	if (first == argc)
		return explain_newest(&style);
	if (memory_is_snapshot(argv[first]))
		return explain_snapshot(argv[first], given.json, &style);
	if (file_is_dump(argv[first]))
		return explain_dump(argv[first], &style);
	if (fs_exists(argv[first]))
		return explain_recording(argv[first], &style);
	if (strchr(argv[first], '/')) {
		err_set(&e, -ENOENT, "cannot open '%s': %s", argv[first], strerror(ENOENT));
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	}
	return explain_cause(argv[first], &style);
}
