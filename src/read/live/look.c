/* SPDX-License-Identifier: Apache-2.0
 * Several looks at one process (see look.h).
 */
#include "read/live/look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/proc.h"
#include "case/line.h"
#include "read/live/stop.h"

#define TRIES		20	/* to read a stack twice with the same result */

/* How long instructions are watched: until the thread has had so much of a processor, one thread for so long, all of them. */
#define WATCH_CPU_NS	20000000u
#define WATCH_NS	600000000u
#define WATCH_ALL_NS	900000000u
#define WATCH_PAUSE_NS	100000
#define WATCH_WALKS	8	/* between two pauses */
/* At so many moments, between which it has run: on a busy machine, all its time may pass between two walks. A loop that spends 9 tenths of
 * its time in one call is met there at all of them once in 200 times. */
#define WATCH_MOMENTS	50

int look_open(struct process_look *l, pid_t pid, const struct look_options *o, struct err *e)
{
	const struct module *torch;
	int rc;

	*l = (struct process_look){.pid = pid, .o = *o};
	l->remote.mem = -1;
	rc = target_open(&l->target, pid);
	if (!rc)
		rc = remote_open(&l->remote, pid, l->target.map[0].start);
	if (rc) {
		look_close(l);
		return look_refused(pid, rc, "explain", e);
	}
	pyproc_open(&l->py, &l->target, &l->remote);
	torch = target_has(&l->target, "libc10.so");
	l->torch_path = torch ? torch->path : "";
	return 0;
}

void look_close(struct process_look *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->thread[i].frame);
		free(l->thread[i].last);
		free(l->thread[i].native);
	}
	free(l->thread);
	if (l->remote.page)
		remote_release(&l->remote);
	target_close(&l->target);
	pool_release(&l->pool);
	*l = (struct process_look){0};
}

/* The kernel lists threads from the oldest to the newest, Python from the newest to the oldest: the next one asked for is beside the last. */
static struct seen *find(const struct process_look *l, uint32_t tid, bool inner)
{
	static size_t last;
	size_t n = l->n;

	for (size_t k = 0; k < n; k++) {
		size_t i = (last + (k % 2 ? n - (k + 1) / 2 % n : k / 2)) % n;
		const struct task *t = &l->thread[i].task;

		if ((inner ? t->inner_tid : t->tid) == tid) {
			last = i;
			return &l->thread[i];
		}
	}
	return NULL;
}

struct seen *look_thread(const struct process_look *l, uint32_t tid)
{
	return find(l, tid, false);
}

struct seen *look_state(const struct process_look *l, uint64_t state)
{
	for (size_t i = 0; state && i < l->n; i++)
		if (l->thread[i].py.state == state)
			return &l->thread[i];
	return NULL;
}

struct seen *look_pthread(const struct process_look *l, uint64_t ident)
{
	for (size_t i = 0; ident && i < l->n; i++)
		if (l->thread[i].py.pthread == ident)
			return &l->thread[i];
	return NULL;
}

double seen_cpu(const struct process_look *l, const struct seen *s)
{
	uint64_t ns = l->last_ns - l->first_ns;

	return ns && s->cpu_last > s->cpu_first ? (double)(s->cpu_last - s->cpu_first) / (double)ns : 0;
}

double seen_wanted(const struct process_look *l, const struct seen *s)
{
	uint64_t ns = l->last_ns - l->first_ns, queued = s->task.queued_ns - s->first.queued_ns;

	return ns && s->task.queued_ns > s->first.queued_ns ? seen_cpu(l, s) + (double)queued / (double)ns
							    : seen_cpu(l, s);
}

#define RAN_NS 1000000u	/* enough for thousands of Python's instructions */

bool seen_enough(const struct seen *s)
{
	return s->ran + 1 >= LOOKS;
}

bool look_undecided(const struct process_look *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct seen *s = &l->thread[i];

		if (!s->gone && s->py.state && s->task.state == 'R' && !s->moved && !seen_enough(s))
			return true;
	}
	return false;
}

