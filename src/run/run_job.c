/* SPDX-License-Identifier: Apache-2.0
 * Tells a job folder about the processes of this run (see run_job.h).
 */
#include "run/run_job.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"
#include "run/run_job_writer.h"
#include "read/recording/trace.h"
#include "read/rank/folder.h"
#include "read/rank/identity.h"
#include "base/json.h"
#include "show/report_json.h"

#define SOON_NS	     5000000000ull	/* after its start */
#define EVERY_NS     60000000000ull	/* between two files of a process that runs */
#define FINISH_NS    15000000000ull	/* for the last files, and for the other nodes */
#define LOOK_MS	     20
#define FAILURE_NS   1000000000ull	/* how often the failures of processes that run are counted */
#define NO_ROW	     1000

struct entry {
	pid_t pid;
	const struct process *process;	/* NULL = it is not recorded, or not yet */
	struct pool pool, live;	/* live: what was read while it ran */
	struct job_rank r;
	int row;		/* of identity.def: which launcher gave the rank */
	bool second;		/* another process of a rank that has one: told of only if it fails */
	char name[256];		/* of its file; "" = none yet */
	bool ended_told;
	uint64_t told_ns, next_ns;
	uint64_t failures;	/* that it had when last looked at, while it ran */
};

struct run_job {
	char *dir, *command;
	struct job_writer writer;
	struct entry **list;
	size_t n, room, seen;	/* seen: of the server's processes */
	char node[256], boot[64];
	uint64_t next_ns;
};

static const char *own_variable(const char *name, const void *env)
{
	(void)env;
	return getenv(name);
}

static const char *variable_of(const char *name, const void *env)
{
	const struct buf *b = env;
	size_t n = strlen(name);

	for (size_t at = 0; at < b->len; at += strlen(b->data + at) + 1)
		if (!strncmp(b->data + at, name, n) && b->data[at + n] == '=')
			return b->data + at + n + 1;
	return NULL;
}

static void identify(struct entry *e)
{
	char path[64];
	struct buf b;
	int fd, row = NO_ROW;

	job_identify(&e->r, own_variable, NULL, &e->pool, &row);
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)e->pid);
	buf_init(&b, 4u << 20);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		buf_read_fd(&b, fd);
		close(fd);
	}
	if (b.len)
		job_identify(&e->r, variable_of, &b, &e->pool, &row);
	buf_release(&b);
	e->row = row;
}

struct run_job *run_job_new(const char *dir, char **argv)
{
	struct run_job *j;
	struct buf b;

	if (!dir || !*dir)
		return NULL;
	j = xcalloc(1, sizeof(*j));
	j->writer.to = -1;
	if (dir[0] == '/') {
		j->dir = xstrdup(dir);
	} else {
		char *here = getcwd(NULL, 0);

		j->dir = xasprintf("%s/%s", here ? here : ".", dir);
		free(here);
	}
	buf_init(&b, JOB_TEXT_MAX);
	for (size_t i = 0; argv[i]; i++)
		buf_printf(&b, "%s%s", i ? " " : "", argv[i]);
	j->command = buf_take(&b);
	if (gethostname(j->node, sizeof(j->node) - 1) != 0)
		str_copy(j->node, sizeof(j->node), "node");
	job_boot(j->boot, sizeof(j->boot));
	return j;
}

void run_job_free(struct run_job *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n; i++) {
		pool_release(&j->list[i]->pool);
		pool_release(&j->list[i]->live);
		free(j->list[i]);
	}
	free(j->list);
	free(j->command);
	free(j->dir);
	free(j);
}

void run_job_start(struct run_job *j, const struct server *s)
{
	if (j)
		job_writer_start(&j->writer, j->dir, s);
}

static struct entry *entry_of(const struct run_job *j, pid_t pid)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->list[i]->pid == pid)
			return j->list[i];
	return NULL;
}

static struct entry *entry_new(struct run_job *j, pid_t pid, uint64_t started_ns)
{
	struct entry *e = xcalloc(1, sizeof(*e));

