/* SPDX-License-Identifier: Apache-2.0
 * What each process did when it ended, and what is printed of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "report/json_text.h"
#include "cmd/recording.h"
#include "cmd/run.h"
#include "dump/culprit.h"
#include "facts/fault.h"
#include "trace/trace.h"
#include "base/banned.h"

/* A process that is not our child: its status is known only after its own parent asked for it. */
#define STATUS_WAIT_NS 100000000u

/* A job may have a thousand ranks: after so many the rest is counted. */
#define SAME_MAX 8

/* --- how a process ended ---------------------------------------------------------------------- */

static void set_status(struct process_end *end, int status)
{
	end->status_known = true;
	end->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Fills p->end as far as it is known without the recording. False: worth asking again soon. */
static bool learn_end(struct judge *j, struct process *p, uint64_t now)
{
	int status;

	p->end.pid = (uint32_t)p->pid;
	p->end.ended_ns = p->ended_ns;
	p->end.exit = -1;
	if (p->replaced || p->alive) {
		set_status(&p->end, 0);		/* it went on */
		return true;
	}
	if (p->pid == j->child->pid) {
		if (j->child->ended)
			set_status(&p->end, j->child->status);
		return j->child->ended;
	}
	if (p->pidfd >= 0 && proc_pidfd_status(p->pidfd, &status)) {
		set_status(&p->end, status);
		return true;
	}
	return now - p->ended_ns > STATUS_WAIT_NS;
}

/* The recording's own word, where nobody else's is to be had. */
static void complete_end(struct process *p, const struct cw_header *h)
{
	p->end.ppid = h->ppid;
	if (!p->end.status_known && h->exit_known) {
		p->end.status_known = true;
		p->end.exit = (int)(h->exit_status & 0xff);
	}
	if (h->cmdline[0])
		p->command = xstrdup(h->cmdline);
	p->end.command = p->command;
}

/* --- what is printed -------------------------------------------------------------------------- */

static char *verdict_text(const struct verdict *v)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return xstrdup("{}");
	report_json(f, v, false);
	fclose(f);
	return text;
}

/* The verdict's JSON with the place of the recording, and what went wrong with it, beside it; one
 * line, owned by the caller. */
static char *json_of(const struct verdict *v, const char *recording, const char *warning)
{
	char *text = verdict_text(v), *more;
	json_t *o = json_loads(text, 0, NULL);

	if (!json_is_object(o)) {
		json_decref(o);
		return text;
	}
	json_object_set_new(o, "recording", json_text(recording));
	if (warning)
		json_object_set_new(o, "warning", json_text(warning));
	more = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!more)
		return text;
	free(text);
	return more;
}

/* Cause and line: two processes that agree in both need not be told twice. */
static char *place_of(const char *json)
{
	json_t *o = json_loads(json, 0, NULL);
	const json_t *where = json_object_get(o, "where");
	const char *cause = json_string_value(json_object_get(o, "cause"));
	const char *file = json_string_value(json_object_get(where, "file"));
	int line = (int)json_integer_value(json_object_get(where, "line"));
	char *place;

	if (file)
		place = xasprintf("%s at %s:%d", cause ? cause : "", file, line);
	else
		place = xasprintf("%s", cause ? cause : "");
	json_decref(o);
	return place;
}

static bool seen_before(struct judge *j, char *place)
{
	size_t i;

	for (i = 0; i < j->n_seen; i++) {
		if (strcmp(j->seen[i], place) == 0) {
			free(place);
			return true;
		}
	}
	j->seen = xgrow(j->seen, j->n_seen, &j->cap_seen, sizeof(*j->seen));
	j->seen[j->n_seen++] = place;	/* ownership moved */
	return false;
}

static void print_failure(struct judge *j, struct process *p, const char *json)
{
	struct text_style style = j->style;
	char *place = place_of(json), *said = xstrdup(place);

	if (!j->first_told)
		j->first_told = p->pid;
	style.recording = p->part ? j->store->dir : NULL;
	if (!seen_before(j, place))
		report_text(stderr, p->verdict, &style);
	else if (++j->n_same <= SAME_MAX)
		fprintf(stderr, "cuwhy: process %d failed in the same way: %s\n", (int)p->pid,
			said);
	fflush(stderr);
	free(said);
}

/* --- judging ---------------------------------------------------------------------------------- */

static void keep(struct judge *j, struct process *p, const void *bytes, size_t len)
{
	store_part(j->store, p, bytes, len);
	store_run(j->store, j->server, j->child, false);
}

static void tell_failure(struct judge *j, struct process *p)
{
	bool victim = victims_blame(j, p);
	char *json = json_of(p->verdict, p->part ? j->store->dir : NULL, NULL), *name;

	j->n_failed++;
	if (p->part) {
		name = xasprintf("%.*sjson", (int)(strlen(p->part) - 3), p->part);
		store_json(j->store, name, json);
		free(name);
	}
	if (!j->json && victim)
		victims_print(j, p);
	else if (!j->json)
		print_failure(j, p, json);
	free(json);
}

/* The GPU core dump that the process left in our folder, or NULL. The recording names it, and is not trusted. */
static const char *dump_path(const struct judge *j, const struct cw_header *h)
{
	const char *dir = j->server->dir;
	size_t n = dir ? strlen(dir) : 0;

	if (!n || strncmp(h->dump_path, dir, n) != 0 || !str_starts(h->dump_path + n, "/core-") ||
	    strchr(h->dump_path + n + 1, '/') || !fs_exists(h->dump_path))
		return NULL;
	return h->dump_path;
}

