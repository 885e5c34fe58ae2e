/* SPDX-License-Identifier: Apache-2.0
 * The answer about a job (see explain.h).
 */
#include "cmd/explain.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cuwhy/format.h"
#include "find/input.h"
#include "find/input_text.h"
#include "find/words/log.h"
#include "read/rank/flight.h"
#include "read/rank/folder.h"
#include "read/rank/identity.h"
#include "find/job/order.h"
#include "verdict/source.h"
#include "verdict/verdict.h"
#include "knowledge/kb.h"
#include "show/job_report.h"

struct job_answer **explain_job_judge(const struct job *j)
{
	struct job_answer **list = xcalloc(j->n_attempts + 1, sizeof(*list));

	for (size_t i = 0; i < j->n_attempts; i++)
		list[i] = job_judge(&j->attempt[i]);
	return list;
}

void explain_job_free(const struct job *j, struct job_answer **list)
{
	for (size_t i = 0; i < j->n_attempts; i++)
		job_answer_free(list[i]);
	free(list);
}

int job_print(FILE *out, struct job *j, bool json, const struct text_style *style)
{
	struct job_answer **answer = explain_job_judge(j);
	bool failed = answer[j->n_attempts - 1]->how != HOW_NOT;

	progress_end();
	if (json)
		json_print(out, job_json(j, answer));
	else
		job_text(out, j, answer, style);
	explain_job_free(j, answer);
	return failed ? EXIT_FOUND : EXIT_NOTHING;
}

static bool is_flight_folder(const char *word)
{
	int n;
	char *list[] = {(char *)(uintptr_t)word}, **files = words_of_folders(list, 1, &n);
	bool any = false;

	for (int i = 0; i < n && !any; i++)
		any = flight_sniff(files[i]) != FLIGHT_NOT;
	words_free(files, n);
	return any;
}

bool explain_is_job(char **words, int n)
{
	for (int i = 0; i < n; i++)
		if (fs_is_dir(words[i]) ? job_folder_is(words[i]) || is_flight_folder(words[i])
					: fs_exists(words[i]) && flight_sniff(words[i]) != FLIGHT_NOT)
			return true;
	return false;
}

static struct job_attempt *last_attempt(struct job *j)
{
	if (!j->n_attempts) {
		j->attempt = xcalloc(1, sizeof(*j->attempt));
		j->n_attempts = 1;
	}
	return &j->attempt[j->n_attempts - 1];
}

static struct job_rank *rank_of(struct job_attempt *a, uint32_t rank)
{
	for (size_t i = 0; i < a->n && rank != JOB_UNKNOWN; i++)
		if (a->rank[i].rank == rank && !a->rank[i].launcher)
			return &a->rank[i];
	return NULL;
}

/* What two sources say about one rank: each adds what the other does not know. */
static void merge_rank(struct job_attempt *a, const struct job_rank *r)
{
	struct job_rank *known = rank_of(a, r->rank);

	if (!known) {
		job_attempt_add(a, r);
		return;
	}
	if (!known->n_comms) {
		known->comm = r->comm;
		known->n_comms = r->n_comms;
	}
	if (known->world == JOB_UNKNOWN)
		known->world = r->world;
	if (r->state == JOB_ENDED && known->state != JOB_ENDED) {
		known->state = JOB_ENDED;
		known->exit_known = r->exit_known;
		known->exit = r->exit;
		if (!known->node_known) {
			known->boot = r->boot;
			known->failed_ns = r->failed_ns;
			known->ended_ns = r->ended_ns;
		}
	}
	if (!known->cause && r->cause) {
		known->cause = r->cause;
		known->sure = r->sure;
		known->own = r->own;
		known->where = r->where;
		known->title = r->title;
	}
	if (!known->exception && !known->message) {
		known->exception = r->exception;
		known->message = r->message;
		known->title = known->title ? known->title : r->title;
	}
	if (!known->of_peers && !known->own)
		known->of_peers = r->of_peers;
}

