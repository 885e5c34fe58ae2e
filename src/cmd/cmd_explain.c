/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain`: what a text, a recording, a core dump, a snapshot or a bundle means, or what is known about a code or a cause.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/err.h"
#include "base/format.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "input/input.h"
#include "input/recording/recording.h"
#include "input/snapshot/input.h"
#include "input/snapshot/snapshot.h"
#include "input/text/input.h"
#include "input/text/log.h"
#include "judge/doctor.h"
#include "judge/source.h"
#include "judge/verdict.h"
#include "rules/kb.h"
#include "write/code.h"
#include "write/report.h"

static struct {
	bool json, quiet, list, help;
	const char *color;
	enum color colors;
} given;

static const struct opt_usage usage = {
	"explain", "[options] [FILE ... | - | TEXT | CODE | CAUSE]",
	"Says what a log, a traceback, a recording, a GPU core dump or a PyTorch memory snapshot means. Several files\n"
	"are analyzed together (train.log nvidia-smi.txt); - reads standard input and passes it through. A code is a\n"
	"number, a name or an Xid (700, CUBLAS_STATUS_ALLOC_FAILED, \"Xid 79\"). Without arguments: the newest recording.",
	.exits = "The exit status is 0 if nothing is wrong, 1 if a failure was found, 2 if cuwhy itself failed.\n",
	.examples = "  cuwhy explain train.log                the first error of a log, and its cause\n"
		    "  python train.py 2>&1 | cuwhy explain -  passes the log through, then says what went wrong\n"
		    "  cuwhy explain 700                      what a code means\n"
		    "  cuwhy explain oom-fragmentation        what a cause is, and what to do\n",
};

static const struct opt options[] = {
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"quiet", 'q', NULL, "with -: do not pass standard input through, print only the answer", &given.quiet, NULL},
	{"list", 'l', NULL, "list the causes", &given.list, NULL},
	{"color", 0, "WHEN", "auto, always or never", NULL, &given.color},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words option_words[] = {
	{"color", COLOR_WORDS},
	{0},
};

const struct opt_table explain_table = {&usage, options, option_words, OPERAND_CAUSE};

/* --- causes ----------------------------------------------------------------------------------- */

static int print_object(json_t *o)
{
	json_print(stdout, o);
	return cmd_finish(EXIT_NOTHING);
}

static int list_causes(void)
{
	json_t *list;

	if (!given.json) {
		report_cause_list(stdout);
		return cmd_finish(EXIT_NOTHING);
	}
	list = json_array();
	for (const struct cause *c = kb_get()->first; c; c = c->next)
		json_array_append_new(list,
				      json_pack("{s:o, s:o}", "id", json_text(c->id), "title", json_text(c->title)));
	return print_object(json_pack("{s:i, s:o}", "schema", 1, "causes", list));
}

static int no_such(const char *word)
{
	const char **ids = xcalloc(kb_get()->n + 1, sizeof(*ids)), *near;
	struct err e = {0};
	size_t n = 0;

	for (const struct cause *c = kb_get()->first; c; c = c->next)
		ids[n++] = c->id;
	near = str_nearest(word, ids);
	err_set(&e, -ENOENT, "'%s' is not a file, a code or a cause", word);
	if (near)
		err_hint(&e, "did you mean '%s'? 'cuwhy explain --list' lists the causes", near);
	else
		err_hint(&e, "'cuwhy explain --list' lists the causes");
	free(ids);
	return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
}

static int explain_cause(const char *id, const struct text_style *style)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = given.json ? open_memstream(&text, &len) : stdout;
	bool known = f && report_cause(f, id, style);
	int status;

	if (f && given.json)
		fclose(f);
	if (!known)
		status = no_such(id);
	else if (given.json)
		status = print_object(JSON_OF(J_INT("schema", 1), J_TEXT("id", id), J_TEXT("text", text)));
	else
		status = cmd_finish(EXIT_NOTHING);
	free(text);
	return status;
}

/* --- codes ------------------------------------------------------------------------------------ */

#define WORDS_MAX 128

/* "Xid" "79" -> "Xid 79". False when that is longer than any code. */
static bool join_words(char *to, size_t size, char **words, int n)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		if (at + strlen(words[i]) + 2 > size)
			return false;
		at += (size_t)snprintf(to + at, size - at, "%s%s", i ? " " : "", words[i]);
	}
	return true;
}

static bool is_code(char **words, int n)
{
	char word[WORDS_MAX];
	struct code c;

	return join_words(word, sizeof(word), words, n) && code_find(&c, word);
}

static int explain_code(char **words, int n, const struct text_style *style)
{
	char word[WORDS_MAX];
	struct code c;

	if (!join_words(word, sizeof(word), words, n) || !code_find(&c, word))
		return EXIT_TROUBLE;
	if (given.json)
		report_code_json(stdout, &c);
	else
		report_code(stdout, &c, style);
	return cmd_finish(EXIT_NOTHING);
}

/* --- inputs ----------------------------------------------------------------------------------- */

/* All texts are one source: what one says about the machine may explain the error in another. */
struct asked {
	struct source *list;
	size_t n;
	struct text_source *text;	/* the one in `list`; NULL = none */
	bool from_stdin;
	struct err e;
};

static bool looks_like_text(const char *word)
{
	return strpbrk(word, " \n\t:=") != NULL;
}

static bool is_there(const char *word)
{
	return fs_exists(word) || fs_is_dir(word);
}

/* Can the word be read as input: a file, a folder, "-", or a text by itself? */
static bool is_input(const char *word)
{
	return !strcmp(word, "-") || is_there(word) || strchr(word, '/') || looks_like_text(word);
}

static bool is_text_itself(const char *word)
{
	return strcmp(word, "-") && !is_there(word) && (strpbrk(word, " \n\t") || !strchr(word, '/'));
}

/* Input is passed through. Ctrl-C on the program that we read from must not cost the answer. */
static int read_stdin(struct asked *a)
{
	bool pass = !given.json && !given.quiet;
	int rc;

	progress_end();
	a->from_stdin = true;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	rc = log_read_fd(a->text->log, "standard input", STDIN_FILENO, pass ? STDOUT_FILENO : -1);
	return rc ? err_set(&a->e, rc, "cannot read standard input: %s", strerror(-rc)) : 0;
}

static int add_text(struct asked *a, const char *word)
{
	if (!a->text) {
		a->text = text_source_new();
		a->list[a->n++] = (struct source){.input = &input_text, .it = a->text, .path = word};
	}
	if (!strcmp(word, "-"))
		return read_stdin(a);
	if (!is_text_itself(word))
		return text_source_read(a->text, word, &a->e);
	log_read_text(a->text->log, "the text", word, strlen(word));
	return 0;
}

static int add_input(struct asked *a, const char *word)
{
	bool text = !strcmp(word, "-") || is_text_itself(word);
	int rc;

	if (!text)
		progress_begin("reading '%s'", word);
	if (text || input_sniff(word) == &input_text)
		return add_text(a, word);
	rc = source_from(&a->list[a->n], word, &a->e);
	a->n += rc == 0;
	return rc;
}

static void tell_left_out(const struct asked *a)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < a->list[i].n_left; k++)
			if (a->list[i].left[k].code)
				fprintf(stderr, "cuwhy: skipped: %s\n", a->list[i].left[k].msg);
}

/* Nothing failed: say what was in the file, so that "no error" is not read as more than it is. */
static void print_no_oom(const char *path, const struct snapshot_source *o)
{
	char most[32], reserved[32];

	printf("cuwhy: no out-of-memory error in '%s'\n", path);
	for (int i = 0; i < o->n; i++)
		if (o->d[i].all.segments || o->d[i].replay.n)
			printf("  device %d: %zu events, peak %s of tensors, %s reserved at the end\n", i,
			       o->d[i].replay.n, format_bytes(most, sizeof(most), (double)o->d[i].replay.peak.allocated),
			       format_bytes(reserved, sizeof(reserved), (double)o->d[i].all.reserved));
	if (!o->s->n_events)
		printf("  no history was recorded; torch.cuda.memory._record_memory_history() switches it on\n");
	printf("  'cuwhy memory %s' shows who holds what\n", path);
}

static void explain_print(FILE *out, const struct verdict *v, const char *path, const struct asked *a,
			  const struct text_style *style)
{
	bool alone = a->n == 1;

	if (given.json) {
		report_json(stdout, v, false);
		putchar('\n');
	} else if (verdict_failed(v)) {
		report_text(out, v, style);
	} else if (verdict_notes(v) > 0) {
		report_line(out, v, path);
	} else if (alone && a->list[0].input == &input_snapshot) {
		print_no_oom(path, a->list[0].it);
	} else if (a->text && !log_bytes(a->text->log)) {
		fprintf(out, "cuwhy: '%s' is empty\n", path);
	} else {
		fprintf(out, "cuwhy: no CUDA failure in '%s'\n", path);
		report_unrelated(out, v, style);
	}
}

/* Nothing found, but the input is not text: say so instead of calling it fine. */
static bool is_junk(const struct asked *a, const struct verdict *v)
{
	return a->text && a->n == 1 && log_binary(a->text->log) && !verdict_failed(v);
}

/* A machine by itself is a case for the doctor. */
static int explain_machine(const struct source *s, const struct text_style *style)
{
	struct doctor *d = doctor_judge(s->it);
	int status = doctor_exit(d);

	progress_end();
	if (given.json)
		doctor_json(stdout, d, s->it, false);
	else
		doctor_text(stdout, d, s->it, style, false);
	doctor_free(d);
	return cmd_finish(status);
}

static int explain_asked(struct asked *a, const char *path, struct text_style *style)
{
	FILE *out = a->from_stdin && !given.quiet && !given.json ? stderr : stdout;
	struct verdict *v;
	int status;

	if (a->n == 1 && a->list[0].input == &input_machine)
		return explain_machine(&a->list[0], style);
	if (a->text)
		log_finish(a->text->log);
	v = sources_judge(a->list, a->n, &a->e);
	progress_end();
	if (!v)
		return cmd_fail(stdout, given.json, &a->e, EXIT_TROUBLE);
	tell_left_out(a);
	if (is_junk(a, v)) {
		verdict_free(v);
		err_set(&a->e, -EINVAL, "'%s' is not a text, recording, core dump or snapshot", path);
		return cmd_fail(stdout, given.json, &a->e, EXIT_TROUBLE);
	}
	if (out == stderr) {
		style->color = term_color(STDERR_FILENO, given.colors);
		style->width = term_width(STDERR_FILENO);
	}
	explain_print(out, v, path, a, style);
	status = verdict_failed(v) ? EXIT_FOUND : EXIT_NOTHING;
	verdict_free(v);
	return out == stdout ? cmd_finish(status) : status;
}

static int explain_inputs(char **words, int n, struct text_style *style)
{
	struct asked a = {.list = xcalloc((size_t)n + 1, sizeof(*a.list))};
	int status, failed = 0;

	source_prepare();
	if (n == 1 && !is_text_itself(words[0]) && strcmp(words[0], "-") && input_sniff(words[0]) == &input_recording)
		style->recording = words[0];
	for (int i = 0; i < n && !failed; i++)
		failed = add_input(&a, words[i]);
	if (failed)
		status = cmd_fail(stdout, given.json, &a.e, EXIT_TROUBLE);
	else
		status = explain_asked(&a,
				       is_text_itself(words[0]) ? "the text"
				       : a.from_stdin		? "standard input"
								: words[0],
				       style);
	progress_end();
	for (size_t i = 0; i < a.n; i++)
		source_close(&a.list[i]);
	free(a.list);
	return status;
}

/* --- the command ------------------------------------------------------------------------------ */

static void move_to(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
	argv[to] = word;
}

/* Options may follow the operands: `cuwhy explain train.log --json`. */
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
	enum color color = COLOR_AUTO;
	struct text_style style = {0};
	struct err e = {0};
	char *newest;
	int first, status;

	options_first(argc, argv);
	first = opt_parse(&usage, options, argc, argv, &e);
	if (first >= 0 && given.color && !term_parse_color(given.color, &color))
		first = err_set(&e, -EINVAL, "--color takes auto, always or never, not '%s'",
				given.color);
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	if (given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	cmd_bound_memory();
	given.colors = color;
	if (given.json)
		progress_disable();
	style.color = !given.json && term_color(STDOUT_FILENO, color);
	style.width = term_width(STDOUT_FILENO);
	if (given.list)
		return list_causes();
	if (first == argc) {
		newest = recording_newest(&e);
		status = newest ? explain_inputs(&newest, 1, &style) : cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
		free(newest);
		return status;
	}
	if (!fs_exists(argv[first]) && is_code(argv + first, argc - first))
		return explain_code(argv + first, argc - first, &style);
	if (argc - first == 1 && !is_input(argv[first]))
		return explain_cause(argv[first], &style);
	return explain_inputs(argv + first, argc - first, &style);
}