	e->pid = pid;
	job_rank_init(&e->r);
	e->r.node = j->node;
	identify(e);
	e->r.boot = j->boot[0] ? j->boot : e->r.node;
	e->r.node_known = true;
	e->r.pid = (uint32_t)pid;
	e->r.command = j->command;
	e->r.started_ns = started_ns;
	if (!e->r.job)
		e->r.job = JOB_UNNAMED;
	e->next_ns = proc_mono_ns() + SOON_NS;
	j->list = xgrow(j->list, j->n, &j->room, sizeof(*j->list));
	return j->list[j->n++] = e;
}

static uint64_t real_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void tell(struct run_job *j, struct entry *e)
{
	char old[sizeof(e->name)];
	json_t *o;
	char *text;

	str_copy(old, sizeof(old), e->name);
	job_rank_name(e->name, sizeof(e->name), &e->r);
	e->told_ns = e->r.written_ns = proc_mono_ns();
	e->r.real_ns = real_now();
	o = job_rank_json(&e->r);
	text = json_string_of(o, JSON_COMPACT);
	json_decref(o);
	if (text)
		job_writer_send(&j->writer, &e->r, e->name, old, text);
	free(text);
}

static const char *short_text(struct entry *e, const char *text)
{
	char *copy;

	if (!text || !*text)
		return NULL;
	copy = pool_copy(&e->pool, text, strnlen(text, JOB_TEXT_MAX));
	str_make_line(copy);
	str_make_utf8(copy);
	return copy;
}

static const char *line_text(struct entry *e, const struct line *l)
{
	return l->file ? pool_printf(&e->pool, "%s:%u", l->shown ? l->shown : l->file, l->number) : NULL;
}

/* The verdict in full, beside the file of the rank. */
static void tell_verdict(struct run_job *j, struct entry *e, const struct verdict *v)
{
	json_t *o = verdict_json(v);
	char name[256], *text;

	private_hide_in(o, false);
	text = json_string_of(o, JSON_COMPACT);
	json_decref(o);
	job_rank_name(name, sizeof(name), &e->r);
	e->r.verdict = pool_printf(&e->pool, "%.*s.verdict.json", (int)(strlen(name) - strlen(".json")), name);
	if (text)
		job_writer_send(&j->writer, &e->r, e->r.verdict, NULL, text);
	free(text);
}

/* Frameworks catch a worker's exception and end the worker later. An error that lost the context was not survived by that; NULL = none. */
static const struct verdict *last_straw(const struct verdict *v)
{
	bool well = v->exit_known && v->exit == 0 && !v->signal;

	for (const struct verdict *n = v->notes; n && !well; n = n->next)
		if (n->own && (n->last || fact_true(&n->c, FACT_error_sticky)))
			return n;
	return NULL;
}

static void take_failure(struct run_job *j, struct entry *e, const struct verdict *v)
{
	struct job_rank *r = &e->r;

	r->cause = AT(v->cause->id);
	r->sure = certainty_word(v->sure);
	r->title = short_text(e, verdict_title(v));
	r->because = short_text(e, v->because);
	/* a rank that may be right, or that waits for one that ended, tells of its peers */
	r->own = v->own && !fact_true(&v->c, FACT_collective_either) && !fact_true(&v->c, FACT_collective_waits);
	r->failed_ns = v->time_ns;
	r->where = line_text(e, &v->c.line[LINE_where]);
	tell_verdict(j, e, v);
}

static void take_verdict(struct run_job *j, struct entry *e, const struct verdict *v)
{
	struct job_rank *r = &e->r;

	/* whatever was seen while it ran: its end says more */
	r->cause = r->sure = r->title = r->because = r->where = NULL;
	r->own = false;
	r->failed_ns = 0;
	r->ppid = v->ppid;
	r->ended_ns = v->ended_ns;
	r->alive_ns = v->alive_ns;
	r->exit_known = v->exit_known;
	r->exit = v->exit;
	r->signal = v->signal;
	r->exception = short_text(e, v->end_type);
	r->message = short_text(e, v->end_text);
	r->of_peers = victim_words(v);
	r->victim_of = v->victim_of;
	if (v->rank != CW_UNKNOWN)
		r->rank = v->rank;
	if (!verdict_failed(v))
		v = last_straw(v);
	if (v)
		take_failure(j, e, v);
}