/* A log speaks for the rank that it names, or that its name has. */
static void add_log(struct job *j, const char *path)
{
	struct source s = {0};
	struct err e = {0};
	struct job_rank r;
	struct verdict *v;

	if (source_from(&s, path, &e) != 0) {
		fprintf(stderr, "cuwhy: skipped: %s\n", e.msg);
		return;
	}
	if (s.input == &input_text)
		log_finish(((struct text_source *)s.it)->log);
	v = source_judge(&s, &e);
	if (v && verdict_failed(v)) {
		const struct line *where = &v->c.line[LINE_where];

		job_rank_init(&r);
		r.rank = v->rank != CW_UNKNOWN ? v->rank : flight_rank_of_name(path);
		r.node = "?";
		r.boot = r.path = pool_strdup(&j->pool, path);
		r.state = JOB_ENDED;
		r.exit_known = true;
		r.exit = 1;
		r.cause = AT(v->cause->id);
		r.sure = certainty_word(v->sure);
		r.title = pool_strdup(&j->pool, verdict_title(v));
		r.of_peers = victim_words_in(v->end_type, v->end_text);
		if (where->file)
			r.where = pool_printf(&j->pool, "%s:%u", where->shown ? where->shown : where->file, where->number);
		merge_rank(last_attempt(j), &r);
	}
	verdict_free(v);
	source_close(&s);
}

static void add_file(struct job *j, const char *path)
{
	struct err e = {0};
	struct job_rank r;

	if (flight_sniff(path) == FLIGHT_NOT) {
		add_log(j, path);
	} else if (flight_read(&r, path, &j->pool, &e) != 0) {
		fprintf(stderr, "cuwhy: skipped: '%s': %s\n", path, e.msg);
		last_attempt(j)->n_damaged++;
		job_attempt_add_unread(last_attempt(j), flight_rank_of_name(path));
	} else {
		if (r.state == JOB_ENDED)
			r.of_peers = victim_words_in(r.exception, r.message);
		merge_rank(last_attempt(j), &r);
	}
}

/* The job folder first: it knows most. */
struct job *explain_job_collect(char **words, int n, struct err *e)
{
	struct job *j = NULL;
	bool *used = xcalloc((size_t)n, sizeof(*used));

	for (int i = 0; i < n && !j; i++) {
		used[i] = fs_is_dir(words[i]) && job_folder_is(words[i]);
		if (used[i] && !(j = job_folder_read(words[i], e))) {
			free(used);
			return NULL;
		}
	}
	if (!j) {
		j = xcalloc(1, sizeof(*j));
		j->id = JOB_UNNAMED;
	}
	for (int i = 0; i < n; i++) {
		int n_files = 0;
		char **files = used[i] ? NULL : words_of_folders(&words[i], 1, &n_files);

		for (int k = 0; k < n_files; k++)
			add_file(j, files[k]);
		words_free(files, n_files);
	}
	job_attempt_sort(last_attempt(j));
	free(used);
	return j;
}

int explain_job(char **words, int n, bool json, const struct text_style *style)
{
	struct err e = {0};
	struct job *j;
	int status;

	progress_begin("reading '%s'", words[0]);
	j = explain_job_collect(words, n, &e);
	if (!j) {
		progress_end();
		return cmd_fail(stdout, json, &e, EXIT_TROUBLE);
	}
	status = job_print(stdout, j, json, style);
	if (status == EXIT_NOTHING && last_attempt(j)->n_damaged)
		status = EXIT_TROUBLE;
	job_free(j);
	return cmd_finish(status);
}

void explain_job_end(FILE *out, const char *dir, const struct text_style *style)
{
	struct job *j = job_folder_read(dir, NULL);
	struct job_answer **answer;

	if (!j)
		return;
	answer = explain_job_judge(j);
	if (answer[j->n_attempts - 1]->how != HOW_NOT)
		job_text(out, j, answer, style);
	explain_job_free(j, answer);
	job_free(j);
}
