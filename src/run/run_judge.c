/* SPDX-License-Identifier: Apache-2.0
 * Judges each process when it ends, and joins the verdicts at the end of the run.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"
#include "run/run_job.h"
#include "find/fault/culprit.h"
#include "find/fault/fault.h"
#include "find/failure/not_finite.h"
#include "read/recording/trace.h"
#include "show/page_source.h"

/* The status of a process that is not our child is known only after its own parent has waited for it. */
#define STEP_NS	       20000000u	/* recorders give up after 100 ms without an answer */
#define SOON_MS	       5
#define LIST_PAUSES    20	/* between two writings of run.json, in units of what one takes */
/* A process whose peers complain about it ends within this time: PyTorch's watchdog waits a minute before it aborts one that failed. */
#define PEER_ENDS_NS 180000000000u

static void end_set_status(struct process_end *end, int status)
{
	end->status_known = true;
	end->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Fills p->end as far as it is known without the recording. False: worth another try soon. */
static bool learn_end(struct judge *j, struct process *p, uint64_t now)
{
	int status;

	p->end.pid = (uint32_t)p->pid;
	p->end.ended_ns = p->ended_ns;
	p->end.alive_ns = p->alive_ns;
	p->end.exit = -1;
	if (p->replaced || p->alive) {
		end_set_status(&p->end, 0);		/* it continued */
		return true;
	}
	if (p->pid == j->child->pid) {
		if (j->child->ended)
			end_set_status(&p->end, j->child->status);
		return j->child->ended;
	}
	if (process_status(p, &status)) {
		end_set_status(&p->end, status);
		return true;
	}
	return now - p->ended_ns > STATUS_WAIT_NS;
}

/* What the recording says, if there is no better source. */
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

/* run.json lists all processes, so that the parts are a recording even if we are killed. Of thousands that end one by one, not
 * each makes it anew: that would take most of the time. False: it will be due in a moment. */
static bool list_parts(struct judge *j)
{
	uint64_t now = proc_mono_ns();

	if (!j->list_due)
		return true;
	if (now < j->list_from_ns)
		return false;
	store_run(j->store, j->server, j->child, false);
	j->list_due = false;
	j->list_from_ns = proc_mono_ns() + LIST_PAUSES * (proc_mono_ns() - now);
	return true;
}

static void judge_keep(struct judge *j, struct process *p, void *bytes, size_t len)
{
	store_part(j->store, p, bytes, len);
	j->list_due = true;
	list_parts(j);
}

/* The GPU core dump that the process left in our folder, or NULL. The recording gives the name but is not trusted. */
static const char *dump_path(const struct judge *j, const struct cw_header *h)
{
	const char *dir = j->server->dir;
	size_t n = dir ? strlen(dir) : 0;

	if (!n || strncmp(h->dump_path, dir, n) != 0 || !str_starts(h->dump_path + n, "/core-") ||
	    strchr(h->dump_path + n + 1, '/') || !fs_exists(h->dump_path))
		return NULL;
	return h->dump_path;
}

/* Only after a failure that hardware can cause, or what may be the kernel's own doing: the log is long. */
static const struct xid_log *kernel_log(struct judge *j, const struct process *p, const struct trace *t)
{
	if (p->end.signal != SIGKILL && !xid_watch_wanted(t))
		return NULL;
	j->store->xids = xid_watch_look(j->xids, KERNEL_LOG);
	return j->store->xids;
}

/* The recording as a trace; NULL if there is none. `len` is its size in bytes. */
static struct trace *read_trace(struct judge *j, struct process *p, void **bytes, size_t *len)
{
	events_finish(j->store, p);
	*bytes = process_bytes(p, len);
	events_name(p, *bytes, *len);
	versions_name(*bytes, *len);
	process_drop_files(p);
	return *bytes ? trace_from_bytes(*bytes, *len, NULL) : NULL;	/* owns the bytes now */
}

static void store_beside_part(struct judge *j, struct process *p, const char *core)
{
	if (core && p->part)
		store_dump(j->store, p, core);
	store_usage(j->store, p);
	store_ram(j->store, p);
	if (core)
		unlink(core);
}

/* Failures that a process survived, until the process `p` ended with them; or those of `p`, if its parent has ended. */
static void judge_promote(struct judge *j, const struct process *p)
{
	size_t n = j->server->n_processes;
	struct verdict **list = xcalloc(n + 1, sizeof(*list));
	long at;

	for (size_t i = 0; i < n; i++)
		list[i] = j->server->process[i]->verdict;
	while ((at = verdict_promote(list, n)) >= 0) {
		struct process *survivor = j->server->process[at];

		survivor->verdict = list[at];
		if (survivor == p)
			continue;	/* it is about to be reported */
		str_copy(survivor->cause, sizeof(survivor->cause), verdict_cause(survivor->verdict));
		judge_machine(j, survivor);
		judge_tell(j, survivor);
	}
	free(list);
}

/* Ranks that lost a peer often end before it does. What they say is not reported before the peer had the time to end, too. */
static bool may_be_victim(struct judge *j, struct process *p, uint64_t now)
{
	if (!victim_speaks(p->verdict) || victims_blame(j, p) || now > p->ended_ns + PEER_ENDS_NS)
		return false;
	for (size_t i = 0; i < j->server->n_processes; i++) {
		const struct process *q = j->server->process[i];

		if (!q->judged && !q->replaced && (uint32_t)q->pid != p->end.ppid)
			return true;
	}
	return false;
}

static void numbers_note(struct judge *j, struct trace *t)
{
	struct pool pool = {0};
	struct not_finite x;

	if (!j->not_finite && not_finite_first(t, &x, &pool)) {
		j->not_finite = xstrdup(not_finite_words(t, &x, &pool));
		str_make_line(j->not_finite);
	}
	pool_release(&pool);
}

static void judge_process(struct judge *j, struct process *p)
{
	size_t len = 0;
	void *bytes;
	struct trace *t = read_trace(j, p, &bytes, &len);
	struct dump *d = NULL;
	struct culprit *fault = NULL;
	const char *core = NULL;
	bool failed;

	p->judged = true;
	keeper_works(j->self);
	if (t) {
		complete_end(p, trace_header(t));
		dry_run_note(&j->dry, t);
		guard_note(&j->guard, t);
		numbers_note(j, t);
		if (trace_header(t)->off_because && !j->off_because) {
			j->off_because = trace_header(t)->off_because;
			j->off_pid = (uint32_t)p->pid;
		}
		core = dump_path(j, trace_header(t));
		p->end.xids = kernel_log(j, p, t);
	}
	if (core)
		p->end.fault_real_ns = fs_written_ns(core);
	if (core && (d = dump_open(core, NULL)) != NULL) {
		p->end.fault = fault = culprit_of_process(d, t);
		p->end.fault_mark = dump_mark(d);
	}
	keeper_works(j->self);
	p->verdict = verdict_of_process(t, &p->end);
	judge_promote(j, p);
	judge_machine(j, p);
	keeper_works(j->self);
	str_copy(p->cause, sizeof(p->cause), verdict_cause(p->verdict));
	failed = strcmp(p->cause, "none") != 0;
	if (t && (failed || verdict_notes(p->verdict) > 0 || j->store->keep || victims_blame(j, p)))
		judge_keep(j, p, bytes, len);
	store_beside_part(j, p, core);
	if (p->part) {
		page_note_sources(p->verdict, trace_sources(t));
		store_sources(j->store, p, trace_sources(t));
	}
	if (failed && may_be_victim(j, p, proc_mono_ns()))
		p->put_off = true;
	else if (failed)
		judge_tell(j, p);
	p->end.fault = NULL;
	if (t)
		run_job_note(j->job, p, t);
	culprit_free(fault);
	dump_free(d);
	trace_free(t);
}

/* True: some are still put off. */
static bool tell_put_off(struct judge *j, uint64_t now, bool final)
{
	bool waiting = false;

	for (size_t i = 0; i < j->server->n_processes; i++) {
		struct process *p = j->server->process[i];

		if (!p->put_off)
			continue;
		p->put_off = !final && may_be_victim(j, p, now);
		waiting |= p->put_off;
		if (!p->put_off)
			judge_tell(j, p);
	}
	return waiting;
}

int judge_step(struct judge *j, bool final)
{
	uint64_t now = proc_mono_ns();
	struct process *p;
	bool waiting = false;
	size_t i;

	for (i = 0; i < j->server->n_processes; i++) {
		p = j->server->process[i];
		if (p->judged || (!p->complete && !final))
			continue;
		p->alive = !p->ended;
		if (p->sample != SAMPLE_NONE && !final)
			waiting = true;		/* who held the GPU is part of the verdict */
		else if (learn_end(j, p, now) || final)
			judge_process(j, p);
		else
			waiting = true;
		if (!final && proc_mono_ns() - now > STEP_NS)
			return 0;
	}
	waiting |= tell_put_off(j, now, final);
	return (!list_parts(j) && !j->child->ended) || waiting ? SOON_MS : -1;
}

static bool program_recorded(const struct judge *j)
{
	size_t i;

	for (i = 0; i < j->server->n_processes; i++)
		if (j->server->process[i]->pid == j->child->pid)
			return true;
	return false;
}

static struct process_end program_end(const struct judge *j)
{
	struct process_end end = {.pid = (uint32_t)j->child->pid, .exit = -1, .command = j->store->argv[0]};

	end_set_status(&end, j->child->status);
	return end;
}

/* The program itself has a verdict even if it never used CUDA: it carries the exit status. */
static struct verdict *program_verdict(struct judge *j)
{
	struct process_end end = program_end(j);

	return program_recorded(j) ? NULL : verdict_of_process(NULL, &end);
}

/* The first reason is enough. */
static bool something_missing(struct judge *j)
{
	char *text = j->missing;
	size_t size = sizeof(j->missing);

	if (j->unrecorded->code)
		snprintf(text, size, "nothing was recorded: %s", j->unrecorded->msg);
	else if (notices_say(j->notices, text, size))
		return true;
	else if (j->off_because)
		snprintf(text, size, "the recorder of process %u switched itself off: %s", j->off_pid,
			 reason_text(j->off_because));
	else if (j->child->uid != getuid() && !program_recorded(j))
		snprintf(text, size, "the program ran as another user (uid %u), who has no access to cuwhy's socket",
			 (unsigned)j->child->uid);
	else if (j->server->cut_off)
		snprintf(text, size, "cuwhy may not have enough files open (ulimit -n) for all processes that used CUDA");
	else if (j->server->lost_segments)
		snprintf(text, size, "part of the recording was lost (%zu of its files)", j->server->lost_segments);
	return *text != '\0';
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
	if (j->child->ended && j->child->status == 0)
		verdict_ended_well(all);
	free(list);
	/* A program that died is not known to be free of CUDA failures if a process was not recorded. */
	if (something_missing(j) && j->child->status != 0) {
		struct process_end end = program_end(j);

		j->unknown = !verdict_failed(all);
		j->store->unrecorded = j->missing;
		all = verdict_without(all, &end, j->missing);
	}
	return all;
}

void judge_finish(struct judge *j)
{
	struct verdict *all;
	bool kept = j->n_failed || j->store->keep;

	victims_tell(j);
	run_job_end(j->job, j->server, j->child);
	all = join(j);
	if (kept)
		store_run(j->store, j->server, j->child, true);
	else
		store_discard(j->store);
	judge_tell_end(j, all, kept);
	verdict_free(all);
}

/* In place of all that the keeper would have said. What it had stored before stays, but it did not finish. */
void judge_give_up(struct judge *j, const char *why)
{
	struct process_end end = program_end(j);
	struct verdict *v = verdict_unrecorded(&end, why);

	str_copy(j->missing, sizeof(j->missing), why);
	j->unknown = true;
	j->store->unrecorded = j->missing;
	if (j->store->out && !store_has_run(j->store))
		store_run(j->store, j->server, j->child, true);
	judge_tell_end(j, v, j->store->out != NULL);
	verdict_free(v);
}

void judge_release(struct judge *j)
{
	while (j->n_seen)
		free(j->seen[--j->n_seen]);
	free(j->seen);
	free(j->not_finite);
	judge_machine_release(j);
	dry_reads_release(&j->dry);
}
