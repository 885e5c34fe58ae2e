/* SPDX-License-Identifier: Apache-2.0
 * Threads that wait for each other's locks (see waits.h).
 *
 * Threads and locks are read one after the other while the program runs, so a circle that was put together from several moments
 * may never have been there. It counts if all of its threads slept from before the first of its locks was read until after the
 * last: then it was there at once, and as a thread that sleeps releases nothing, it stays until something else ends one of the
 * waits.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "read/live/look.h"
#include "find/hang/waits.h"
#include "find/hang/wakes.h"

#define TRIES 20	/* a handler of a signal wakes a thread for a moment */

struct live_thread *told_thread(const struct live *out, uint32_t tid)
{
	for (size_t i = 0; tid && i < out->n; i++)
		if (out->thread[i].tid == tid)
			return &out->thread[i];
	return NULL;
}

/* Does it wait, directly or not, for a lock that it has itself? */
static bool is_in_circle(const struct live *out, const struct live_thread *from)
{
	const struct live_thread *t = from;

	for (size_t i = 0; i <= out->n && t && t->holder; i++) {
		t = told_thread(out, t->holder);
		if (t == from)
			return true;
	}
	return false;
}

/* Is it where it was seen, and does it still wait for the same thread? A thread that waits for the GIL wakes up now and then to
 * ask for it, but does nothing else. */
static bool waits_still(struct live_thread *t, struct process_look *l, struct task *now)
{
	const struct seen *s = look_thread(l, t->tid);
	struct live_thread again = *t;

	if (!s || !task_read(l->pid, t->tid, now) || !now->in_call || now->call != s->task.call)
		return false;
	if (t->waits != LIVE_GIL && now->arg[0] != s->task.arg[0])
		return false;
	again.holder = 0;
	thread_holder(&again, l, s);
	return again.holder == t->holder && again.holder_sure == t->holder_sure;
}

static bool slept_since(const struct live_thread *t, struct process_look *l, const struct task *before)
{
	struct task now;

	return t->waits == LIVE_GIL ||
	       (task_read(l->pid, t->tid, &now) && now.in_call && now.switches == before->switches);
}

/* All of them at once; twice, so that the second reading lies between two moments at which no thread had moved. */
static bool is_there(struct live *out, struct process_look *l, struct live_thread *from)
{
	struct task *seen = xcalloc(out->n, sizeof(*seen));
	struct live_thread *t = from;
	bool there = true;
	size_t n = 0;

	for (size_t i = 0; there && i < out->n; i++) {
		there = waits_still(t, l, &seen[n++]);
		t = told_thread(out, t->holder);
		if (t == from)
			break;
	}
	for (int round = 0; there && round < 2; round++) {
		struct task now;

		t = from;
		for (size_t i = 0; there && i < n; i++, t = told_thread(out, t->holder))
			there = round ? slept_since(t, l, &seen[i]) : waits_still(t, l, &now);
	}
	free(seen);
	return there;
}

void find_circle(struct live *out, struct process_look *l, struct pool *pool)
{
	struct live_thread *found = NULL;
	struct live_thread *t;

	for (size_t i = 0; i < out->n && !found; i++)	/* the main thread is the first */
		if (is_in_circle(out, &out->thread[i]))
			for (int k = 0; k < TRIES && !found; k++)
				found = is_there(out, l, &out->thread[i]) ? &out->thread[i] : NULL;
	if (!found)
		return;
	t = found;
	out->deadlock = out->deadlock_sure = true;
	out->stuck = found;
	do {
		t->in_circle = true;
		out->deadlock_sure &= t->holder_sure;
		t = told_thread(out, t->holder);
	} while (t && t != found);
	out->wakes = what_ends_circle(out, l, pool, &out->deadlock_timed);
}