/* Only after a failure that hardware can be the reason of: the log is long. */
static const struct xid_log *kernel_log(struct judge *j, const struct trace *t)
{
	if (trace_header(t)->sim || !xid_watch_wanted(t))
		return NULL;
	j->store->xids = xid_watch_look(j->xids, KERNEL_LOG);
	return j->store->xids;
}

static uint64_t written_ns(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec : 0;
}

static void judge_process(struct judge *j, struct process *p)
{
	struct trace *t = NULL;
	struct dump *d = NULL;
	struct culprit *fault = NULL;
	const char *core = NULL;
	size_t len = 0;
	void *bytes;
	bool failed;

	events_finish(j->store, p);
	bytes = process_bytes(p, &len);
	events_name(p, bytes, len);
	process_drop_segments(p);
	p->judged = true;
	if (bytes)
		t = trace_from_bytes(bytes, len, NULL);		/* owns the bytes now */
	if (t) {
		complete_end(p, trace_header(t));
		core = dump_path(j, trace_header(t));
		p->end.xids = kernel_log(j, t);
	}
	if (core)
		p->end.fault_real_ns = written_ns(core);
	if (core && (d = dump_open(core, NULL)) != NULL)
		p->end.fault = fault = fault_of_dump(d, t);
	p->verdict = verdict_of_process(t, &p->end);
	judge_machine(j, p);
	str_copy(p->cause, sizeof(p->cause), verdict_cause(p->verdict));
	failed = strcmp(p->cause, "none") != 0;
	if (t && (failed || verdict_notes(p->verdict) > 0 || j->store->keep || victims_blame(j, p)))
		keep(j, p, bytes, len);
	if (core && p->part)
		store_dump(j->store, p, core);
	store_usage(j->store, p);
	store_ram(j->store, p);
	if (core)
		unlink(core);
	if (failed)
		tell_failure(j, p);
	p->end.fault = NULL;
	culprit_free(fault);
	dump_free(d);
	trace_free(t);
}

bool judge_step(struct judge *j, bool final)
{
	uint64_t now = proc_mono_ns();
	struct process *p;
	bool waiting = false;
	size_t i;

	for (i = 0; i < j->server->n_processes; i++) {
		p = j->server->process[i];
		if (p->judged || (!p->ended && !final))
			continue;
		p->alive = !p->ended;
		if (p->sample != SAMPLE_NONE && !final)
			waiting = true;		/* who held the GPU is part of the verdict */
		else if (learn_end(j, p, now) || final)
			judge_process(j, p);
		else
			waiting = true;
	}
	return waiting;
}

/* --- the end of the run ----------------------------------------------------------------------- */

/* The program itself has a verdict, too, when it never used CUDA: it carries its exit status. */
static struct verdict *program_verdict(struct judge *j)
{
	struct process_end end = {.pid = (uint32_t)j->child->pid, .exit = -1,
				  .command = j->store->argv[0]};
	size_t i;

	for (i = 0; i < j->server->n_processes; i++)
		if (j->server->process[i]->pid == j->child->pid)
			return NULL;
	set_status(&end, j->child->status);
	return verdict_of_process(NULL, &end);
}

static struct verdict *join(struct judge *j)
{
	size_t i, n = 0;
	struct verdict **list = xcalloc(j->server->n_processes + 1, sizeof(*list)), *all;

	for (i = 0; i < j->server->n_processes; i++) {
		list[n] = j->server->process[i]->verdict;
		n += list[n] != NULL;
		j->server->process[i]->verdict = NULL;	/* ownership moved */
	}
	list[n] = program_verdict(j);
	n += list[n] != NULL;
	all = verdict_join(list, n);
	free(list);
	return all;
}

/* What kept us from recording or from keeping the recording; NULL when nothing did. */
static const char *judge_trouble(struct judge *j)
{
	const struct err *e = j->unrecorded->code ? j->unrecorded : &j->store->failed;

	if (e->code == 0)
		return NULL;
	snprintf(j->trouble, sizeof(j->trouble), "%s: %s",
		 j->unrecorded->code ? "nothing was recorded" : "the recording could not be kept",
		 e->msg);
	return j->trouble;
}

static void tell_trouble(struct judge *j)
{
	const struct err *e = j->unrecorded->code ? j->unrecorded : &j->store->failed;
	const char *trouble = judge_trouble(j);

	if (!trouble)
		return;
	fprintf(stderr, "cuwhy: %s\n", trouble);
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
}

void judge_finish(struct judge *j)
{
	struct verdict *all;
	bool kept = j->n_failed || j->store->keep;
	const char *recording;
	char *json;

	victims_tell(j);
	all = join(j);
	if (kept)
		store_run(j->store, j->server, j->child, true);
	else
		store_discard(j->store);
	recording = j->store->made ? j->store->dir : NULL;
	if (kept) {
		json = json_of(all, recording, NULL);
		store_json(j->store, VERDICT_FILE, json);
		free(json);
	}
	store_prune(j->store);
	if (j->json) {
		json = json_of(all, recording, judge_trouble(j));
		fprintf(stderr, "%s\n", json);
		free(json);
	} else {
		if (j->n_same > SAME_MAX)
			fprintf(stderr, "cuwhy: %zu more processes failed in the same way\n",
				j->n_same - SAME_MAX);
		if (j->first_told && (pid_t)verdict_pid(all) != j->first_told)
			report_first(stderr, all);
		if (j->n_failed == 0 && verdict_notes(all) > 0)
			report_line(stderr, all, recording);
		tell_trouble(j);
	}
	verdict_free(all);
}

void judge_release(struct judge *j)
{
	while (j->n_seen)
		free(j->seen[--j->n_seen]);
	free(j->seen);
	judge_machine_release(j);
}
