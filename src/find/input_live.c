/* SPDX-License-Identifier: Apache-2.0
 * Processes that run, as an input (see input.h): looks at them, and observes into a case what is hung.
 */
#include "find/input_live.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "find/hang/waits.h"

static void sleep_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static bool undecided(const struct live_source *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!list[i].e.code && !list[i].ended && look_undecided(&list[i].look))
			return true;
	return false;
}

void live_look(struct live_source *list, const pid_t *pids, size_t n, const struct look_options *o)
{
	uint64_t start = proc_mono_ns();

	for (size_t i = 0; i < n; i++) {
		list[i] = (struct live_source){.ended = false};
		look_open(&list[i].look, pids[i], o, &list[i].e);
	}
	for (unsigned k = 0; k < LOOKS || (k < LOOKS_MOST && undecided(list, n)); k++) {
		if (k)
			sleep_until(start + o->window_ns * k / (LOOKS - 1));
		for (size_t i = 0; i < n; i++)
			if (!list[i].e.code && !list[i].ended)
				list[i].ended = !look_once(&list[i].look);
	}
	for (size_t i = 0; i < n; i++) {
		if (!list[i].e.code && list[i].ended)
			err_set(&list[i].e, -ESRCH, "process %d ended while cuwhy looked at it", (int)pids[i]);
		if (!list[i].e.code)
			live_tell(&list[i].told, &list[i].look, &list[i].pool);
	}
}

void live_release(struct live_source *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		look_close(&list[i].look);
		pool_release(&list[i].pool);
	}
}

size_t live_cuda_processes(pid_t **list)
{
	size_t n = 0, cap = 0;
	struct dirent *d;
	uint64_t pid;
	DIR *dir = opendir("/proc");

	*list = NULL;
	while (dir && (d = readdir(dir))) {
		struct target t;

		if (!str_u64(d->d_name, &pid) || (pid_t)pid == getpid())
			continue;
		if (target_open(&t, (pid_t)pid) == 0 && target_has(&t, "libcuda.so")) {
			*list = xgrow(*list, n, &cap, sizeof(**list));
			(*list)[n++] = (pid_t)pid;
		}
		target_close(&t);
	}
	if (dir)
		closedir(dir);
	return n;
}

const char *live_thread_name(const struct live_thread *t, struct pool *pool)
{
	if (t->main)
		return "the main thread";
	return pool_printf(pool, "thread %u%s%s%s", t->tid, t->name[0] ? " (" : "", t->name, t->name[0] ? ")" : "");
}

static const struct live_thread *thread_of(const struct live *l, uint32_t tid)
{
	for (size_t i = 0; tid && i < l->n; i++)
		if (l->thread[i].tid == tid)
			return &l->thread[i];
	return NULL;
}

static const char *at_line(const struct live_thread *t, struct pool *pool)
{
	return t->line.file ? pool_printf(pool, " at %s:%u", t->line.shown, t->line.number) : "";
}

static const char *waits_for(const struct live_thread *t, struct pool *pool)
{
	const char *what = t->what && t->waits == LIVE_LOCK ? t->what : live_waits_text(t->waits);

	return t->waits == LIVE_LOOP || t->waits == LIVE_NATIVE ? "runs" : pool_printf(pool, "waits for %s", what);
}

static const char *held_by(const struct live_thread *t, const struct live_thread *holder, struct pool *pool)
{
	if (!holder)
		return "";
	return pool_printf(pool, " that %s held by %s", t->holder_sure ? "is" : "seems to be",
			   live_thread_name(holder, pool));
}

/* "the main thread waits at a.py:3 for a lock that thread 12 has; that one waits at …" */
static const char *chain_text(const struct live *l, struct pool *pool)
{
	const struct live_thread *t = l->deadlock ? l->stuck : l->n ? &l->thread[0] : NULL, *first = t;
	const char *text = "";

	for (size_t i = 0; t && i < l->n; i++) {
		const struct live_thread *holder = thread_of(l, t->holder);

		if (!holder && !i)
			return "";
		text = pool_printf(pool, "%s%s%s%s %s%s", text, i ? "; " : "", live_thread_name(t, pool),
				   at_line(t, pool), waits_for(t, pool), held_by(t, holder, pool));
		t = holder;
		if (t == first)
			break;
	}
	return text;
}

