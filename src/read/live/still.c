/* SPDX-License-Identifier: Apache-2.0
 * Waits for a moment at which no object changes (see still.h).
 */
#include "read/live/still.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "read/live/stop.h"
#include "read/live/task.h"

#define TRIES		40	/* threads that take turns at the GIL */
#define PAUSE_NS	200000
#define THREADS_MAX	1024u

struct moment_of {
	struct pyproc *p;
	void (*look)(void *arg, bool again);
	void *arg;
	uint64_t gil, holder;
	bool looked;
};

static bool same_holder(const struct moment_of *m)
{
	remote_forget(m->p->r);
	return pyproc_gil_holder(m->p, m->gil) == m->holder;
}

static void look_stopped(const struct stopped *s, void *arg)
{
	struct moment_of *m = arg;

	(void)s;
	if (!same_holder(m))	/* it gave the GIL away before it stopped */
		return;
	m->look(m->arg, false);
	m->looked = true;
}

/* What was read twice did not change in between, if nothing that would bring it back has run. */
static bool look_twice(struct moment_of *m)
{
	if (!same_holder(m))
		return false;
	m->look(m->arg, false);
	remote_forget(m->p->r);
	m->look(m->arg, true);
	return same_holder(m);
}

/* Its number outside of its container, if it is in one; 0 = it is gone. */
static bool find_task(pid_t pid, uint32_t inner_tid, struct task *to)
{
	struct task *list;
	size_t n = tasks_read(pid, &list);
	bool found = false;

	for (size_t i = 0; i < n && !found; i++)
		if ((found = list[i].inner_tid == inner_tid))
			*to = list[i];
	free(list);
	return found;
}

/* The main interpreter is the last of the list, and its threads are. */
static bool find_holder(struct moment_of *m, uint32_t *tid)
{
	static struct py_thread list[THREADS_MAX];
	bool whole;
	size_t n;

	remote_forget(m->p->r);
	n = pyproc_threads(m->p, list, THREADS_MAX, &whole);
	if (!n)
		return false;
	m->gil = list[n - 1].gil;
	m->holder = pyproc_gil_holder(m->p, m->gil);
	*tid = 0;
	for (size_t i = 0; i < n; i++)
		if (m->holder && list[i].state == m->holder)
			*tid = list[i].tid;
	return true;
}

bool while_still(struct pyproc *p, pid_t pid, void (*look)(void *arg, bool again), void *arg, struct still *s)
{
	struct moment_of m = {.p = p, .look = look, .arg = arg};
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	bool may_stop = true;

	*s = (struct still){0};
	for (int i = 0; i < TRIES; i++) {
		struct task t = {0};
		uint32_t tid;
		uint64_t ns;
		int rc;

		if (i)
			nanosleep(&pause, NULL);
		if (!find_holder(&m, &tid))
			continue;
		if (!may_stop || !tid || !find_task(pid, tid, &t) || !t.runs) {
			if (look_twice(&m))
				return true;
			continue;
		}
		rc = while_stopped(t.tid, look_stopped, &m, &ns);
		s->stop_ns = ns > s->stop_ns ? ns : s->stop_ns;
		s->stops += rc == 0;
		if (rc == 0 && m.looked)
			return true;
		may_stop = rc == 0 || rc == -ESRCH;
	}
	return false;
}