static void take_status(struct entry *e, int status)
{
	e->r.exit_known = true;
	e->r.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	e->r.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* A process whose context is lost has failed, whatever its framework makes of the exception; its end may come much later, or together
 * with ours. */
static void look_while_it_runs(struct run_job *j, struct entry *e)
{
	const struct process *p = e->process;
	struct process_end end = {.pid = (uint32_t)e->pid, .exit = -1};
	uint64_t failures = 0;
	const struct verdict *lost;
	struct verdict *v;
	struct trace *t;
	size_t len = 0;
	void *bytes;

	if (!p || p->ended || p->judged ||
	    !process_read(p, offsetof(struct cw_header, n_failures), &failures, sizeof(failures)) ||
	    failures == e->failures)
		return;
	e->failures = failures;
	bytes = process_bytes(p, &len);
	t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;
	if (!t)
		return;
	v = verdict_of_process(t, &end);
	lost = verdict_failed(v) && v->own && fact_true(&v->c, FACT_error_sticky) ? v : last_straw(v);
	if (lost && !e->r.own) {
		job_comms_of(&e->r, t, &e->pool);
		take_failure(j, e, lost);
		tell(j, e);
	}
	verdict_free(v);
	trace_free(t);
}

static bool has_comms(const struct process *p)
{
	struct cw_header h;

	if (!process_header(p, &h))
		return false;
	for (uint32_t i = 0; i < h.n_chunks && i < CW_MAX_CHUNKS; i++)
		if (h.chunk[i].kind == CW_CHUNK_COMMS)
			return true;
	return false;
}

/* A rank that hangs, and one whose machine dies, is found by the collectives that it had come to. */
static void tell_running(struct run_job *j, struct entry *e)
{
	const struct process *p = e->process;
	size_t len = 0;
	void *bytes = p && !p->ended && !p->judged && has_comms(p) ? process_bytes(p, &len) : NULL;
	struct trace *t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;

	if (t) {
		e->r.n_comms = 0;
		e->r.doing = NULL;
		pool_release(&e->live);
		job_comms_of(&e->r, t, &e->live);
		trace_free(t);
	}
	tell(j, e);
}

/* Without a name and a rank, the program may be a launcher that names the job for its ranks only: they tell, or its end does. */
static bool is_known(const struct entry *e)
{
	return e->r.rank != JOB_UNKNOWN || strcmp(e->r.job, JOB_UNNAMED) != 0;
}

/* The program only starts ranks if one of its processes was given its rank by a launcher further inside. */
static void notice_launcher(struct run_job *j, const struct child *c, const struct entry *of)
{
	struct entry *program = entry_of(j, c->pid);

	if (!program || program == of || program->r.launcher || of->row >= program->row)
		return;
	program->r.launcher = true;
	if (!strcmp(program->r.job, JOB_UNNAMED))
		program->r.job = of->r.job;
	program->r.rank = JOB_UNKNOWN;
	tell(j, program);
}

static bool rank_is_taken(const struct run_job *j, const struct entry *e)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->list[i] != e && !j->list[i]->second && !j->list[i]->r.launcher && j->list[i]->r.rank == e->r.rank &&
		    e->r.rank != JOB_UNKNOWN && j->list[i]->r.attempt == e->r.attempt && !j->list[i]->ended_told)
			return true;
	return false;
}

static void add_process(struct run_job *j, const struct process *p, const struct child *c)
{
	struct entry *e = entry_of(j, p->pid);

	if (!e) {
		e = entry_new(j, p->pid, p->start_ns);
		notice_launcher(j, c, e);
		e->second = rank_is_taken(j, e);
		if (!e->second)
			tell(j, e);
	}
	e->process = p;		/* of several images of one process, the newest */
}

static void add_new(struct run_job *j, const struct server *s, const struct child *c)
{
	if (c->pid && !entry_of(j, c->pid)) {
		struct entry *program = entry_new(j, c->pid, proc_mono_ns());

		if (is_known(program))
			tell(j, program);
	}
	for (; c->pid && j->seen < s->n_processes; j->seen++)
		add_process(j, s->process[j->seen], c);
}

static void tell_ended(struct run_job *j, struct entry *e)
{
	const struct process *p = e->process;

	if (!p || !p->judged || p->put_off || p->replaced || !p->verdict)
		return;
	e->r.state = p->alive ? JOB_LEFT : JOB_ENDED;
	take_verdict(j, e, p->verdict);
	e->ended_told = true;
	if (e->second && !verdict_failed(p->verdict))
		return;
	if (e->second)
		e->r.rank = JOB_UNKNOWN;	/* the rank's own process has its file */
	tell(j, e);
}

