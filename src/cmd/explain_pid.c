/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain --pid` and `--all` (see explain.h).
 */
#include "cmd/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "find/input_live.h"
#include "read/live/task.h"
#include "verdict/live.h"
#include "verdict/verdict.h"
#include "probe/probe.h"
#include "show/report.h"
#include "show/report_live.h"

#define PROBE_NS	(2ull * 1000000000u)
#define LOOK_MAX_NS	(600ull * 1000000000u)

struct pids { pid_t *list; size_t n, cap; };

#define BETWEEN_PIDS ";, \t\n"	/* pgrep prints one per line */

static int add_pid(struct pids *p, const char *word, struct err *e)
{
	uint64_t number;
	pid_t pid;

	if (!str_u64(word, &number) || !number || number > INT32_MAX) {
		err_set(e, -EINVAL, "--pid takes the number of a process, not '%s'", word);
		return err_hint(e, "for example: cuwhy explain --pid 4711");
	}
	pid = task_process((pid_t)number);
	for (size_t i = 0; i < p->n; i++)
		if (p->list[i] == pid)
			return 0;
	p->list = xgrow(p->list, p->n, &p->cap, sizeof(*p->list));
	p->list[p->n++] = pid;
	return 0;
}

static int read_pids(struct pids *p, const struct explain_pid *o, struct err *e)
{
	char *words = o->pids ? xstrdup(o->pids) : NULL, *rest = words, *word;
	int rc = 0;

	while (!rc && rest && (word = strsep(&rest, BETWEEN_PIDS)))
		rc = *word ? add_pid(p, word, e) : 0;
	free(words);
	for (int i = 0; !rc && i < o->n_more; i++)
		rc = add_pid(p, o->more[i], e);
	if (!rc && o->all)
		p->n = live_cuda_processes(&p->list);
	if (!rc && !p->n && o->all) {
		err_set(e, -ESRCH, "no process that you may look at has loaded CUDA");
		rc = err_hint(e, "for those of other users: sudo cuwhy explain --all");
	} else if (!rc && !p->n) {
		err_set(e, -EINVAL, "--pid takes the numbers of processes, and there is none in '%s'",
			o->pids ? o->pids : "");
		rc = err_hint(e, "if pgrep should have said one: no process of that name runs");
	}
	return rc;
}

static int read_window(uint64_t *ns, const char *text, struct err *e)
{
	*ns = LOOK_WINDOW_NS;
	if (!text || (str_time(text, ns) && *ns >= 100000000u && *ns <= LOOK_MAX_NS))
		return 0;
	err_set(e, -EINVAL, "--look takes a time from 0.1s to 10m, not '%s'", text);
	return err_hint(e, "for example 500ms, 5s or 1m");
}

/* The one that is hung comes first; the rest follow it. */
static struct verdict *judge_all(struct live_source *list, size_t n)
{
	struct verdict *first = NULL, *rest = NULL;

	for (size_t i = 0; i < n; i++) {
		struct verdict *v;

		if (list[i].e.code)
			continue;
		v = verdict_of_live(&list[i]);
		if (!first || (!verdict_failed(first) && verdict_failed(v))) {
			if (first)
				verdict_append(&rest, first);
			first = v;
		} else {
			verdict_append(&rest, v);
		}
	}
	if (first)
		first->others = rest;
	return first;
}

static void print_one(const struct verdict *v, const struct text_style *style)
{
	if (verdict_failed(v))
		report_text(stdout, v, style);
	else
		live_text_fine(stdout, v->c.live, style);
}

static void print_all(struct verdict *v, const struct text_style *style)
{
	struct verdict *others = v->others;

	v->others = NULL;	/* each is printed in full */
	print_one(v, style);
	for (const struct verdict *o = others; o; o = o->next) {
		putchar('\n');
		print_one(o, style);
	}
	v->others = others;
}

static int answer(struct live_source *list, size_t n, const struct explain_pid *o, const struct text_style *style)
{
	struct verdict *v = judge_all(list, n);
	const struct err *e = NULL;
	int status;

	for (size_t i = 0; i < n; i++) {
		if (!list[i].e.code)
			continue;
		e = &list[i].e;
		if (v)
			fprintf(stderr, "cuwhy: skipped: %s\n", e->msg);
	}
	if (!v)
		return cmd_fail(stdout, o->json, e, EXIT_TROUBLE);
	status = verdict_failed(v) ? EXIT_FOUND : e ? EXIT_TROUBLE : EXIT_NOTHING;
	if (o->json)
		report_json(stdout, v, false);
	else
		print_all(v, style);
	verdict_free(v);
	return cmd_finish(status);
}

int explain_pids(const struct explain_pid *o, const struct text_style *style)
{
	struct look_options look = {.no_stop = o->no_stop};
	struct live_source *list;
	struct gpu_usage *usage;
	struct probe probe;
	struct pids p = {0};
	struct err e = {0};
	int status;

	if (read_window(&look.window_ns, o->look, &e) || read_pids(&p, o, &e)) {
		free(p.list);
		return cmd_fail(stdout, o->json, &e, EXIT_TROUBLE);
	}
	list = xcalloc(p.n, sizeof(*list));
	probe_start_as(&probe, PROBE_ASK_DETAILS, PROBE_NS);	/* NVML answers meanwhile */
	progress_begin("looking at %zu process%s", p.n, p.n == 1 ? "" : "es");
	live_look(list, p.list, p.n, &look);
	probe_wait(&probe);
	usage = probe_finish(&probe);
	for (size_t i = 0; i < p.n; i++)
		if (!list[i].e.code) {
			live_add_gpus(&list[i], usage);
			live_add_recorder(&list[i]);
		}
	usage_free(usage);
	progress_end();
	status = answer(list, p.n, o, style);
	live_release(list, p.n);
	free(list);
	free(p.list);
	return status;
}