static void note_tasks(struct process_look *l, struct task *list, size_t n)
{
	for (size_t i = 0; i < l->n; i++)
		l->thread[i].gone = true;
	for (size_t i = 0; i < n; i++) {
		struct seen *s = look_thread(l, list[i].tid);

		if (!s) {
			l->thread = xgrow(l->thread, l->n, &l->cap, sizeof(*l->thread));
			s = &l->thread[l->n++];
			*s = (struct seen){.cpu_first = list[i].cpu_ns, .cpu_last = list[i].cpu_ns, .first = list[i],
					   .new = l->looks > 0};
		}
		s->ran += list[i].cpu_ns - s->cpu_last >= RAN_NS;
		s->task = list[i];
		s->cpu_last = list[i].cpu_ns;
		s->looks++;
		s->asleep += list[i].in_call;
		s->gone = false;
	}
}

static bool same_walk(const struct py_walked *a, const struct py_walked *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->raw[i].frame != b->raw[i].frame || a->raw[i].code != b->raw[i].code)
			return false;
	return true;
}

/* Reads until two readings agree: the thread goes on meanwhile. */
static bool walk_moving(struct process_look *l, uint64_t state, struct py_walked *w)
{
	struct py_walked *again = xmalloc(sizeof(*again));
	bool agreed = false;

	for (int i = 0; i < TRIES && !agreed; i++) {
		bool first, second;

		remote_forget(&l->remote);
		first = pyproc_walk(&l->py, state, w);
		remote_forget(&l->remote);
		second = pyproc_walk(&l->py, state, again);
		agreed = first && second && same_walk(w, again);
	}
	free(again);
	return agreed;
}

/* While it sleeps, or is stopped, it changes nothing: read, then see that it has done nothing else all the time. */
static bool walk_asleep(struct process_look *l, struct seen *s, struct py_walked *w)
{
	for (int i = 0; i < TRIES; i++) {
		struct task now;
		bool read;

		remote_forget(&l->remote);
		read = !s->py.state || pyproc_walk(&l->py, s->py.state, w);
		if (s->native)
			native_copy(s->native, &l->remote, s->task.sp, s->task.pc, NULL);
		if (!task_read(l->pid, s->task.tid, &now))
			return false;
		if (read && !now.runs && now.switches == s->task.switches)
			return true;
		s->task = now;
		if (now.runs)
			return false;
	}
	return false;
}

void look_native(struct process_look *l, struct seen *s)
{
	struct py_walked *w;

	if (s->native || !s->task.in_call || l->n_native == NATIVE_THREADS)
		return;
	l->n_native++;
	w = xmalloc(sizeof(*w));
	s->native = xcalloc(1, sizeof(*s->native));
	if (!walk_asleep(l, s, w))
		s->native->n = 0;
	free(w);
}

/* What is read of a thread while it is stopped. */
struct reading {
	struct process_look *l;
	struct seen *s;
	struct py_walked *w;
	bool read;
};

static void read_stopped(const struct stopped *stop, void *arg)
{
	struct reading *r = arg;

	remote_forget(&r->l->remote);
	r->read = !r->s->py.state || pyproc_walk(&r->l->py, r->s->py.state, r->w);
	if (r->s->native)
		native_copy(r->s->native, &r->l->remote, stop->sp, stop->pc, stop->reg);
}

static bool walk_stopped(struct process_look *l, struct seen *s, struct py_walked *w)
{
	struct reading r = {l, s, w, false};
	uint64_t ns;
	int rc = while_stopped(s->task.tid, read_stopped, &r, &ns);
	struct task now;

	/* one that is about to end is refused, too */
	if (rc == -EPERM || rc == -EACCES || rc == -ENOSYS)
		l->stop_refused |= task_read(l->pid, s->task.tid, &now) && now.runs;
	if (ns > l->longest_stop_ns)
		l->longest_stop_ns = ns;
	l->stops += rc == 0;
	return r.read;
}

static bool walk_thread(struct process_look *l, struct seen *s, struct py_walked *w)
{
	w->n = 0;
	if (!s->task.runs && s->task.sp && walk_asleep(l, s, w))
		return true;
	if (s->native)
		s->native->n = 0;
	if (!l->o.no_stop && !l->stop_refused && s->task.runs && !l->target.is_32bit && walk_stopped(l, s, w))
		return true;
	return s->py.state && walk_moving(l, s->py.state, w);
}

/* The innermost `own` frame at or after `i`; n = none. */
static size_t next_own(const struct seen_frame *f, size_t n, size_t i)
{
	while (i < n && !f[i].own)
		i++;
	return i;
}

