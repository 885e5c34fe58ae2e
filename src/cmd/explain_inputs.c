/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain FILE...`: finds out what each input is, judges all of them together.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "cmd/memory.h"
#include "judge/opened.h"
#include "input/recording/recording.h"
#include "input/dump/culprit.h"
#include "judge/fault.h"
#include "judge/verdict.h"
#include "rules/kb.h"
#include "input/text/log.h"
#include "input/recording/trace.h"
#include "base/banned.h"

enum input { INPUT_STDIN, INPUT_RECORDING, INPUT_DUMP, INPUT_SNAPSHOT, INPUT_TEXT_FILE, INPUT_TEXT };

/* --- recordings ------------------------------------------------------------------------------- */

/* NULL, with `e` filled, when its part cannot be read. */
static struct verdict *judge(struct recorded_process *p, struct err *e)
{
	struct opened o;
	struct verdict *v;

	if (opened_read(&o, p, e))
		return NULL;
	v = opened_judge(&o, p);
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
	progress_end();
	for (i = 0; n > 0 && i < r->n; i++)
		if (left[i].code)
			fprintf(stderr, "cuwhy: left out: %s\n", left[i].msg);
	if (n > 0 || r->n == 0)
		all = verdict_join(list, n);
	free(left);
	free(list);
	return all;
}

static struct verdict *judge_recording(const char *path, struct err *e)
{
	struct verdict *v = NULL;
	struct recording r;

	if (recording_read(&r, path, e) == 0)
		v = judge_all(&r, e);
	recording_release(&r);
	return v;
}

/* --- core dumps ------------------------------------------------------------------------------- */

static struct verdict *judge_dump(const char *path, struct err *e)
{
	struct dump *d = dump_open(path, e);
	struct culprit *c;
	struct verdict *v;

	if (!d)
		return NULL;
	c = culprit_find(d);
	v = verdict_of_dump(c);
	culprit_free(c);
	dump_free(d);
	return v;
}

/* --- texts ------------------------------------------------------------------------------------ */

static int read_file(struct text_log *l, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0)
		return err_set(e, -errno, "cannot open '%s': %s", path, strerror(errno));
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		progress_total((uint64_t)st.st_size);
	rc = log_read_fd(l, path, fd, -1);
	close(fd);
	return rc ? err_set(e, rc, "cannot read '%s': %s", path, strerror(-rc)) : 0;
}

/* What comes is passed on. Interrupting the program before us must not cost the answer. */
static int read_stdin(struct text_log *l, const struct explain_options *o, struct err *e)
{
	bool pass = !o->json && !o->quiet;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	rc = log_read_fd(l, "standard input", STDIN_FILENO, pass ? STDOUT_FILENO : -1);
	return rc ? err_set(e, rc, "cannot read standard input: %s", strerror(-rc)) : 0;
}

static struct text_log *new_log(void)
{
	const char **words;
	size_t n = kb_words(kb_get(), &words);
	struct text_log *l = log_new(words, n);

	free(words);
	return l;
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool looks_like_text(const char *word)
{
	return strpbrk(word, " \n\t:=") != NULL;
}

bool explain_is_input(const char *word)
{
	return !strcmp(word, "-") || fs_exists(word) || fs_is_dir(word) || strchr(word, '/') || looks_like_text(word);
}

static enum input kind_of(const char *word)
{
	if (!strcmp(word, "-"))
		return INPUT_STDIN;
	if (!fs_exists(word) && !fs_is_dir(word))
		return strpbrk(word, " \n\t") || !strchr(word, '/') ? INPUT_TEXT : INPUT_TEXT_FILE;
	if (fs_is_dir(word) || str_ends(word, PART_SUFFIX))
		return INPUT_RECORDING;
	if (memory_is_snapshot(word))
		return INPUT_SNAPSHOT;
	return file_is_dump(word) ? INPUT_DUMP : INPUT_TEXT_FILE;
}

struct answer {
	struct verdict **list;
	size_t n;
	struct text_log *log;
	bool from_stdin;
	struct err e;
};

static int take(struct answer *a, const char *word, const struct explain_options *o)
{
	enum input kind = kind_of(word);
	struct verdict *v = NULL;

	if (kind != INPUT_STDIN && kind != INPUT_TEXT)
		progress_begin("reading '%s'", word);
	if (kind == INPUT_STDIN || kind == INPUT_TEXT_FILE || kind == INPUT_TEXT) {
		if (!a->log)
			a->log = new_log();
		a->from_stdin |= kind == INPUT_STDIN;
		if (kind == INPUT_STDIN)
			progress_end();
		if (kind == INPUT_STDIN)
			return read_stdin(a->log, o, &a->e);
		if (kind == INPUT_TEXT_FILE)
			return read_file(a->log, word, &a->e);
		log_read_text(a->log, "the text", word, strlen(word));
		return 0;
	}
	if (kind == INPUT_RECORDING)
		v = judge_recording(word, &a->e);
	else if (kind == INPUT_DUMP)
		v = judge_dump(word, &a->e);
	else
		v = judge_snapshot(word, &a->e);
	if (!v)
		return a->e.code ? a->e.code : -EINVAL;
	a->list[a->n++] = v;
	return 0;
}

static void print(FILE *out, const struct verdict *v, const char *path, bool empty, const struct explain_options *o,
		  const struct text_style *style)
{
	if (o->json) {
		report_json(stdout, v, false);
		putchar('\n');
	} else if (strcmp(verdict_cause(v), "none") != 0) {
		report_text(out, v, style);
	} else if (verdict_notes(v) > 0) {
		report_line(out, v, path);
	} else if (empty) {
		fprintf(out, "cuwhy: '%s' is empty\n", path);
	} else {
		fprintf(out, "cuwhy: no CUDA failure in '%s'\n", path);
		report_unrelated(out, v, style);
	}
}

/* Nothing was found in something that is no text: better to say so than to call it fine. */
static bool is_junk(const struct answer *a, const struct verdict *v)
{
	return a->log && a->n == 1 && log_binary(a->log) && !strcmp(verdict_cause(v), "none");
}

static int finish(struct answer *a, const char *path, const struct explain_options *o, struct text_style *style)
{
	FILE *out = a->from_stdin && !o->quiet && !o->json ? stderr : stdout;
	struct verdict *v;
	int status;

	if (a->log) {
		log_finish(a->log);
		a->list[a->n++] = verdict_of_text(a->log);
	}
	v = verdict_combine(a->list, a->n);
	if (is_junk(a, v)) {
		verdict_free(v);
		a->n = 0;
		err_set(&a->e, -EINVAL, "'%s' is neither a text nor a recording, core dump or snapshot", path);
		return cmd_fail(stdout, o->json, &a->e, EXIT_TROUBLE);
	}
	a->n = 0;
	progress_end();
	if (out == stderr) {
		style->colour = term_colour(STDERR_FILENO, o->colour);
		style->width = term_width(STDERR_FILENO);
	}
	print(out, v, path, a->log && !log_bytes(a->log), o, style);
	status = strcmp(verdict_cause(v), "none") != 0 ? EXIT_FOUND : EXIT_NOTHING;
	verdict_free(v);
	return out == stdout ? cmd_finish(status) : status;
}

int explain_inputs(char **words, int n, const struct explain_options *o, struct text_style *style)
{
	struct answer a = {.list = xcalloc((size_t)n + 1, sizeof(*a.list))};
	int status = EXIT_TROUBLE, failed = 0;

	if (n == 1 && kind_of(words[0]) == INPUT_SNAPSHOT) {
		free(a.list);
		return explain_snapshot(words[0], o->json, style);
	}
	if (n == 1 && kind_of(words[0]) == INPUT_RECORDING)
		style->recording = words[0];
	for (int i = 0; i < n && !failed; i++)
		failed = take(&a, words[i], o);
	if (failed)
		status = cmd_fail(stdout, o->json, &a.e, EXIT_TROUBLE);
	else
		status = finish(&a, kind_of(words[0]) == INPUT_TEXT ? "the text" : a.from_stdin ? "standard input" : words[0], o, style);
	progress_end();
	for (size_t i = 0; i < a.n; i++)
		verdict_free(a.list[i]);
	log_free(a.log);
	free(a.list);
	return status;
}