/* A program that is not recorded has no recorder that notes its end, and may have ended long before all that it started. */
static void look_at_program(const struct run_job *j, const struct child *c)
{
	struct entry *e = c->pid ? entry_of(j, c->pid) : NULL;
	uint64_t before = proc_mono_ns();

	if (!e || e->process || e->r.ended_ns)
		return;
	if (c->ended || (c->pidfd >= 0 && proc_pidfd_ended(c->pidfd)))
		e->r.ended_ns = proc_mono_ns();
	else if (c->pidfd >= 0)
		e->r.alive_ns = before;
}

int run_job_wait_ms(const struct run_job *j)
{
	uint64_t now = proc_mono_ns();

	if (!j || !j->next_ns)
		return -1;
	return j->next_ns > now ? (int)((j->next_ns - now) / 1000000) + 1 : 0;
}

void run_job_step(struct run_job *j, const struct server *s, const struct child *c)
{
	uint64_t now = proc_mono_ns();

	if (!j)
		return;
	add_new(j, s, c);
	look_at_program(j, c);
	j->next_ns = now + FAILURE_NS;
	for (size_t i = 0; i < j->n; i++) {
		struct entry *e = j->list[i];

		if (e->ended_told)
			continue;
		tell_ended(j, e);
		if (e->ended_told || e->second)
			continue;
		look_while_it_runs(j, e);
		if (!e->name[0])
			continue;
		if (now >= e->next_ns) {
			tell_running(j, e);
			e->next_ns = now + EVERY_NS;
		}
		if (e->next_ns < j->next_ns)
			j->next_ns = e->next_ns;
	}
}

void run_job_note(struct run_job *j, const struct process *p, struct trace *t)
{
	struct entry *e = j ? entry_of(j, p->pid) : NULL;

	if (e && !p->replaced)
		job_comms_of(&e->r, t, &e->pool);
}

/* Also what was put off, and victims of processes that ended later. */
void run_job_end(struct run_job *j, const struct server *s, const struct child *c)
{
	if (!j)
		return;
	add_new(j, s, c);
	for (size_t i = 0; i < j->n; i++) {
		struct entry *e = j->list[i];
		const struct process *p = e->process;

		if (p && p->verdict && (!e->ended_told || p->verdict->victim_of != e->r.victim_of)) {
			tell_ended(j, e);
		} else if (!p && e->pid == c->pid && c->ended) {
			look_at_program(j, c);
			e->r.state = JOB_ENDED;
			take_status(e, c->status);
			e->ended_told = true;
			tell(j, e);
		}
	}
}

/* Did rank 0 run here, and does it know of others? */
static bool is_node_of_rank_0(const struct run_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->list[i]->r.rank == 0 && !j->list[i]->r.launcher)
			return true;
	return false;
}

static bool any_failed(const struct run_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->list[i]->r.cause || j->list[i]->r.exit > 0 || j->list[i]->r.signal)
			return true;
	return false;
}

static const char *job_id(const struct run_job *j)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->list[i]->r.rank == 0)
			return j->list[i]->r.job;
	return j->n ? j->list[0]->r.job : NULL;
}

void run_job_finish(struct run_job *j, const struct keeper *self, bool print, bool color, int width)
{
	struct job_farewell f = {0};
	uint64_t until = proc_mono_ns() + FINISH_NS;

	if (!j)
		return;
	f.print = print && is_node_of_rank_0(j);
	f.wait = f.print && any_failed(j);
	f.job = job_id(j);
	f.style = (struct text_style){.color = color, .width = width};
	job_writer_close(&j->writer, &f);
	while (!job_writer_gone(&j->writer) && proc_mono_ns() < until) {
		keeper_rests(self);
		poll(NULL, 0, LOOK_MS);
	}
	keeper_works(self);
	if (!job_writer_gone(&j->writer)) {
		job_writer_kill(&j->writer);
		fprintf(stderr, "cuwhy: the job folder '%s' does not answer: what this rank wrote there may be lost\n",
			j->dir);
	}
}