static size_t read_frames(struct process_look *l, const struct py_walked *w, struct seen_frame **out)
{
	struct seen_frame *list = xcalloc(w->n + 1, sizeof(*list));
	size_t own;

	remote_forget(&l->remote);
	for (size_t i = 0; i < w->n; i++) {
		enum owner owner;

		list[i].raw = w->raw[i];
		if (!pyproc_frame(&l->py, &w->raw[i], &list[i].at, &l->pool))
			list[i].at = (struct py_frame){.file = "?", .function = "?"};
		owner = frame_owner(list[i].at.file, l->torch_path);
		list[i].own = owner != OWNER_STDLIB &&
			      !(owner == OWNER_GENERATED && list[i].at.file[0] == '<' && list[i].at.file[1] == 'f');
		if (list[i].own)
			list[i].contents = pyproc_contents(&l->py, &w->raw[i]);
	}
	own = next_own(list, w->n, 0);
	for (size_t i = 0; i < own; i++)
		list[i].contents = pyproc_contents(&l->py, &w->raw[i]);
	*out = list;
	return w->n;
}

static bool frames_moved(const struct seen_frame *a, size_t n_a, const struct seen_frame *b, size_t n_b)
{
	size_t i = next_own(a, n_a, 0), k = next_own(b, n_b, 0);

	for (bool innermost = true; i < n_a && k < n_b; innermost = false) {
		if (a[i].raw.frame != b[k].raw.frame || a[i].raw.code != b[k].raw.code ||
		    a[i].contents != b[k].contents || (!innermost && a[i].raw.instr != b[k].raw.instr))
			return true;
		i = next_own(a, n_a, i + 1);
		k = next_own(b, n_b, k + 1);
	}
	return i < n_a || k < n_b;
}

/* A function of Python's library that the program called, or one that this called, gets on. */
static bool library_moved(const struct seen_frame *a, size_t n_a, const struct seen_frame *b, size_t n_b)
{
	size_t i = next_own(a, n_a, 0), k = next_own(b, n_b, 0);

	while (i-- && k-- && a[i].raw.frame == b[k].raw.frame && a[i].raw.code == b[k].raw.code)
		if (a[i].contents != b[k].contents)
			return true;
	return false;
}

static void note_place(struct process_look *l, struct seen *s, const struct seen_frame *f)
{
	int64_t at = py_lasti(&l->py.l, f->raw.code, f->raw.instr);

	if (s->own_code != f->raw.code) {
		s->own_code = f->raw.code;
		s->low = s->high = at;
	}
	s->low = at < s->low ? at : s->low;
	s->high = at > s->high ? at : s->high;
}

static void note_frames(struct process_look *l, struct seen *s, const struct py_walked *w)
{
	struct seen_frame *now;
	size_t n = read_frames(l, w, &now), own = next_own(now, n, 0);

	if (own < n && (!s->least_line || now[own].at.line < s->least_line))
		s->least_line = now[own].at.line;
	if (own < n)
		note_place(l, s, &now[own]);
	s->library_moved |= library_moved(s->last, s->n_last, now, n);
	free(s->last);
	s->last = now;
	s->n_last = n;
	if (!s->frame) {
		s->frame = xcalloc(n + 1, sizeof(*s->frame));
		memcpy(s->frame, now, n * sizeof(*now));
		s->n = n;
		return;
	}
	s->moved |= frames_moved(s->frame, s->n, now, n);
}

#define THREADS_MORE 64	/* since the kernel was asked for its list */

/* Threads of Python, and the kernel's number of each. Where their list changes all the time, what is known of the others stays. */
static void note_python(struct process_look *l)
{
	size_t max = l->n + THREADS_MORE, n = 0, found = 0;
	struct py_thread *list = xcalloc(max, sizeof(*list));

	l->some_left_out = true;
	for (int i = 0; i < TRIES && l->some_left_out; i++) {
		bool whole;

		remote_forget(&l->remote);
		n = pyproc_threads(&l->py, list, max, &whole);
		l->some_left_out = !whole;
	}
	for (size_t i = 0; i < l->n && !l->some_left_out; i++)
		l->thread[i].py = (struct py_thread){0};
	for (size_t i = 0; i < n; i++) {
		struct seen *s = find(l, list[i].tid, true);

		found += s != NULL;
		if (s && (!s->py.state || l->some_left_out))
			s->py = list[i];
	}
	l->some_left_out |= n && !found;
	free(list);
}

static bool is_read(const struct process_look *l, const struct seen *s)
{
	return !s->gone && (s->py.state || s->task.tid == (uint32_t)l->pid);
}

