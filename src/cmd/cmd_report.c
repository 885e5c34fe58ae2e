/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy report`: a recording, a core dump, a memory snapshot, a bundle or a job as one HTML page.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "base/opt.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "cmd/open_page.h"
#include "cmd/replays.h"
#include "cuwhy/format.h"
#include "find/input_dump.h"
#include "find/input.h"
#include "read/machine/machine.h"
#include "read/recording/damage.h"
#include "read/recording/recording.h"
#include "read/recording/trace.h"
#include "find/input_text.h"
#include "find/words/log.h"
#include "find/input_snapshot.h"
#include "read/rank/folder.h"
#include "find/job/order.h"
#include "verdict/doctor.h"
#include "verdict/opened.h"
#include "verdict/source.h"
#include "base/json.h"
#include "verdict/verdict.h"
#include "show/job_report.h"
#include "show/page.h"
#include "show/page_job.h"
#include "show/report.h"

#define PAGE_MAX	((size_t)64 << 20)
#define DEFAULT_OUT	"cuwhy-report.html"
#define TEXT_WIDTH	100
#define WHAT_IFS_MAX	12

static struct {
	bool json, markdown, open, help;
	const char *out, *what_if;
} given;

static struct rlimit data_limit;	/* as it was when cuwhy started */

static const struct opt_usage usage = {
	"report", "[options] [RECORDING | DUMP | SNAPSHOT | BUNDLE | LOG | JOB ...]",
	"Writes one HTML page that shows a recording (a folder or a .cwr file; by default the newest), a GPU core\n"
	"dump, a PyTorch memory snapshot, a bundle from the doctor, or a job (its folder, and whatever else 'cuwhy\n"
	"explain' reads of it). It needs no network and no other file: send it to a colleague. With --markdown: the\n"
	"same for an issue tracker, also of a log; - reads it from standard input.",
	.notes = "Of a recording with a memory trace, the page shows what other settings of PyTorch's allocator would have\n"
		 "changed; --what-if adds more of them: see 'cuwhy memory -h'.\n"
		 "\n"
		 "The page contains your source code around the failure, command lines and folder names: check it before\n"
		 "you publish it.\n",
	.exits = "The exit status is 0 if the page was written, otherwise 2.\n",
	.examples = "  cuwhy report                       the newest recording, into " DEFAULT_OUT "\n"
		    "  cuwhy report --open                the same, and opens it in a browser\n"
		    "  cuwhy report -o oom.html out/      a recording from 'cuwhy run --out out'\n"
		    "  cuwhy report --what-if gpu=a100-40gb out/\n"
		"                                     with its memory on another card, if 'run --memory-trace' made it\n"
		    "  cuwhy report snapshot.pickle       what torch.cuda.memory._dump_snapshot wrote\n"
		    "  cuwhy report --markdown            the newest recording as text for an issue\n"
		    "  cuwhy report --markdown train.log  what a log says, likewise\n"
		    "  cuwhy report my.json               what 'cuwhy doctor --bundle my.json' wrote\n"
		"  cuwhy report /shared/why           the ranks of a job that 'cuwhy run --job /shared/why' watched\n",
};

static const struct opt options[] = {
	{"out", 'o', "FILE", "where to write it (" DEFAULT_OUT "); '-' is standard output", NULL, &given.out},
	{"what-if", 0, "WHAT ...", "also show its memory on another card or with these settings; may be repeated", NULL,
	 &given.what_if},
	{"markdown", 0, NULL, "instead of a page, text for an issue tracker; to standard output unless -o is given",
	 &given.markdown, NULL},
	{"open", 0, NULL, "open the page in a browser: the one in BROWSER, else the desktop's", &given.open, NULL},
	{"json", 0, NULL, "describe the page as one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

const struct opt_table report_table = {&usage, options, NULL, OPERAND_FILE};

/* Shown by browsers without scripts. */
static char *text_of_verdict(const struct verdict *v, const char *path)
{
	struct text_style style = {
		.width = TEXT_WIDTH, .verbose = true, .recording = input_sniff(path) == &input_recording ? path : NULL};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return xstrdup("");
	if (v && strcmp(verdict_cause(v), "none") != 0)
		report_text(f, v, &style);
	else
		fprintf(f, "cuwhy: no CUDA failure in '%s'\n", path);
	fclose(f);
	return text;
}

/* The page is there, whether or not there is a browser. */
static bool show_page(const char *path)
{
	char *full = realpath(path, NULL);
	bool shown = open_page(full ? full : path, &data_limit);

	if (!shown)
		fprintf(stderr, "cuwhy: no browser could be started: open '%s' in one\n", full ? full : path);
	free(full);
	return shown;
}

/* What the page says, for scripts. */
struct told {
	const char *cause;
	const char *how, *title;	/* of a job; else NULL */
};

static int tell_page(const char *path, size_t bytes, const struct told *told)
{
	bool shown;

	if (!given.json) {
		printf("wrote '%s' (%zu KiB)\n", path, (bytes + 1023) / 1024);
		fflush(stdout);
	}
	shown = given.open && show_page(path);
	if (given.json)
		json_print(stdout, JSON_OF(J_INT("schema", 1), J_TEXT("page", path), J_BYTES("bytes", bytes),
					   J_TEXT("cause", told->cause), J_IF(told->how, J_TEXT("how", told->how)),
					   J_IF(told->title, J_TEXT("title", told->title)),
					   J_IF(given.open, J_BOOL("opened", shown))));
	return cmd_finish(EXIT_NOTHING);
}

static char *markdown_of(const struct verdict *v, const char *text)
{
	char *words = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&words, &len);

	if (!f)
		return xstrdup("");
	report_markdown(f, v, text);
	fclose(f);
	return words;
}

static int write_told(struct page *p, const struct verdict *v, const char *path, const char *words,
		      const struct told *told)
{
	const char *out = given.out ? given.out : given.markdown ? "-" : DEFAULT_OUT;
	char *text = words ? xstrdup(words) : text_of_verdict(v, path), *issue;
	struct err e = {0};
	struct buf b;
	int rc, status;

	str_make_plain(text);
	issue = markdown_of(v, text);
	buf_init(&b, PAGE_MAX);
	page_set_issue(p, issue);
	if (given.markdown) {
		buf_printf(&b, "%s", issue);
		rc = 0;
	} else {
		rc = page_write(p, text, &b, &e);
	}
	progress_end();
	if (rc == 0 && strcmp(out, "-") != 0)
		rc = fs_write(out, b.data, b.len, &e);
	else if (rc == 0)
		fwrite(b.data, 1, b.len, term_bytes());	/* cmd_finish checks for errors */
	if (rc)
		status = cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	else
		status = strcmp(out, "-") ? tell_page(out, b.len, told) : cmd_finish(EXIT_NOTHING);
	buf_release(&b);
	free(issue);
	free(text);
	return status;
}

static int write_page(struct page *p, const struct verdict *v, const char *path, const char *words)
{
	struct told told = {.cause = v ? verdict_cause(v) : NULL};

	return write_told(p, v, path, words, &told);
}

struct judged {
	struct page *page;
	struct verdict **list;	/* verdict_join takes ownership */
	size_t n;
	struct err left;	/* why one could not be read */
	struct err refused;	/* why a what-if could not be answered */
	size_t played;		/* GPUs whose memory was played back */
};

static void tell_damage(struct page *page, const struct trace *t)
{
	struct pool pool = {0};
	const char *damage = damage_words(t, &pool);

	if (damage)
		page_tell(page, "process %u: %s", trace_header(t)->pid, damage);
	pool_release(&pool);
}

struct what_ifs {
	struct what_if_row row[WHAT_IFS_MAX];
	size_t n;
	struct pool pool;
};

static void what_if_add(struct what_ifs *w, struct replayed *r, const char *words,
			const struct replay_question *q)
{
	struct what_if_row *row = &w->row[w->n++];

	*row = (struct what_if_row){.words = words, .over_time = pool_alloc(&w->pool, sizeof(*row->over_time))};
	what_if_answer(row, r, q, &w->pool);
}

/* As it was, and with the settings that may help, unless it had them. */
static void add_remedies(struct what_ifs *w, struct replayed *r)
{
	struct replay_question same = replay_same(r->replay), q = same;

	what_if_add(w, r, "", &same);
	for (size_t i = 0; what_if_remedies[i]; i++)
		if (replay_settings(r->replay, what_if_remedies[i], &q.settings, NULL) == 0 &&
		    memcmp(&q.settings, &same.settings, sizeof(same.settings)) != 0)
			what_if_add(w, r, what_if_remedies[i], &q);
}

static int add_questions(struct what_ifs *w, struct replayed *r, struct err *e)
{
	char *text = pool_strdup(&w->pool, given.what_if), *rest = NULL;
	struct replay_question q;

	for (char *ask = strtok_r(text, ";", &rest); ask; ask = strtok_r(NULL, ";", &rest)) {
		int rc = w->n < WHAT_IFS_MAX ? what_if_parse(&q, r, ask, e)
					     : err_set(e, -E2BIG, "too many what-ifs for one page");

		if (rc)
			return rc;
		what_if_add(w, r, ask, &q);
	}
	return 0;
}

/* Nothing, if the process has no memory trace or no details on the page. */
static void add_what_ifs(struct judged *j, const struct opened *o, const char *part, const struct verdict *v)
{
	struct replays all;
	struct err e = {0};

	if (!o->trace || !page_has_details(j->page, v))
		return;
	if (replays_open(&all, part, &e)) {
		if (e.code != -ENODATA)
			page_tell(j->page, "its memory could not be played back with other settings: %s", e.msg);
		return;
	}
	for (size_t i = 0; i < all.n && !j->refused.code; i++) {
		struct replayed *r = &all.list[i];
		struct what_ifs w = {.n = 0};

		add_remedies(&w, r);
		if (!given.what_if || add_questions(&w, r, &j->refused) == 0)
			page_add_what_if(j->page, v, r->device, what_if_over_time_json(r->trace, r->replay, w.row, w.n));
		pool_release(&w.pool);
		j->played++;
	}
	replays_close(&all);
}

static void add_process(struct judged *j, struct recorded_process *p)
{
	struct opened o;
	struct err e = {0};

	if (opened_read(&o, p, &e)) {
		page_tell(j->page, "a process could not be read: %s", e.msg);
		page_add_process(j->page, NULL, &p->end, NULL, e.msg, false);
		j->left = e;
		return;
	}
	j->list[j->n] = opened_judge(&o, p);
	page_add_process(j->page, o.trace, &p->end, j->list[j->n], NULL, false);
	if (o.trace)
		page_add_blocks(j->page, j->list[j->n], o.trace, p->part);
	add_what_ifs(j, &o, p->part, j->list[j->n]);
	if (o.trace)
		tell_damage(j->page, o.trace);
	opened_release(&o, p);
	j->n++;
}

/* With many processes, the one that failed first may not have its details on the page yet. */
static void add_first(struct judged *j, struct recording *r, const struct verdict *first)
{
	for (size_t i = 0; i < r->n && !page_has_details(j->page, first); i++) {
		struct recorded_process *p = &r->process[i];
		struct verdict *v;
		struct opened o;

		if (!p->part || (p->end.pid && p->end.pid != verdict_pid(first)) || opened_read(&o, p, NULL))
			continue;
		v = opened_judge(&o, p);
		if (verdict_pid(v) == verdict_pid(first) && !strcmp(verdict_cause(v), verdict_cause(first))) {
			page_add_process(j->page, o.trace, &p->end, v, NULL, true);
			if (o.trace)
				page_add_blocks(j->page, v, o.trace, p->part);
			add_what_ifs(j, &o, p->part, v);
		}
		verdict_free(v);
		opened_release(&o, p);
	}
}

/* If it is not one of our files, there is no page to make. */
static bool is_recording_file(const char *path)
{
	char magic[sizeof(CW_MAGIC) - 1] = "";

	return fs_is_dir(path) || (fs_read_head(path, magic, sizeof(magic)) == sizeof(magic) &&
				   !memcmp(magic, CW_MAGIC, sizeof(magic)));
}

static int finish_recording(struct judged *j, struct recording *r, const char *path)
{
	bool none = j->n == 0 && r->n > 0;
	/* what `cuwhy run` said at the time, in case the parts cannot be read */
	json_t *stored = none ? recording_stored(path) : NULL;
	struct verdict *v = verdict_join(j->list, j->n);
	int status;

	if (stored)
		page_tell(j->page, "this verdict was written when the program ended");
	if (!none)
		add_first(j, r, v);
	page_set_verdict(j->page, v, stored);
	status = write_page(j->page, none ? NULL : v, path, NULL);
	if (none)
		fprintf(stderr, "cuwhy: no part of the recording could be read: %s\n", j->left.msg);
	json_decref(stored);
	verdict_free(v);
	return none ? EXIT_TROUBLE : status;
}

static void no_memory_trace(struct err *e)
{
	err_set(e, -ENODATA, "--what-if needs a recording with a memory trace");
	err_hint(e, "record it with 'cuwhy run --memory-trace'");
}

static int refuse(struct judged *j, struct err *e)
{
	verdict_free(verdict_join(j->list, j->n));
	*e = j->refused;
	return EXIT_TROUBLE;
}

static int report_recording(const char *path, struct err *e)
{
	struct judged j = {0};
	struct recording r = {0};
	int status = EXIT_TROUBLE;

	if (recording_read(&r, path, e) == 0) {
		j.page = page_new("recording", path);
		j.list = xcalloc(r.n + 1, sizeof(*j.list));
		for (size_t i = 0; i < r.n; i++)
			add_process(&j, &r.process[i]);
		if (given.what_if && !j.refused.code && !j.played)
			no_memory_trace(&j.refused);
		if (!j.n && j.left.code && !is_recording_file(path))
			*e = j.left;
		else if (j.refused.code)
			status = refuse(&j, e);
		else
			status = finish_recording(&j, &r, path);
		free(j.list);
		page_free(j.page);
	}
	recording_release(&r);
	return status;
}

static int report_dump(const char *path, const struct dump_source *s)
{
	struct verdict *v = verdict_of_dump(s->culprit);
	struct page *p = page_new("dump", path);
	int status;

	page_add_dump(p, s->culprit);
	page_set_verdict(p, v, NULL);
	status = write_page(p, v, path, NULL);
	page_free(p);
	verdict_free(v);
	return status;
}

/* The device that the verdict is about comes first. */
static int report_snapshot(const char *path, struct snapshot_source *s)
{
	int chosen = snapshot_device_to_judge(s), status;
	struct verdict *v = verdict_of_snapshot(s->s, &s->l, &s->d[chosen]);
	struct page *p = page_new("snapshot", path);
	struct snap_device first = s->d[chosen];

	s->d[chosen] = s->d[0];
	s->d[0] = first;
	page_add_snapshot(p, s->s, &s->l, s->d, (size_t)s->n, v);
	page_set_verdict(p, v, NULL);
	status = write_page(p, v, path, NULL);
	page_free(p);
	verdict_free(v);
	return status;
}

static char *text_of_machine(const struct doctor *d, const struct machine *m)
{
	struct text_style style = {.width = TEXT_WIDTH};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		doctor_text(f, d, m, &style, false);
		fclose(f);
	}
	return text;
}

static int report_bundle(const char *path, const struct machine *m)
{
	struct doctor *d = doctor_judge(m);
	struct page *p = page_new("bundle", path);
	char *text = text_of_machine(d, m);
	int status;

	page_add_machine(p, d, m);
	page_set_verdict(p, d->verdict, NULL);
	page_set_checks(p, d);
	status = write_page(p, d->verdict, path, text);
	free(text);
	page_free(p);
	doctor_free(d);
	return status;
}

static char *text_of_job(const struct job *j, struct job_answer *const *answer)
{
	struct text_style style = {.width = TEXT_WIDTH};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return xstrdup("");
	job_text(f, j, answer, &style);
	fclose(f);
	return text;
}

static int report_job(char **words, int n)
{
	struct job_answer **answer, *last;
	struct told told;
	struct err e = {0};
	struct page *p;
	struct job *j;
	char *text;
	int status;

	if (given.json)
		progress_disable();
	progress_begin("making a page from '%s'", words[0]);
	if (given.what_if)
		no_memory_trace(&e);
	j = e.code ? NULL : explain_job_collect(words, n, &e);
	if (!j)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	answer = explain_job_judge(j);
	last = answer[j->n_attempts - 1];
	text = text_of_job(j, answer);
	p = page_new("job", words[0]);
	page_set_job(p, page_job_json(j, answer));
	told = (struct told){job_cause(last), job_hows[last->how], last->title};
	status = write_told(p, NULL, words[0], text, &told);
	page_free(p);
	free(text);
	explain_job_free(j, answer);
	job_free(j);
	return status;
}

/* Any other kind: the verdict alone. */
static int report_plain(struct source *s, struct err *e)
{
	struct verdict *v = source_judge(s, e);
	struct page *p;
	int status;

	if (!v)
		return EXIT_TROUBLE;
	if (s->input == &input_text && log_binary(((struct text_source *)s->it)->log) && !verdict_failed(v)) {
		verdict_free(v);
		err_set(e, -EINVAL, "'%s' is not a text, recording, core dump, snapshot or bundle", s->path);
		return EXIT_TROUBLE;
	}
	p = page_new(s->input->name, s->path);
	page_set_verdict(p, v, NULL);
	status = write_page(p, v, s->path, NULL);
	page_free(p);
	verdict_free(v);
	return status;
}

static bool is_json(const char *path)
{
	unsigned char head[4096];
	size_t i = 0, n = fs_read_head(path, head, sizeof(head));

	while (i < n && isspace(head[i]))
		i++;
	return i < n && head[i] == '{';
}

/* A page can be made from anything but a text; text for an issue, of a text as well. What looks like text may be a damaged recording or
 * bundle: their readers say what is wrong with it. */
static const struct input *input_for_page(const char *path)
{
	const struct input *input = input_sniff(path);

	if (input != &input_text || (given.markdown && !fs_is_dir(path)))
		return input;
	return is_json(path) ? &input_machine : &input_recording;
}

static int report_of(const char *path)
{
	const struct input *input;
	struct err e = {0};
	int status = EXIT_TROUBLE;
	void *it = NULL;

	if (given.json)
		progress_disable();
	progress_begin("making a page from '%s'", path);
	if (!fs_exists(path)) {
		err_set(&e, -ENOENT, "cannot open '%s': %s", path, strerror(ENOENT));
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	}
	input = input_for_page(path);
	if (given.what_if && input != &input_recording)
		no_memory_trace(&e);
	else if (input == &input_recording)
		status = report_recording(path, &e);
	else if ((it = input->open(path, &e)) != NULL && input == &input_dump)
		status = report_dump(path, it);
	else if (it && input == &input_snapshot)
		status = report_snapshot(path, it);
	else if (it && input == &input_machine)
		status = report_bundle(path, it);
	else if (it)
		status = report_plain(&(struct source){.input = input, .it = it, .path = path}, &e);
	if (it)
		input->close(it);
	return e.code ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : status;
}

int cmd_report(int argc, char **argv)
{
	struct err e = {0};
	int first = opt_parse(&usage, options, argc, argv, &e), status;
	bool job = first >= 0 && first < argc && !given.help && explain_is_job(argv + first, argc - first);
	char *path;

	if (first >= 0 && argc - first > 1 && !job)
		first = err_set(&e, -EINVAL, "report takes one recording, dump, snapshot or bundle, not %d",
				argc - first);
	if (first >= 0 && given.out && !*given.out)
		first = err_set(&e, -EINVAL, "-o needs a file name");
	if (first >= 0 && given.json && (given.out ? !strcmp(given.out, "-") : given.markdown)) {
		first = err_set(&e, -EINVAL, "the %s and --json cannot both go to standard output",
				given.markdown ? "text" : "page");
		err_hint(&e, "name a file for it: -o FILE");
	}
	if (first >= 0 && given.open && (given.markdown || (given.out && !strcmp(given.out, "-"))))
		first = err_set(&e, -EINVAL, "--open needs a page in a file, not text or standard output");
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	if (given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	getrlimit(RLIMIT_DATA, &data_limit);
	cmd_bound_memory();
	if (job)
		return report_job(argv + first, argc - first);
	if (first < argc && given.markdown && !strcmp(argv[first], "-"))
		path = xstrdup("/dev/stdin");
	else
		path = first < argc ? xstrdup(argv[first]) : recording_newest(&e);
	status = path ? report_of(path) : cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	free(path);
	return status;
}
