/* SPDX-License-Identifier: Apache-2.0
 * From what was seen of a process to what can be said about it: is it hung, in which thread, and who waits for whom (see waits.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "case/source.h"
#include "read/live/fds.h"
#include "read/live/kin.h"
#include "read/live/look.h"
#include "read/live/unwind.h"
#include "find/hang/waits.h"
#include "find/hang/wakes.h"

#define COMMAND_MAX	4096u

/* The source of code that was given on the command line (python -c); NULL if the frame is not of that code. */
static const char *typed_text(const struct seen_frame *f, bool outermost, const struct live *out)
{
	const char *text = !strcmp(f->at.file, "<string>") ? command_text(out->command) : NULL;

	if (!text)
		return NULL;
	if (!strcmp(f->at.function, "<module>"))
		return outermost ? text : NULL;
	return text_defines(text, strlen(out->command) + 1 >= COMMAND_MAX, f->at.function, f->at.first_line) ? text
													     : NULL;
}

static struct line line_of(const struct seen_frame *f, bool outermost, const struct live *out, struct source_book *book,
			   struct pool *pool)
{
	struct line l = {.file = pool_strdup(pool, f->at.file),
			 .function = pool_strdup(pool, f->at.function),
			 .number = f->at.line};
	struct place p = {.file = l.file,
			  .function = l.function,
			  .line = l.number,
			  .first_line = f->at.first_line,
			  .text = typed_text(f, outermost, out)};

	l.typed = p.text != NULL;
	l.shown = file_shown(l.file, out->user_cwd);
	l.source = place_source(&p, book, pool);
	return l;
}

static bool is_users(const struct line *l, const char *torch_path)
{
	enum owner owner = frame_owner(l->file, torch_path);

	return owner == OWNER_USER || (owner == OWNER_GENERATED && l->typed);
}

static bool is_foreign(const struct line *l, const char *torch_path)
{
	enum owner owner = frame_owner(l->file, torch_path);

	return owner != OWNER_TORCH && owner != OWNER_TRITON && owner != OWNER_CUPY && owner != OWNER_GENERATED;
}

/* The innermost line of the user's own; else the innermost outside torch, triton and cupy, marked. */
static void choose_line(struct live_thread *t, const char *torch_path)
{
	for (size_t i = 0; i < t->n_stack; i++)
		if (is_users(&t->stack[i], torch_path)) {
			t->line = t->stack[i];
			return;
		}
	for (size_t i = 0; i < t->n_stack; i++)
		if (is_foreign(&t->stack[i], torch_path)) {
			t->line = t->stack[i];
			t->line.library = true;
			return;
		}
}

static void tell_thread(struct live_thread *t, struct live *out, struct process_look *l, struct seen *s,
			struct unwinder *u, struct source_book *book, struct pool *pool)
{
	*t = (struct live_thread){.tid = s->task.tid,
				  .name = pool_strdup(pool, s->task.name),
				  .main = s->task.tid == (uint32_t)l->pid,
				  .python = s->py.state != 0, .state = s->task.state, .cpu = seen_cpu(l, s),
				  .moved = s->moved || s->new, .busy = seen_wanted(l, s) >= WORKS_CPU};
	t->stack = pool_alloc(pool, (s->n_last + 1) * sizeof(*t->stack));
	for (size_t i = 0; i < s->n_last; i++)
		t->stack[t->n_stack++] = line_of(&s->last[i], i + 1 == s->n_last, out, book, pool);
	choose_line(t, l->torch_path);
	if (s->native && s->native->n)
		t->n_native = native_frames(s->native, &l->target, &l->remote, u, &t->native, pool);
	thread_waits(t, l, s, pool);
	if ((u || out->no_native) && l->py.found && !s->py.state && !t->main && (t->timed || t->waits != LIVE_LOCK)) {	/* whose thread is it, if it may act? */
		look_native(l, s);
		if (s->native && s->native->n)
			t->n_native = native_frames(s->native, &l->target, &l->remote, u, &t->native, pool);
	}
	if (t->waits == LIVE_LOOP && t->line.file && s->least_line && s->least_line < t->line.number) {
		/* a loop begins at its first line */
		for (size_t i = 0; i < t->n_stack; i++)
			if (line_same(&t->stack[i], &t->line)) {
				struct seen_frame f = s->last[i];

				f.at.line = s->least_line;
				t->line = t->stack[i] = line_of(&f, i + 1 == s->n_last, out, book, pool);
				break;
			}
	}
}

