/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain`: what a text, a recording, a core dump, a snapshot or a bundle means, or what is known about a code or a cause.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/format.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cards.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "find/input.h"
#include "read/recording/recording.h"
#include "find/input_snapshot.h"
#include "read/snapshot/snapshot.h"
#include "find/input_text.h"
#include "find/words/log.h"
#include "fit/fit.h"
#include "verdict/doctor.h"
#include "verdict/source.h"
#include "verdict/verdict.h"
#include "knowledge/kb.h"
#include "show/report.h"
#include "show/report_json.h"

static struct {
	bool json, verbose, quiet, list, rules, help, all, no_stop, try;
	char **program;			/* of --try */
	const char *color, *pid, *look;
	enum color colors;
} given;

static const struct opt_usage usage = {
	"explain", "[options] [FILE ... | - | TEXT | CODE | CAUSE | --pid PID ... | --try RECORDING -- PROGRAM ...]",
	"Says what a log, a traceback, a recording, a GPU core dump or a PyTorch memory snapshot means. Several files\n"
	"are analyzed together (train.log nvidia-smi.txt), also those of a folder (logs/); - reads standard input and\n"
	"passes it through. Of a folder of 'cuwhy run --job', and of dumps of PyTorch's flight recorder: which rank\n"
	"failed first. A code is a number, a name or an Xid (700, CUBLAS_STATUS_ALLOC_FAILED, \"Xid 79\"). Without\n"
	"arguments: the newest recording. With --pid: is that process hung, where, and what does it wait for? It needs no\n"
	"restart and no recorder, and it goes on unharmed. With --try, after an out-of-memory error: what makes the program\n"
	"fit on that GPU? It is run again in dry runs, as by 'cuwhy fit'.",
	.exits = "The exit status is 0 if nothing is wrong, 1 if a failure was found, 2 if cuwhy itself failed, or if it\n"
		 "found nothing and could not read an input.\n",
	.examples = "  cuwhy explain train.log                the first error of a log, and its cause\n"
		    "  python train.py 2>&1 | cuwhy explain -  passes the log through, then says what went wrong\n"
		    "  cuwhy explain /shared/why              which rank of a job failed first\n"
		    "  cuwhy explain 700                      what a code means\n"
		    "  cuwhy explain oom-fragmentation        what a cause is, and what to do\n"
		    "  cuwhy explain --pid 4711               where a process hangs, and what it waits for\n"
		"  cuwhy explain --try out/ -- python3 train.py    it ran out of memory: which changes help, in dry runs\n",
};

static const struct opt options[] = {
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"verbose", 'v', NULL, "print everything that is known: the call, all reasons, candidates, what held the memory", &given.verbose, NULL},
	{"quiet", 'q', NULL, "with -: do not pass standard input through, print only the answer", &given.quiet, NULL},
	{"pid", 'p', "PID ...", "look at processes that run: is one hung, where, and what does it wait for", NULL,
	 &given.pid},
	{"all", 'a', NULL, "the same for every process that has loaded CUDA", &given.all, NULL},
	{"look", 0, "TIME", "with --pid: how long to observe it (default 1s)", NULL, &given.look},
	{"no-stop", 0, NULL, "with --pid: stop no thread, not even for a moment; stacks are read until two readings agree",
	 &given.no_stop, NULL},
	{"try", 0, NULL, "after an out-of-memory error: try which changes make the program behind -- fit", &given.try,
	 NULL},
	{"list", 'l', NULL, "list the causes", &given.list, NULL},
	{"rules", 0, NULL, "with CAUSE: print the rules that recognize it, as they are written", &given.rules, NULL},
	{"color", 0, "WHEN", "auto, always or never", NULL, &given.color},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words option_words[] = {
	{"color", COLOR_WORDS},
	{0},
};

const struct opt_table explain_table = {&usage, options, option_words, OPERAND_CAUSE};

/* All texts are one source: what one says about the machine may explain the error in another. */
struct asked {
	struct source *list;
	size_t n;
	struct text_source *text;	/* the one in `list`; NULL = none */
	const char **texts, **empty, **junk;	/* the names of its texts; of empty ones; of those that are no text at all */
	size_t n_texts, n_empty, n_junk;
	char **unread;			/* which inputs could not be read, and why */
	size_t n_unread;
	const char *loose;		/* the first word of a message without quotes; NULL = it is none */
	bool from_stdin;
	struct err e;			/* why the first one could not be read */
};

static bool is_there(const char *word)
{
	return fs_exists(word) || fs_is_dir(word);
}

static bool is_stdin(const char *word)
{
	return !strcmp(word, "-");
}

static bool any_of(char **words, int n, bool (*is)(const char *))
{
	for (int i = 0; i < n; i++)
		if (is(words[i]))
			return true;
	return false;
}

static bool has_space(const char *word)
{
	return strpbrk(word, " \n\t") != NULL;
}

/* Can the word be read as input: a file, a folder, "-", or a text by itself? */
static bool is_input(const char *word)
{
	return is_stdin(word) || is_there(word) || strchr(word, '/') || strpbrk(word, " \n\t:=") != NULL;
}

static bool is_text_itself(const char *word)
{
	return !is_stdin(word) && !is_there(word) && (has_space(word) || !strchr(word, '/'));
}

static const char *input_name(const char *word)
{
	return is_stdin(word) ? "standard input" : is_text_itself(word) ? "the text" : word;
}

/* Words without a file among them may be a pasted message. Beside a file, a word that is no file is a misspelled one: read
 * as a text, it would silently be missing from the answer. */
static int find_missing(char **words, int n, struct err *e)
{
	bool any_file = any_of(words, n, is_stdin) || any_of(words, n, is_there);

	for (int i = 0; i < n; i++)
		if (!is_stdin(words[i]) && !is_there(words[i]) && !has_space(words[i]) &&
		    (any_file || strchr(words[i], '/')))
			return err_set(e, -ENOENT, "cannot open '%s': %s", words[i], strerror(ENOENT));
	return 0;
}

/* Input is passed through. Ctrl-C on the program that we read from must not cost the answer. */
static int read_stdin(struct asked *a, struct err *e)
{
	bool pass = !given.json && !given.quiet;
	int rc;

	progress_end();
	a->from_stdin = true;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	rc = log_read_fd(a->text->log, "standard input", STDIN_FILENO, pass ? STDOUT_FILENO : -1);
	if (rc == -EBADMSG)
		return err_set(e, rc, "standard input is compressed, but damaged or cut short");
	return rc ? err_set(e, rc, "cannot read standard input: %s", strerror(-rc)) : 0;
}

static int read_text(struct asked *a, const char *word, struct err *e)
{
	if (is_stdin(word))
		return read_stdin(a, e);
	if (!is_text_itself(word))
		return text_source_read(a->text, word, e);
	log_read_text(a->text->log, "the text", word, strlen(word));
	return 0;
}

static int add_text(struct asked *a, const char *word, struct err *e)
{
	const char *name = input_name(word);
	uint64_t before;
	int rc;

	if (!a->text) {
		a->text = text_source_new();
		a->list[a->n++] = (struct source){.input = &input_text, .it = a->text, .path = word};
	}
	before = log_bytes(a->text->log);
	rc = read_text(a, word, e);
	if (rc == 0 && log_bytes(a->text->log) == before)
		a->empty[a->n_empty++] = name;
	else if (rc == 0 && (!a->n_texts || strcmp(a->texts[a->n_texts - 1], name) != 0))	/* pasted words are one text */
		a->texts[a->n_texts++] = name;
	if (rc == 0 && log_binary(a->text->log))
		a->junk[a->n_junk++] = name;
	return rc;
}

static int add_input(struct asked *a, const char *word, struct err *e)
{
	bool text = is_stdin(word) || is_text_itself(word);
	int rc;

	if (!text)
		progress_begin("reading '%s'", word);
	if (text || input_sniff(word) == &input_text)
		return add_text(a, word, e);
	rc = source_from(&a->list[a->n], word, e);
	a->n += rc == 0;
	return rc;
}

static void note_unread(struct asked *a, const char *word, const struct err *e)
{
	const char *name = input_name(word);

	if (!a->n_unread)
		a->e = *e;
	if (strstr(e->msg, name))
		a->unread[a->n_unread++] = xstrdup(e->msg);
	else
		a->unread[a->n_unread++] = xasprintf("cannot read '%s': %s", name, e->msg);
}

static void drop_source(struct asked *a, size_t i)
{
	if (a->list[i].it == a->text)
		a->text = NULL;
	source_close(&a->list[i]);
	memmove(&a->list[i], &a->list[i + 1], (a->n - i - 1) * sizeof(*a->list));
	a->n--;
}

/* An input that cannot be read must not cost the answer about the others. False: there is nothing to judge. */
static bool add_inputs(struct asked *a, char **words, int n)
{
	for (int i = 0; i < n; i++) {
		struct err e = {0};

		if (add_input(a, words[i], &e))
			note_unread(a, words[i], &e);
	}
	for (size_t i = 0; i < a->n; i++) {
		if (a->list[i].it != a->text)
			continue;
		if (a->n_texts)
			a->list[i].path = a->texts[0];
		else if (a->n > 1 || !a->n_empty)
			drop_source(a, i);
	}
	return a->n > 0;
}

/* "'a', 'b' and 'c'" */
static void print_names(FILE *out, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s'%s'", i == 0 ? "" : i + 1 < n ? ", " : " and ", names[i]);
}

static bool is_junk(const struct asked *a, const char *name)
{
	for (size_t i = 0; i < a->n_junk; i++)
		if (a->junk[i] == name)
			return true;
	return false;
}

/* What was judged, text by text. Returns how many. */
static size_t judged_names(const struct asked *a, const char **names)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (a->list[i].input != &input_text)
			names[n++] = a->list[i].path;
		for (size_t k = 0; a->list[i].it == a->text && k < a->n_texts; k++)
			if (!is_junk(a, a->texts[k]))
				names[n++] = a->texts[k];
	}
	return n;
}

/* In the text this goes to stderr, which nothing that reads our JSON looks at. */
static void tell_left_out(const struct asked *a, struct verdict *v)
{
	for (size_t i = 0; i < a->n_unread; i++) {
		fprintf(stderr, "cuwhy: skipped: %s\n", a->unread[i]);
		if (v && given.json)
			verdict_evidence(v, "input", pool_printf(&v->pool, "skipped: %s", a->unread[i]));
	}
	for (size_t i = 0; i < a->n_empty && (a->n > 1 || a->n_texts || !a->text); i++)
		fprintf(stderr, "cuwhy: '%s' is empty\n", a->empty[i]);
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
	printf("  'cuwhy memory %s' shows what holds the memory\n", path);
}

static void print_no_failure(FILE *out, const struct asked *a)
{
	const char **names = xcalloc(a->n + a->n_texts + 1, sizeof(*names));
	size_t n = judged_names(a, names);

	if (n) {
		fputs("cuwhy: no CUDA failure in ", out);
		print_names(out, names, n);
		putc('\n', out);
	} else {
		fputs("cuwhy: ", out);
		print_names(out, a->empty, a->n_empty);
		fputs(a->n_empty == 1 ? " is empty\n" : " are empty\n", out);
	}
	free(names);
}

/* The recording that a handled failure is from. */
static const char *recording_path(const struct asked *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->list[i].input == &input_recording)
			return a->list[i].path;
	return NULL;
}

/* The failed GPU in words of `cuwhy fit --gpu`: by its name, if it has the memory that all of these have. Owned by the caller. */
static char *failed_gpu(const struct casefile *c)
{
	const struct card_model *card = card_named(fact_text(c, FACT_device_name));
	double total = fact_number(c, FACT_oom_total, 0), count = fact_number(c, FACT_device_count, 1);
	char times[16] = "";

	if (count > 1 && count <= 16)
		snprintf(times, sizeof(times), "*%.0f", count);
	if (card && (double)card->memory == total)
		return xasprintf("%s%s", card->id, times);
	return total > 0 ? xasprintf("%.0fMiB%s", floor(total / (1 << 20)), times) : NULL;
}

/* The program again, on simulated GPUs of that kind, with changes. 0; -errno with `e` filled. */
static int try_changes(const struct verdict *v, json_t *to, struct err *e)
{
	char *gpu = str_starts(AT(v->cause->id), "oom-") ? failed_gpu(&v->c) : NULL;
	int rc;

	if (!gpu)
		return err_set(e, -EINVAL, "--try needs a GPU that ran out of memory, and its size");
	rc = fit_try(gpu, given.program, given.json, to, e);
	free(gpu);
	return rc < 0 ? rc : 0;
}

static int explain_try(const struct verdict *v)
{
	json_t *tried = json_object();
	struct err e = {0};
	int rc;

	if (!given.json)
		putchar('\n');
	fflush(stdout);
	rc = try_changes(v, tried, &e);
	if (given.json && rc == 0) {
		json_t *whole = verdict_json(v);

		JSON_ADD(whole, J_SHARED("tried", tried));
		json_print(stdout, whole);
	}
	json_decref(tried);
	return rc ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : EXIT_FOUND;
}

static void explain_print(FILE *out, const struct verdict *v, const struct asked *a, const struct text_style *style)
{
	if (given.json && given.try && verdict_failed(v))
		return;		/* it is part of what was tried */
	if (given.json) {
		report_json(stdout, v, false);
		putchar('\n');
	} else if (verdict_failed(v)) {
		report_text(out, v, style);
	} else if (verdict_notes(v) > 0) {
		report_line(out, v, recording_path(a));
	} else if (a->n == 1 && a->list[0].input == &input_snapshot) {
		print_no_oom(a->list[0].path, a->list[0].it);
	} else {
		print_no_failure(out, a);
		if (a->n > 1 || !a->text || a->n_texts)
			report_unrelated(out, v, style);
	}
}

/* Nothing found, but the input is not text: say so instead of calling it fine. False: there was nothing else to judge. */
static bool reject_junk(struct asked *a)
{
	for (size_t i = 0; i < a->n_junk; i++) {
		struct err e = {0};

		err_set(&e, -EINVAL, "'%s' is not a text, recording, core dump or snapshot", a->junk[i]);
		note_unread(a, a->junk[i], &e);
	}
	return !a->text || a->n > 1 || a->n_junk < a->n_texts + a->n_empty;
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

/* The same name, but not the log's own copy. */
static const char *text_name(const struct asked *a, const char *name)
{
	for (size_t i = 0; i < a->n_texts; i++)
		if (!strcmp(a->texts[i], name))
			return a->texts[i];
	return "a text";
}

/* The texts of one run, and those that may be of any. */
static struct source read_run(const struct asked *a, const struct text_file *files, const int *run, size_t n, int which)
{
	struct text_source *text = text_source_new();
	struct source s = {.input = &input_text, .it = text};

	for (size_t i = 0; i < n; i++) {
		if (run[i] != which && run[i] != RUN_ANY)
			continue;
		text_source_read(text, files[i].name, NULL);
		if (!s.path && run[i] == which)
			s.path = text_name(a, files[i].name);
	}
	log_finish(text->log);
	return s;
}

static bool all_files(const struct text_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!fs_exists(files[i].name))
			return false;
	return true;
}

/* Texts are read as one until their times prove that they are of several runs: then each run is a source. */
static void split_runs(struct asked *a)
{
	const struct text_file *files;
	size_t n = log_files(a->text->log, &files), at = 0, runs;
	int *run = xcalloc(n + 1, sizeof(*run));
	struct source whole;

	runs = log_runs(a->text->log, run);
	while (at < a->n && a->list[at].it != a->text)
		at++;
	if (runs > 1 && all_files(files, n) && at < a->n) {
		whole = a->list[at];
		for (size_t i = 0; i < runs; i++)
			a->list[i ? a->n++ : at] = read_run(a, files, run, n, (int)i);
		a->text = a->list[at].it;
		source_close(&whole);
	}
	free(run);
}

/* A recording may turn out to have no part that can be read. Then the others are judged without it. */
static struct verdict *judge_asked(struct asked *a)
{
	struct verdict *v = sources_judge(a->list, a->n, &a->e);
	size_t n = a->n;

	if (v || n < 2)
		return v;
	for (size_t i = 0; i < a->n;) {
		struct err e = {0};
		struct verdict *alone = source_judge(&a->list[i], &e);

		if (alone) {
			i++;
		} else {
			note_unread(a, a->list[i].path, &e);
			drop_source(a, i);
		}
		verdict_free(alone);
	}
	return a->n > 0 && a->n < n ? sources_judge(a->list, a->n, &a->e) : NULL;
}

static int explain_judged(struct asked *a, struct verdict *v, FILE *out, struct text_style *style)
{
	bool failed = verdict_failed(v);

	if (!failed && a->loose)	/* not a message, then: names of files, in the wrong folder */
		return explain_no_such(a->loose, given.json);
	if (!failed && !reject_junk(a))
		return cmd_fail(stdout, given.json, &a->e, EXIT_TROUBLE);
	tell_left_out(a, v);
	if (out == stderr) {
		style->color = term_color(STDERR_FILENO, given.colors);
		style->width = term_width(STDERR_FILENO);
	}
	explain_print(out, v, a, style);
	if (failed && given.try)
		return explain_try(v);
	return failed ? EXIT_FOUND : a->n_unread ? EXIT_TROUBLE : EXIT_NOTHING;
}

static int explain_asked(struct asked *a, struct text_style *style)
{
	FILE *out = a->from_stdin && !given.quiet && !given.json ? stderr : stdout;
	struct verdict *v;
	int status;

	if (a->text) {
		log_finish(a->text->log);
		split_runs(a);
	}
	if (a->n == 1 && a->list[0].input == &input_machine) {
		progress_end();
		tell_left_out(a, NULL);
		return explain_machine(&a->list[0], style);
	}
	v = judge_asked(a);
	progress_end();
	if (!v)
		return cmd_fail(stdout, given.json, &a->e, EXIT_TROUBLE);
	status = explain_judged(a, v, out, style);
	verdict_free(v);
	return out == stdout ? cmd_finish(status) : status;
}

static int explain_words(char **words, int n, const char *loose, struct text_style *style)
{
	size_t size = (size_t)n + 1;
	struct asked a = {.list = xcalloc(size, sizeof(*a.list)), .texts = xcalloc(size, sizeof(*a.texts)),
			  .empty = xcalloc(size, sizeof(*a.empty)), .junk = xcalloc(size, sizeof(*a.junk)),
			  .unread = xcalloc(size, sizeof(*a.unread)), .loose = loose};
	int status;

	if (n == 1 && !is_text_itself(words[0]) && !is_stdin(words[0]) && input_sniff(words[0]) == &input_recording)
		style->recording = words[0];
	if (find_missing(words, n, &a.e) || !add_inputs(&a, words, n))
		status = cmd_fail(stdout, given.json, &a.e, EXIT_TROUBLE);
	else
		status = explain_asked(&a, style);
	progress_end();
	for (size_t i = 0; i < a.n; i++)
		source_close(&a.list[i]);
	for (size_t i = 0; i < a.n_unread; i++)
		free(a.unread[i]);
	free(a.list);
	free(a.texts);
	free(a.empty);
	free(a.junk);
	free(a.unread);
	return status;
}

/* A folder of logs stands for its files. */
static int explain_inputs(char **words, int n, const char *loose, struct text_style *style)
{
	int n_all, status;
	char **all = words_of_folders(words, n, &n_all);

	status = explain_words(all, n_all, loose, style);
	words_free(all, n_all);
	return status;
}

/* Several words, none of them a file: a message that was pasted without quotes. */
static bool is_loose(char **words, int n)
{
	return n > 1 && !any_of(words, n, is_stdin) && !any_of(words, n, is_there) && !any_of(words, n, has_space) &&
	       find_missing(words, n, NULL) == 0;
}

#define LOOSE_MAX (1u << 20)

static int explain_loose(char **words, int n, struct text_style *style)
{
	struct buf text;
	char *all;
	int status;

	buf_init(&text, LOOSE_MAX);
	for (int i = 0; i < n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", words[i]);
	all = buf_take(&text);
	status = explain_inputs(&all, 1, words[0], style);
	free(all);
	return status;
}

static void move_to(char **argv, int from, int to)
{
	char *word = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
	argv[to] = word;
}

static bool takes_value(const char *word)
{
	static const char *const options_with_value[] = {"--color", "--pid", "-p", "--look"};

	for (size_t i = 0; i < sizeof(options_with_value) / sizeof(options_with_value[0]); i++)
		if (!strcmp(word, options_with_value[i]))
			return true;
	return false;
}

/* Options may follow the operands: `cuwhy explain train.log --json`. */
static void options_first(int argc, char **argv)
{
	int front = 1;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (argv[i][0] != '-' || !argv[i][1])
			continue;
		move_to(argv, i, front++);
		if (takes_value(argv[front - 1]) && i + 1 < argc)
			move_to(argv, ++i, front++);
	}
}

/* What is behind "--" is a program. Returns where that begins, or would. */
static int split_program(int argc, char **argv, int first, struct err *e)
{
	int at = first;

	if (first > 1 && strcmp(argv[first - 1], "--") == 0)
		at = first - 1;
	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	if (at + 1 >= argc) {
		err_set(e, -EINVAL, "--try needs a program to run");
		return err_hint(e, "for example: cuwhy explain --try out/ -- python3 train.py");
	}
	given.program = argv + at + 1;
	return at;
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
	if (given.try) {
		argc = split_program(argc, argv, first, &e);
		if (argc < 0)
			return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
		first = first < argc ? first : argc;
	} else {
		cmd_bound_memory();
	}
	given.colors = color;
	if (given.json)
		progress_disable();
	style.color = !given.json && term_color(STDOUT_FILENO, color);
	style.width = term_width(STDOUT_FILENO);
	style.verbose = given.verbose;
	if (given.list)
		return explain_list(given.json);
	if (given.pid || given.all)
		return explain_pids(&(struct explain_pid){given.pid, argv + first, argc - first, given.look, given.all,
							  given.no_stop, given.json},
				    &style);
	if (first == argc) {
		newest = recording_newest(&e);
		status = newest ? explain_inputs(&newest, 1, NULL, &style)
				: cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
		free(newest);
		return status;
	}
	if (argc - first == 1 && !is_there(argv[first]) && kb_find(kb_get(), argv[first]))	/* `unknown` is a code, too */
		return explain_cause(argv[first], given.json, given.rules, &style);
	if (!fs_exists(argv[first]) && explain_is_code(argv + first, argc - first))
		return explain_code(argv + first, argc - first, given.json, &style);
	if (explain_is_job(argv + first, argc - first))
		return explain_job(argv + first, argc - first, given.json, &style);
	if (argc - first == 1 && !is_input(argv[first]))
		return explain_cause(argv[first], given.json, given.rules, &style);
	if (is_loose(argv + first, argc - first))
		return explain_loose(argv + first, argc - first, &style);
	return explain_inputs(argv + first, argc - first, NULL, &style);
}