static void observe_holder(struct casefile *c, const struct live *l, const struct live_thread *t)
{
	const struct live_thread *holder = thread_of(l, t->holder);

	fact_set_flag(c, FACT_live_holder_sure, t->holder_sure);
	if (!holder) {
		fact_set_text(c, FACT_live_holder, "");
		return;
	}
	fact_set_text(c, FACT_live_holder,
		      pool_printf(c->pool, "%s%s", live_thread_name(holder, c->pool), at_line(holder, c->pool)));
}

static const char *peer_text(const struct live_thread *t, struct pool *pool)
{
	if (!t->peer)
		return t->peer_text ? t->peer_text : "";
	if (!t->peer_text)
		return pool_printf(pool, "process %u", t->peer);
	return pool_printf(pool, "process %u (%s)", t->peer, t->peer_text);
}

static void observe_stuck(struct casefile *c, const struct live *l)
{
	const struct live_thread *t = l->stuck;

	fact_set_text(c, FACT_live_waits, live_waits_word(t->waits));
	fact_set_text(c, FACT_live_for, live_waits_text(t->waits));
	fact_set_text(c, FACT_live_what, t->what ? t->what : "");
	fact_set_text(c, FACT_live_call, t->call ? t->call : "");
	fact_set_text(c, FACT_live_thread, live_thread_name(t, c->pool));
	fact_set_number(c, FACT_live_cpu, (double)(int)(t->cpu * 100 + 0.5));
	fact_set_text(c, FACT_live_peer, peer_text(t, c->pool));
	fact_set_number(c, FACT_live_peer_pid, t->peer);
	fact_set_flag(c, FACT_live_shared, t->shared);
	fact_set_text(c, FACT_live_changes, t->changes ? t->changes : "");
	fact_set_text(c, FACT_live_outside,
		      l->outside ? pool_printf(c->pool, "%s waits for %s%s", live_thread_name(l->outside, c->pool),
					       live_waits_text(l->outside->waits), at_line(l->outside, c->pool))
				 : "");
	fact_set_text(c, FACT_live_wakes, l->wakes ? l->wakes : "");
	observe_holder(c, l, t);
	c->line[LINE_where] = t->line;
	c->stack = t->stack;
	c->n_stack = t->n_stack;
	if (!t->line.file)
		c->no_lines = l->no_python ? l->no_python
			      : t->n_stack ? "no line of your own is on the stack"
					   : "this thread runs no Python code";
}

void live_observe(struct live_source *s, struct casefile *c)
{
	const struct live *l = &s->told;
	double busiest = -1;

	c->live = l;
	if (!l->stuck)
		return;
	case_observer(c, LIVE_OBSERVER);
	case_observe(c, GROUP_live);
	fact_set_flag(c, FACT_live_is, true);
	fact_set_number(c, FACT_live_pid, l->pid);
	fact_set_number(c, FACT_live_seconds, (double)(int)(l->seconds + 0.5));
	fact_set_flag(c, FACT_live_deadlock, l->deadlock);
	fact_set_flag(c, FACT_live_deadlock_sure, l->deadlock_sure);
	fact_set_flag(c, FACT_live_deadlock_timed, l->deadlock_timed);
	observe_stuck(c, l);
	fact_set_text(c, FACT_live_chain, chain_text(l, c->pool));
	for (size_t i = 0; i < l->n_gpus; i++)
		busiest = l->gpu[i].utilization > busiest ? l->gpu[i].utilization : busiest;
	if (busiest >= 0)
		fact_set_number(c, FACT_live_utilization, busiest);
	if (l->last_kernel)
		fact_set_text(c, FACT_live_kernel,
			      pool_printf(c->pool, "%s%s%s", l->last_kernel, l->last_line ? " at " : "",
					  l->last_line ? l->last_line : ""));
	case_observer(c, NULL);
}