/* Does it do anything but wait? */
static bool works(const struct live_thread *t)
{
	if (t->waits == LIVE_LOOP || t->waits == LIVE_NATIVE)
		return false;
	return t->busy || (t->moved && t->python && t->waits == LIVE_NOTHING);
}

bool waits_inside(const struct live_thread *t)
{
	enum live_waits w = t->waits;

	return w == LIVE_GIL || w == LIVE_LOCK || w == LIVE_QUEUE || w == LIVE_QUEUE_ROOM || w == LIVE_QUEUE_DONE ||
	       w == LIVE_CONDITION || w == LIVE_THREAD || w == LIVE_TASKS || t->alone;
}

static bool waits_for_process(const struct live_thread *t)
{
	return t->waits == LIVE_WORKER || t->waits == LIVE_PROCESS || t->waits == LIVE_PIPE ||
	       t->waits == LIVE_DEVICE || t->waits == LIVE_SOCKET || t->waits == LIVE_EVENT || t->shared;
}

/* A loop may wait for a file or for memory that a child changes; the other ranks may be children. */
static bool may_wait_for_kin(const struct live_thread *t)
{
	return t->waits == LIVE_LOOP || t->waits == LIVE_COLLECTIVE || t->waits == LIVE_STORE;
}

/* Only something outside the process can end the wait: a peer, the GPU, the kernel. */
static bool waits_outside(const struct live_thread *t)
{
	switch (t->waits) {
	case LIVE_ACCEPT:
	case LIVE_STORE:
	case LIVE_COLLECTIVE:
	case LIVE_CUDA:
	case LIVE_FILE:
	case LIVE_TERMINAL:
	case LIVE_DEVICE:
	case LIVE_UNKNOWN:
		return true;
	default:
		return (waits_for_process(t) || t->waits == LIVE_FILE_LOCK) && !t->alone;
	}
}

/* Another Python thread that waits for something outside the process, and may then wake those inside. */
static const struct live_thread *find_outside(const struct live *out, const struct live_thread *but)
{
	for (size_t i = 0; i < out->n; i++) {
		const struct live_thread *t = &out->thread[i];

		if (t != but && t->python && waits_outside(t) && !only_helps(t))
			return t;
	}
	return NULL;
}

/* A thread that runs, although nothing is known to change: it may be computing. */
static const struct live_thread *find_runner(const struct live *out, const struct live_thread *but)
{
	const struct live_thread *found = NULL;

	for (size_t i = 0; i < out->n; i++) {
		const struct live_thread *t = &out->thread[i];

		if (t != but && t->busy && (t->waits == LIVE_NATIVE || (t->waits == LIVE_LOOP && !found)))
			found = t;
	}
	return found;
}

static const struct live_thread *find_worker(const struct live *out, const struct live_thread *but)
{
	for (size_t i = 0; i < out->n; i++)
		if (&out->thread[i] != but && works(&out->thread[i]))
			return &out->thread[i];
	return NULL;
}

/* The end of the chain of waits, as far as it is known. */
static const struct live_thread *end_of_chain(const struct live *out, const struct live_thread *t)
{
	for (size_t i = 0; i < out->n && t->holder && waits_inside(t); i++) {
		const struct live_thread *holder = told_thread(out, t->holder);

		if (!holder || holder->waits == LIVE_NOTHING)
			break;
		t = holder;
	}
	return t;
}

static const struct live_thread *main_thread(const struct live *out)
{
	for (size_t i = 0; i < out->n; i++)
		if (out->thread[i].main && (out->thread[i].python || !out->python))
			return &out->thread[i];
	for (size_t i = 0; i < out->n; i++)
		if (out->thread[i].python)
			return &out->thread[i];
	return out->n ? &out->thread[0] : NULL;
}