/* Native stacks of those threads whose wait is to be explained. */
static void want_native(struct process_look *l, struct seen *s)
{
	if (s->native || l->n_native == NATIVE_THREADS)
		return;
	s->native = xcalloc(1, sizeof(*s->native));
	l->n_native++;
}

bool look_once(struct process_look *l)
{
	struct py_walked *w = xmalloc(sizeof(*w));
	struct task *list;
	size_t n = tasks_read(l->pid, &list);

	if (n == 1 && list[0].state == 'Z')
		n = 0;		/* it has ended, and its parent has not noticed */
	if (n) {
		l->last_ns = proc_mono_ns();
		if (!l->looks)
			l->first_ns = l->last_ns;
		note_tasks(l, list, n);
		note_python(l);
		for (size_t i = 0; i < l->n; i++) {
			struct seen *s = &l->thread[i];

			if (!is_read(l, s))
				continue;
			want_native(l, s);
			if (!walk_thread(l, s, w)) {
				s->unread = true;
				continue;
			}
			s->unread = false;
			if (s->py.state)
				note_frames(l, s, w);
		}
		l->looks++;
	}
	free(list);
	free(w);
	return n > 0;
}

/* The outermost frame of the program's own that is further in than `code`. */
static const char *called_by(struct process_look *l, const struct py_walked *w, uint64_t code)
{
	const char *name = NULL;

	for (size_t i = 0; i < w->n && w->raw[i].code != code; i++) {
		struct py_frame f;

		if (i + 1 == w->n || !pyproc_frame(&l->py, &w->raw[i], &f, &l->pool))
			return NULL;	/* it has left the function, or was read while it changed */
		if (frame_owner(f.file, l->torch_path) != OWNER_STDLIB)
			name = f.function;
	}
	return name;
}

const char *look_called(struct process_look *l, const struct seen *s)
{
	const struct timespec pause = {.tv_nsec = WATCH_PAUSE_NS};
	struct py_walked *w = xmalloc(sizeof(*w));
	uint64_t start = proc_mono_ns(), seen = 0;
	const char *name = NULL;
	unsigned moments = 0;
	struct task now;

	while (!name && moments < WATCH_MOMENTS && proc_mono_ns() - start < WATCH_NS && l->watched_ns < WATCH_ALL_NS &&
	       task_read(l->pid, s->task.tid, &now)) {
		moments += now.cpu_ns > seen;
		seen = now.cpu_ns;
		for (int i = 0; i < WATCH_WALKS && !name; i++) {
			remote_forget(&l->remote);
			if (pyproc_walk(&l->py, s->py.state, w) && w->n && w->raw[0].code != s->own_code)
				name = called_by(l, w, s->own_code);
		}
		nanosleep(&pause, NULL);
	}
	l->watched_ns += proc_mono_ns() - start;
	free(w);
	return name;
}

bool look_one_instruction(struct process_look *l, struct seen *s)
{
	const struct timespec pause = {.tv_nsec = WATCH_PAUSE_NS};
	struct py_walked *w = xmalloc(sizeof(*w));
	uint64_t start = proc_mono_ns(), cpu, seen;
	struct task now = s->task;
	unsigned moments = 0;
	bool same = s->n && s->n_last && s->py.state && s->frame[0].raw.frame == s->last[0].raw.frame &&
		    s->frame[0].raw.instr == s->last[0].raw.instr;

	same = same && task_read(l->pid, s->task.tid, &now);
	cpu = seen = now.cpu_ns;
	while (same && (now.cpu_ns - cpu < WATCH_CPU_NS || moments < WATCH_MOMENTS) &&
	       proc_mono_ns() - start < WATCH_NS && l->watched_ns < WATCH_ALL_NS &&
	       task_read(l->pid, s->task.tid, &now)) {
		moments += now.cpu_ns > seen;
		seen = now.cpu_ns;
		for (int i = 0; i < WATCH_WALKS && same; i++) {
			remote_forget(&l->remote);
			if (pyproc_walk(&l->py, s->py.state, w) && w->n)
				same = w->raw[0].frame == s->last[0].raw.frame &&
				       w->raw[0].instr == s->last[0].raw.instr;
		}
		nanosleep(&pause, NULL);
	}
	l->watched_ns += proc_mono_ns() - start;
	free(w);
	return same && moments >= WATCH_MOMENTS;
}
