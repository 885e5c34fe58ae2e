/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy run`: runs an unmodified program; if CUDA fails in it, says why.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/proc.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "run/run.h"
#include "run/run_job.h"

#define STRAGGLERS_NS	200000000u	/* grace for recorded processes that die with the program */
#define SHORT_WAIT_MS	5
#define LOOK_MS		1000	/* how often the supervisor looks at the keeper; signals and ends come at once */
#define HANG_LOOK_MS	50	/* with --hang-after, where the keeper may ask it to end the program */

static struct {
	bool json, verbose, keep, force, no_core_dump, dump_memory, no_values, hang_go_on, memory_trace, guards, help;
	const char *out, *job, *gpu, *writes, *keep_writes, *color, *hang_after, *hang_load, *guard;
} given;

static const struct opt_usage usage = {
	"run", "[options] PROGRAM [argument ...]",
	"Runs a program and everything it starts. If CUDA fails, says why, on stderr.",
	.notes = "Recordings of failures go to $CUWHY_DIR, else $XDG_STATE_HOME/cuwhy, else\n"
		 "~/.local/state/cuwhy; the newest ten are kept.\n"
		 "TIME is 90, 60s, 5m or 1h. The dump ends the running kernel; with --hang-go-on the program\n"
		 "then sees error 719. Calls that load code also wait for kernels, but may be compiling: they\n"
		 "count only after --hang-load more, and only if there is launched work that nothing waited for.\n"
		 "LIST of --guard: before (the hole is before the allocation, not behind it), values (find reads of\n"
		 "memory that was never written), align=256 (results as without), only=FILE:A-B, sample=1/8, budget=16T\n"
		 "(addresses, until they are used again). docs/guard.md explains it.\n",
	.exits = "Ends as the program did, by the same signal if one ended it. If it could not be started:\n"
		 "127 not found, 126 not executable, 125 cuwhy itself failed; 2 wrong usage.\n",
	.examples = "  cuwhy run python train.py              run it; if CUDA fails, say why\n"
		    "  cuwhy run --out out torchrun ...       record all ranks into ./out\n"
		    "  srun cuwhy run --job /shared/why python train.py   on every node; then cuwhy explain /shared/why\n"
		    "  cuwhy run --hang-after 5m python x.py  if a kernel hangs, say which one and where\n"
		    "  cuwhy run --guard python train.py      also find silent overruns and uses after free\n",
};

static const struct opt options[] = {
	{"json", 0, NULL, "print the verdict as one line of JSON on stderr", &given.json, NULL},
	{"verbose", 'v', NULL, "print everything that is known about a failure", &given.verbose, NULL},
	{"keep", 'k', NULL, "keep the recording even if nothing failed", &given.keep, NULL},
	{"out", 'o', "DIR", "put the recording and verdict.json into DIR", NULL, &given.out},
	{"job", 0, "DIR", "also write to DIR, shared by all nodes of a job (default: $CUWHY_JOB)", NULL,
	 &given.job},
	{"force", 'f', NULL, "let --out replace an older recording", &given.force, NULL},
	{"gpu", 0, "sim[:MODEL]", "use a simulated GPU", NULL, &given.gpu},
	{"writes", 0, "HOW", "with --gpu sim: discard what it writes (default), or real: it changes files", NULL,
	 &given.writes},
	{"keep-writes", 0, "DIR", "with --gpu sim: put what it writes into DIR", NULL, &given.keep_writes},
	{"no-core-dump", 0, NULL, "do not take GPU core dumps", &given.no_core_dump, NULL},
	{"dump-memory", 0, NULL, "GPU core dumps contain its memory: the verdict has values", &given.dump_memory, NULL},
	{"no-values", 0, NULL, "do not keep the contents of small copies to the GPU", &given.no_values, NULL},
	{"hang-after", 0, "TIME", "if it waits this long for the GPU: dump it, end the program", NULL, &given.hang_after},
	{"hang-load", 0, "TIME", "extra time for calls that load code (60s)", NULL, &given.hang_load},
	{"hang-go-on", 0, NULL, "after that dump, do not end the program", &given.hang_go_on, NULL},
	{"guard", 0, "[=LIST]", "every allocation in pages of its own: overruns fault", &given.guards, &given.guard},
	{"memory-trace", 0, NULL, "also keep every allocator event (implies --keep)", &given.memory_trace, NULL},
	{"color", 0, "WHEN", "auto, always or never", NULL, &given.color},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
	{"color", COLOR_WORDS},
	{"writes", "discard real"},
#define SIM_MODEL(id, ...) " sim:" #id
	{"gpu", "sim"
#include "sim/cuda/sim_models.def"
	},
#undef SIM_MODEL
	{0},
};

const struct opt_table run_table = {&usage, options, words, OPERAND_PROGRAM};

struct run {
	struct server server;
	struct child child;
	struct store store;
	struct judge judge;
	struct xid_watch xids;
	struct hang hang;
	struct sampler sampler;
	struct keeper keeper;
	struct run_writes writes;
	struct run_job *job;	/* NULL: it tells no job folder */
	char *sim;		/* the simulated GPU, as it is specified to the program; NULL: a real one */
	struct err unrecorded;	/* code != 0: why nothing can be recorded */
};

/* False: the supervisor was killed, or there is no program. */
static bool hear_news(struct run *r, const struct keeper *self)
{
	struct child *c = &r->child;
	struct keeper_news news;
	bool gone = false;

	while (!c->ended && keeper_hear(self, &news, &gone)) {
		if (!c->pid) {
			c->pid = news.pid;
			c->pidfd = proc_pidfd(c->pid);
			if (r->store.keep)
				store_run(&r->store, &r->server, c, false);	/* also if we are killed */
		}
		c->ended = news.ended;
		c->status = news.status;
		c->uid = news.uid;
	}
	return !gone;
}

/* Waits for the next event and handles it. `wait_ms` < 0: no time limit. False: the supervisor was killed. */
static bool run_step(struct run *r, const struct keeper *self, int wait_ms)
{
	uint64_t now = proc_mono_ns();
	struct pollfd *p = xcalloc(2 + server_fds(&r->server), sizeof(*p));
	int look_ms = hang_wait_ms(&r->hang, &r->server), move_ms = events_wait_ms(&r->store, &r->server);
	int job_ms = run_job_wait_ms(r->job), size_ms = run_writes_wait_ms(&r->writes);
	bool alone;
	size_t n;

	p[0] = (struct pollfd){.fd = r->child.ended ? -1 : self->tell, .events = POLLIN};
	n = 1 + server_poll(&r->server, p + 1, now);
	if (r->server.paused_until_ns > now && (wait_ms < 0 || wait_ms > SHORT_WAIT_MS))
		wait_ms = SHORT_WAIT_MS;
	if (look_ms >= 0 && (wait_ms < 0 || wait_ms > look_ms))
		wait_ms = look_ms;
	if (job_ms >= 0 && (wait_ms < 0 || wait_ms > job_ms))
		wait_ms = job_ms;
	if (move_ms >= 0 && (wait_ms < 0 || wait_ms > move_ms))
		wait_ms = move_ms;
	if (size_ms >= 0 && (wait_ms < 0 || wait_ms > size_ms))
		wait_ms = size_ms;
	n += sampler_poll(&r->sampler, p + n, &wait_ms);
	keeper_rests(self);
	poll(p, n, wait_ms);
	keeper_works(self);
	free(p);
	alone = !hear_news(r, self);
	server_step(&r->server, proc_mono_ns());
	holders_step(&r->server);
	sampler_step(&r->sampler, &r->server);
	hang_step(&r->hang, &r->server, &r->child, self);
	events_step(&r->store, &r->server);
	run_job_step(r->job, &r->server, &r->child);
	run_writes_step(&r->writes);
	return !alone;
}

static bool all_ended(const struct server *s)
{
	size_t i;

	for (i = 0; i < s->n_processes; i++)
		if (!s->process[i]->ended)
			return false;
	return true;
}

/* Of many that ended at once, some are received only when others have been judged: as long as that goes on, and no longer than for those
 * that can be waiting by now. */
static bool more_come(struct run *r, size_t at_end, size_t *done)
{
	size_t now = r->server.n_segments;
	bool goes_on;

	for (size_t i = 0; i < r->server.n_processes; i++)
		now += r->server.process[i]->judged;
	goes_on = now > *done;
	*done = now;
	return goes_on && r->server.n_processes < at_end + 2 * QUEUE_MAX && server_behind(&r->server);
}

static bool follow_program(struct run *r, const struct keeper *self)
{
	uint64_t until;
	size_t at_end, done = 0;
	int wait_ms = -1;

	while (!r->child.ended || hang_is_ending(&r->hang, &r->server)) {
		if (!run_step(r, self, wait_ms))
			return false;
		wait_ms = judge_step(&r->judge, false);
	}
	until = proc_mono_ns() + STRAGGLERS_NS;
	at_end = r->server.n_processes;
	do {
		run_step(r, self, 0);
		wait_ms = judge_step(&r->judge, false);
		if (wait_ms < 0 && all_ended(&r->server) && !server_behind(&r->server))
			break;
		run_step(r, self, wait_ms < 0 ? SHORT_WAIT_MS : wait_ms);
		if (more_come(r, at_end, &done))
			until = proc_mono_ns() + STRAGGLERS_NS;
	} while (proc_mono_ns() < until);
	r->server.cut_off = server_behind(&r->server);
	while (sampler_pending(&r->server))	/* the probe has its own time limit */
		run_step(r, self, SHORT_WAIT_MS);
	judge_step(&r->judge, true);
	return true;
}

/* Its work, from the start of the program to the verdict. */
static void keeper_work(void *arg, const struct keeper *self)
{
	struct run *r = arg;

	witness_leave(&r->child.witness);
	r->judge.self = self;
	run_job_start(r->job, &r->server);
	if (follow_program(r, self))
		judge_finish(&r->judge);
	else if (!r->judge.n_failed && !r->store.keep)
		store_discard(&r->store);	/* the supervisor was killed: there is no process to report to */
	run_job_finish(r->job, self, !given.json, r->judge.style.color, r->judge.style.width);
	keeper_works(self);
	env_clean(&r->server);
	run_writes_clean(&r->writes);
}

static void supervise(struct child *c, struct keeper *k, int look_ms)
{
	while ((c->pid && !c->ended) || k->pid > 0) {
		child_step(c, k, look_ms);
		if (c->ended)
			keeper_tell(k, &(struct keeper_news){c->pid, true, c->status, c->uid});
		keeper_look(k);
	}
}

/* In place of a keeper that failed. */
static void tell_failure(void *arg, const struct keeper *self)
{
	struct run *r = arg;

	witness_leave(&r->child.witness);
	r->judge.self = self;
	judge_give_up(&r->judge, r->keeper.why);
	env_clean(&r->server);
	run_writes_clean(&r->writes);
}

/* Also in a process of its own: if the keeper had no memory, there may be none now. */
static void tell_giving_up(struct run *r)
{
	struct keeper last;

	if (keeper_start(&last, tell_failure, r))
		supervise(&r->child, &last, LOOK_MS);
	if (last.failed)
		dprintf(STDERR_FILENO, "cuwhy: whether CUDA failed is unknown: %s\n", r->keeper.why);
}

/* What a dry run writes goes elsewhere; but not what cuwhy and its recorder write. */
static int hold_writes(struct run *r, struct err *e)
{
	const char *stopped = getenv(FIT_STOPPED), *job = given.job ? given.job : getenv("CUWHY_JOB");
	char *fit =
		stopped && *stopped == '/' ? xasprintf("%.*s", (int)(strrchr(stopped, '/') - stopped), stopped) : NULL;
	int rc = run_writes_real(&r->writes, r->server.dir, e);

	if (rc == 0)
		rc = run_writes_real(&r->writes, given.out, e);
	if (rc == 0)
		rc = run_writes_real(&r->writes, job, e);
	if (rc == 0 && fit && fs_is_dir(fit))
		rc = run_writes_real(&r->writes, fit, e);
	free(fit);
	return rc ? rc : run_writes_make(&r->writes, given.out, e);
}

static int start_program(struct run *r, char **argv, struct err *e)
{
	int status, rc;

	if (given.gpu && (env_check_gpu(given.gpu, &r->sim, e) != 0 || torch_check(argv, e) != 0))
		return EXIT_TROUBLE;
	if (given.gpu && (rc = run_writes_open(&r->writes, given.writes, given.keep_writes, e)) != 0)
		return rc == -EINVAL ? EXIT_TROUBLE : EXIT_NOT_STARTED;
	if (store_open(&r->store, given.out, given.keep || given.memory_trace, given.force, argv, e) != 0)
		return EXIT_NOT_STARTED;
	/* from here on, a signal is passed on to the program: it does not end us and leave our folder behind */
	child_prepare(&r->child);
	r->store.events = given.memory_trace;
	events_prepare(&r->store);
	guard_prepare(given.guards ? (given.guard ? given.guard : "") : NULL);
	server_open(&r->server, given.dump_memory, &r->unrecorded);
	r->server.sim = r->sim;
	r->judge.notices = r->server.dir ? notices_open(r->server.dir) : NULL;
	hang_prepare(&r->hang, &r->server);
	rc = env_prepare(&r->server, argv[0], r->sim,
			 &(struct env_wishes){given.no_core_dump, given.dump_memory, given.no_values}, e);
	if (rc != 0)
		return rc == -EINVAL ? EXIT_TROUBLE : EXIT_NOT_STARTED;
	if (!r->unrecorded.code && r->server.dir && !getenv("CUWHY_SOCK")) {
		const char *why = env_why_no_recorder(argv[0]);

		err_set(&r->unrecorded, -EINVAL, "%s", why ? why : "the loader cannot use the recorder's path");
	}
	if (hold_writes(r, e) != 0)
		return EXIT_NOT_STARTED;
	xid_watch_open(&r->xids, KERNEL_LOG);
	r->child.writes = &r->writes;
	r->child.out = given.out;
	keeper_start(&r->keeper, keeper_work, r);	/* before the program, which may stop us */
	server_leave(&r->server);
	status = child_start(&r->child, argv, e);
	if (status == 0)
		keeper_tell(&r->keeper, &(struct keeper_news){.pid = r->child.pid});
	else
		keeper_dismiss(&r->keeper);
	return status;
}

static int run_program(char **argv, enum color color, const struct hang *hang)
{
	struct run r = {
		.child.pidfd = -1, .xids.fd = -1, .hang = *hang, .server = SERVER_NONE, .store.mark = MARK_NONE,
			.writes.mark = MARK_NONE};
	struct err e = {0};
	int status;

	r.judge = (struct judge){.store = &r.store, .server = &r.server, .child = &r.child,
				 .unrecorded = &r.unrecorded, .xids = &r.xids, .json = given.json, .guard.asked = given.guards};
	r.judge.job = r.job = run_job_new(given.job ? given.job : getenv("CUWHY_JOB"), argv);
	r.judge.writes = given.gpu ? &r.writes : NULL;
	r.judge.style.color = term_color(STDERR_FILENO, color);
	r.judge.style.width = term_width(STDERR_FILENO);
	r.judge.style.verbose = given.verbose;
	status = start_program(&r, argv, &e);
	supervise(&r.child, &r.keeper, r.hang.limit_ns ? HANG_LOOK_MS : LOOK_MS);
	if (status != 0) {
		cmd_fail(stderr, given.json, &e, status);
		env_clean(&r.server);
		run_writes_clean(&r.writes);
	} else {
		if (r.keeper.failed)
			tell_giving_up(&r);
		status = child_exit_status(&r.child);
	}
	child_release(&r.child);
	judge_release(&r.judge);
	xid_watch_close(&r.xids);
	store_release(&r.store);
	server_close(&r.server);
	sampler_release(&r.sampler);
	free(r.sim);
	run_job_free(r.job);
	run_writes_release(&r.writes);
	if (r.child.ended)
		child_end_alike(&r.child);
	return status;
}

int cmd_run(int argc, char **argv)
{
	enum color color = COLOR_AUTO;
	struct hang hang = {.load_ns = HANG_LOAD_NS};
	struct err e = {0};
	int first;

	first = opt_parse(&usage, options, argc, argv, &e);
	if (first < 0)
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	if (given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (given.color && !term_parse_color(given.color, &color)) {
		err_set(&e, -EINVAL, "--color takes auto, always or never, not '%s'", given.color);
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	}
	if (given.hang_after && hang_parse(&hang.limit_ns, "hang-after", given.hang_after, &e) != 0)
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	if (given.hang_load && hang_parse(&hang.load_ns, "hang-load", given.hang_load, &e) != 0)
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	if ((given.writes || given.keep_writes) && !given.gpu) {
		err_set(&e, -EINVAL, "%s is for dry runs", given.writes ? "--writes" : "--keep-writes");
		err_hint(&e, "it needs --gpu sim");
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	}
	if (given.guard && guard_check(given.guard, &e) != 0)
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	if ((given.hang_go_on || given.hang_load) && !given.hang_after) {
		err_set(&e, -EINVAL,
			given.hang_go_on ? "--hang-go-on needs --hang-after" : "--hang-load needs --hang-after");
		err_hint(&e, "for example --hang-after 60s %s", given.hang_go_on ? "--hang-go-on" : "--hang-load 5m");
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	}
	if (first >= argc) {
		err_set(&e, -EINVAL, "run needs a program to run");
		err_hint(&e, "for example: cuwhy run python train.py");
		return cmd_fail(stderr, given.json, &e, EXIT_TROUBLE);
	}
	hang.go_on = given.hang_go_on;
	hang.quiet = given.json;
	return run_program(argv + first, color, &hang);
}