static void judge(struct live *out, struct process_look *l, struct pool *pool)
{
	const struct live_thread *main = main_thread(out), *end;

	find_circle(out, l, pool);
	if (out->deadlock || !main)
		return;
	out->works = main;
	if (main->moved || main->waits == LIVE_NOTHING)
		return;
	end = end_of_chain(out, main);
	if (end->moved || end->waits == LIVE_NOTHING) {
		out->works = end;
		return;
	}
	if ((waits_inside(end) || end->waits == LIVE_LOOP) && find_worker(out, end)) {
		out->works = find_worker(out, end);
		return;
	}
	out->works = NULL;
	if (waits_inside(end)) {
		const struct live_thread *runner = find_runner(out, end);

		out->outside = find_outside(out, end);
		if (runner) {
			out->stuck = runner;
			return;
		}
	}
	if ((end->peer && end->waits != LIVE_STOPPED) || waits_for_process(end) || may_wait_for_kin(end) ||
	    (out->outside && waits_for_process(out->outside)))
		out->peer_works = (uint32_t)kin_works((pid_t)out->pid, (pid_t)end->peer);
	if (out->peer_works)
		return;
	out->stuck = end;
	out->wakes = what_wakes(out, end, l, pool);
}

static char *link_text(pid_t pid, const char *name, struct pool *pool)
{
	char path[64], to[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	n = readlink(path, to, sizeof(to) - 1);
	return n > 0 ? pool_copy(pool, to, (size_t)n) : pool_strdup(pool, "");
}

static char *command_line(pid_t pid, struct pool *pool)
{
	char path[64], text[COMMAND_MAX];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	while (n && !text[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	return pool_copy(pool, text, n);
}

static bool is_own(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Another user's libraries are not given to libdw, which trusts them more than we do. */
static struct unwinder *open_unwinder(struct process_look *l, const char **why)
{
	*why = "the process belongs to another user";
	return is_own(l->pid) ? unwind_open(&l->target, &l->remote, why) : NULL;
}

static void order_threads(struct process_look *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->thread[i].task.tid == (uint32_t)l->pid) {
			struct seen main = l->thread[i];

			memmove(&l->thread[1], &l->thread[0], i * sizeof(main));
			l->thread[0] = main;
		}
}

void live_threads(struct live *out, struct process_look *l, bool native, struct pool *pool)
{
	struct source_book book = {.foreign = !is_own(l->pid)};	/* others may name any file of ours */
	struct unwinder *u = NULL;

	order_threads(l);
	*out = (struct live){
		.pid = (uint32_t)l->pid, .looks = l->looks, .stops = l->stops, .longest_stop_ns = l->longest_stop_ns};
	out->seconds = (double)(l->last_ns - l->first_ns) / 1e9;
	out->command = command_line(l->pid, pool);
	out->user_cwd = book.cwd = link_text(l->pid, "cwd", pool);
	if (l->py.found)
		out->python = pool_printf(pool, "3.%u.%u", (l->py.version >> 16) & 0xff, (l->py.version >> 8) & 0xff);
	else
		out->no_python = pool_strdup(pool, l->py.why);
	out->thread = pool_alloc(pool, (l->n + 1) * sizeof(*out->thread));
	remote_forget(&l->remote);
	if (native)
		u = open_unwinder(l, &out->no_native);
	for (size_t i = 0; i < l->n; i++) {
		if (l->thread[i].gone)
			continue;
		tell_thread(&out->thread[out->n], out, l, &l->thread[i], u, &book, pool);
		out->cpu += out->thread[out->n].cpu;
		out->n++;
	}
	for (size_t i = 0; i < out->n; i++) {
		const struct seen *s = look_thread(l, out->thread[i].tid);
		const struct seen *holder = look_state(l, pyproc_gil_holder(&l->py, s->py.gil));

		thread_holder(&out->thread[i], l, s);
		out->thread[i].gil = holder == s;
	}
	unwind_close(u);
	source_book_release(&book);
}

void live_tell(struct live *out, struct process_look *l, struct pool *pool)
{
	live_threads(out, l, true, pool);
	judge(out, l, pool);
}
