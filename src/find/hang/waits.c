/* SPDX-License-Identifier: Apache-2.0
 * What one thread waits for: from its system call, its native stack and its Python stack, in this order of authority: the libraries on the
 * native stack (a wait for the GPU ends in a futex like any other), then the function of Python's library, then the system call.
 */
#include "find/hang/waits.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <fcntl.h>

#include "base/str.h"
#include "read/live/fds.h"
#include "read/live/look.h"
#include "read/live/pyloop.h"

#define IDLE_CPU	0.05	/* less of a processor: it wakes up now and then, but does not run */

#define CALLS(X)                                                                                                     \
	X(read, DESCRIPTOR) X(pread64, DESCRIPTOR) X(readv, DESCRIPTOR) X(write, DESCRIPTOR) X(writev, DESCRIPTOR)   \
	X(recvfrom, DESCRIPTOR) X(recvmsg, DESCRIPTOR) X(sendto, DESCRIPTOR) X(sendmsg, DESCRIPTOR)                  \
	X(connect, DESCRIPTOR) X(ioctl, DESCRIPTOR) X(fsync, DESCRIPTOR) X(fdatasync, DESCRIPTOR)                    \
	X(accept, ACCEPT) X(accept4, ACCEPT) X(ppoll, POLL) X(pselect6, SELECT) X(epoll_pwait, EPOLL)                \
					X(futex, FUTEX) X(semtimedop, FUTEX) X(semop, FUTEX) X(nanosleep, SLEEP) \
						X(clock_nanosleep, SLEEP) X(rt_sigtimedwait, SIGNAL) \
							X(rt_sigsuspend, SIGNAL) X(wait4, CHILD) X(waitid, CHILD) \
	X(flock, FLOCK) X(fcntl, FCNTL) X(openat, OPEN) X(sched_yield, YIELD)

/* Newer processors never had these. */
#ifdef SYS_poll
#define OLD_CALLS(X) X(poll, POLL) X(select, SELECT) X(epoll_wait, EPOLL) X(open, OPEN) X(pause, SIGNAL)
#else
#define OLD_CALLS(X)
#endif

enum call_kind { CALL_DESCRIPTOR, CALL_ACCEPT, CALL_POLL, CALL_SELECT, CALL_EPOLL, CALL_FUTEX, CALL_SLEEP, CALL_CHILD, CALL_FLOCK,
	CALL_FCNTL,
	CALL_OPEN,
	CALL_YIELD,
	CALL_SIGNAL
};

static const struct { long number; const char *name; enum call_kind kind; } calls[] = {
#define X(name, kind) {SYS_##name, #name, CALL_##kind},
	CALLS(X) OLD_CALLS(X)
#undef X
};

static enum live_waits of_descriptor(enum fd_kind kind)
{
	switch (kind) {
	case FD_PIPE: return LIVE_PIPE;
	case FD_SOCKET: return LIVE_SOCKET;
	case FD_LISTENS: return LIVE_ACCEPT;
	case FD_TERMINAL: return LIVE_TERMINAL;
	case FD_GPU: return LIVE_CUDA;
	case FD_FILE: return LIVE_FILE;
	case FD_DEVICE: return LIVE_DEVICE;
	default: return LIVE_UNKNOWN;
	}
}

static void tell_peer(struct live_thread *t, pid_t peer, struct pool *pool)
{
	const char *command = peer > 0 ? process_command(peer, pool) : NULL;
	struct task task;

	if (peer <= 0)
		return;
	t->peer = (uint32_t)peer;
	if (!task_read(peer, (uint32_t)peer, &task))
		t->peer_text = "it is gone";
	else if (task.state == 'Z')
		t->peer_text = "it has ended, and its parent has not waited for it yet";
	else if (task.state == 'T' || task.state == 't')
		t->peer_text = "it is stopped";
	else if (command && command[0])
		t->peer_text = command;
}

static void wait_descriptor(struct live_thread *t, pid_t pid, int fd, struct pool *pool)
{
	struct fd_told told = fd_tell(pid, fd, pool);

	t->waits = of_descriptor(told.kind);
	if (told.text)
		t->what = pool_printf(pool, "descriptor %d, %s", fd, told.text);
	t->alone = told.alone;
	t->public = told.public;
	if (told.alone && told.kind == FD_PIPE)
		t->peer_text = "no other process has this pipe open";
	tell_peer(t, told.peer, pool);
}

/* Does the call return after a while, whatever happens? A limit is a number of milliseconds, or where it is a pointer, none is no pointer. */
static bool has_limit(const struct task *k)
{
	switch (k->call) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return true;
#ifdef SYS_poll
	case SYS_poll:
		return (int)k->arg[2] >= 0;
	case SYS_select:
		return k->arg[4] != 0;
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		return (int)k->arg[3] >= 0;
	case SYS_ppoll:
	case SYS_rt_sigtimedwait:
		return k->arg[2] != 0;
	case SYS_futex:
	case SYS_semtimedop:
		return k->arg[3] != 0;
	case SYS_pselect6:
		return k->arg[4] != 0;
	default:
		return false;
	}
}

static void wait_poll(struct live_thread *t, struct process_look *l, const struct task *k, struct pool *pool)
{
	struct pollfd p;

	if (k->arg[1] == 0) {
		t->waits = has_limit(k) ? LIVE_SLEEP : LIVE_SIGNAL;
	} else if (remote_read(&l->remote, k->arg[0], &p, sizeof(p))) {
		wait_descriptor(t, l->pid, p.fd, pool);
		if (k->arg[1] > 1)
			t->what = pool_printf(pool, "%llu descriptors; the first: %s", (unsigned long long)k->arg[1],
					      t->what ? t->what : "?");
	}
}

static void wait_select(struct live_thread *t, struct process_look *l, const struct task *k, struct pool *pool)
{
	fd_set set;

	t->waits = LIVE_EVENT;
	if (!k->arg[1] && !k->arg[2] && !k->arg[3])
		t->waits = has_limit(k) ? LIVE_SLEEP : LIVE_SIGNAL;
	else if (k->arg[1] && k->arg[0] <= FD_SETSIZE && remote_read(&l->remote, k->arg[1], &set, sizeof(set)))
		for (int fd = 0; fd < (int)k->arg[0]; fd++)
			if (FD_ISSET(fd, &set)) {
				wait_descriptor(t, l->pid, fd, pool);
				return;
			}
}

/* `open` of a named pipe returns when another process opens its other end. The file itself is not asked what it is: a file system
 * that does not answer the program would not answer us. */
static void wait_open(struct live_thread *t, struct process_look *l, const struct task *k, struct pool *pool)
{
	bool fifo = !strcmp(k->wchan, "wait_for_partner") || !strcmp(k->wchan, "fifo_open");
	char name[1024];

	t->waits = fifo ? LIVE_PIPE : LIVE_FILE;
	t->public = fifo;
	if (fifo)
		t->peer_text = "no process has opened its other end yet";
	if (!remote_string(&l->remote, k->arg[k->call == SYS_openat], name, sizeof(name)))
		return;
	str_make_line(name);
	t->what = pool_printf(pool, "%s%s", fifo ? "the named pipe " : "", name);
}

static unsigned count_watched(pid_t pid, int epoll)
{
	char path[64], line[256];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, epoll);
	f = fopen(path, "re");
	if (!f)
		return UINT_MAX;
	while (fgets(line, sizeof(line), f))
		n += str_starts(line, "tfd:");
	fclose(f);
	return n;
}

static bool in_event_loop(const struct live_thread *t)
{
	for (size_t i = 0; i < t->n_stack; i++)
		if (str_ends(t->stack[i].file, "/asyncio/base_events.py"))
			return true;
	return false;
}

/* asyncio's loop always watches one descriptor, by which its own threads and signals wake it. If that is all, it waits for no peer. */
static void wait_epoll(struct live_thread *t, struct process_look *l, const struct task *k)
{
	t->waits = LIVE_EVENT;
	if (in_event_loop(t) && count_watched(l->pid, (int)k->arg[0]) <= 1)
		t->waits = (int)k->arg[3] < 0 ? LIVE_TASKS : LIVE_SLEEP;
}

/* A process that a wait is for: its own number, or any child. */
static void wait_child(struct live_thread *t, const struct task *k, struct pool *pool)
{
	int child = k->call == SYS_wait4 ? (int)k->arg[0] : k->arg[0] == 1 ? (int)k->arg[1] : -1;

	t->waits = LIVE_PROCESS;
	tell_peer(t, child, pool);
}

static void wait_lock_of_file(struct live_thread *t, pid_t pid, int fd, struct pool *pool)
{
	struct fd_told told = fd_tell(pid, fd, pool);
	pid_t holder = fd_lock_holder(pid, fd);

	t->waits = LIVE_FILE_LOCK;
	t->what = told.text;
	t->alone = holder == pid;
	if (t->alone)
		t->peer_text = "it is this process itself, which has the file open twice";
	else
		tell_peer(t, holder, pool);
}

static void wait_call(struct live_thread *t, struct process_look *l, const struct task *k, struct pool *pool)
{
	size_t i = 0;

	while (i < sizeof(calls) / sizeof(calls[0]) && calls[i].number != k->call)
		i++;
	t->waits = LIVE_UNKNOWN;
	if (i == sizeof(calls) / sizeof(calls[0])) {
		t->call = pool_printf(pool, "system call %ld", k->call);
		return;
	}
	t->call = calls[i].name;
	switch (calls[i].kind) {
	case CALL_DESCRIPTOR: wait_descriptor(t, l->pid, (int)k->arg[0], pool); break;
	case CALL_ACCEPT: wait_descriptor(t, l->pid, (int)k->arg[0], pool); t->waits = LIVE_ACCEPT; break;
	case CALL_POLL: wait_poll(t, l, k, pool); break;
	case CALL_SELECT: wait_select(t, l, k, pool); break;
	case CALL_EPOLL: wait_epoll(t, l, k); break;
	case CALL_FUTEX:
		t->waits = LIVE_LOCK;
		t->shared = k->call == SYS_futex && !(k->arg[1] & FUTEX_PRIVATE_FLAG);
		break;
	case CALL_SLEEP: t->waits = LIVE_SLEEP; break;
	case CALL_SIGNAL: t->waits = has_limit(k) ? LIVE_SLEEP : LIVE_SIGNAL; break;
	case CALL_CHILD: wait_child(t, k, pool); break;
	case CALL_FLOCK: wait_lock_of_file(t, l->pid, (int)k->arg[0], pool); break;
	case CALL_FCNTL:
		wait_descriptor(t, l->pid, (int)k->arg[0], pool);
		if (k->arg[1] == F_SETLKW || k->arg[1] == F_OFD_SETLKW)
			wait_lock_of_file(t, l->pid, (int)k->arg[0], pool);
		break;
	case CALL_OPEN: wait_open(t, l, k, pool); break;
	case CALL_YIELD: t->waits = LIVE_NATIVE; break;
	}
}

static const struct { const char *file, *function; enum live_waits waits; } python_waits[] = {
#define PY_WAIT(file, function, waits) {file, function, LIVE_##waits},
#include "kb/python_waits.def"
};

/* The outermost frame that is listed, of those that the user's own code called: what it asked for. */
static enum live_waits wait_by_python(const struct live_thread *t, const char *torch_path)
{
	enum live_waits waits = LIVE_NOTHING;

	for (size_t i = 0; i < t->n_stack; i++) {
		const struct line *l = &t->stack[i];

		for (size_t k = 0; k < sizeof(python_waits) / sizeof(python_waits[0]); k++)
			if (l->function && str_ends(l->file, python_waits[k].file) &&
			    !strcmp(l->function, python_waits[k].function))
				waits = python_waits[k].waits;
		if (frame_owner(l->file, torch_path) == OWNER_USER)
			break;
	}
	return waits;
}

/* Frames of NVIDIA's libraries that are further in than Python's interpreter. */
static enum live_waits wait_by_native(const struct live_thread *t, const struct native_frame **of)
{
	for (size_t i = 0; i < t->n_native; i++) {
		*of = &t->native[i];
		if (str_starts((*of)->library, "libnccl"))
			return LIVE_COLLECTIVE;
		if (str_starts((*of)->library, "libcuda.so"))
			return LIVE_CUDA;
		if ((*of)->function && str_starts((*of)->function, "_PyEval_EvalFrame"))
			break;
	}
	return LIVE_NOTHING;
}

static bool waits_for_gil(const struct seen *s)
{
	return s->task.in_call && s->task.call == SYS_futex && s->py.gil && s->task.arg[0] - s->py.gil < s->py.gil_size;
}

static bool is_interpreter(const struct native_frame *f)
{
	return f && f->function && str_starts(f->function, "_PyEval_EvalFrame");
}

/* Who called the C library: memory that it moves or gives back is its caller's. NULL: the stack is not known. */
static const struct native_frame *top_frame(const struct live_thread *t)
{
	for (size_t i = 0; i < t->n_native; i++) {
		const char *library = t->native[i].library;

		if (!str_starts(library, "libc.so") && !str_starts(library, "libc-") && !str_starts(library, "ld-") &&
		    !str_starts(library, "[vdso]"))
			return &t->native[i];
	}
	return NULL;
}

/* Without a loop around it, the one place at which a function was seen each time is a call. */
static bool in_one_call(struct process_look *l, const struct seen *s)
{
	remote_forget(&l->remote);
	return s->n_last && s->last[0].raw.code == s->own_code && s->low == s->high &&
	       pyloop_is_none(&l->py, s->own_code, s->low, s->high);
}

/* A running thread that did not move: in Python's own code, or in some other library? */
static void wait_running(struct live_thread *t, struct process_look *l, struct seen *s, struct pool *pool)
{
	uint64_t bytes = s->task.bytes - s->first.bytes, holder;
	const struct native_frame *top = top_frame(t);
	bool python = !top || strstr(top->library, "python") ||
		      (l->target.n_modules && !strcmp(l->target.module[0].base, top->library));

	/* without frames nothing tells whether it moved: native code at work, or an interpreter that ends */
	t->waits = s->moved || !s->least_line || !seen_enough(s) ? LIVE_NOTHING : python ? LIVE_LOOP : LIVE_NATIVE;
	if (t->waits == LIVE_NOTHING)
		return;
	holder = pyproc_gil_holder(&l->py, s->py.gil);
	if (t->cpu < IDLE_CPU && holder && holder != s->py.state) {	/* it wakes up now and then to ask for it */
		t->waits = LIVE_GIL;
		return;
	}
	/* a call that was seen in every sample, and that reads or writes each time, is called by a loop */
	if (t->waits == LIVE_NATIVE && bytes && !in_one_call(l, s))
		t->waits = LIVE_LOOP;
	/* a builtin is a part of the interpreter's file, but no loop of the program's */
	if (t->waits == LIVE_LOOP && !is_interpreter(top) && (in_one_call(l, s) || (!bytes && look_one_instruction(l, s))))
		t->waits = LIVE_NATIVE;
	if (t->waits == LIVE_LOOP && s->library_moved)
		t->changes = "variables of a function of Python's library that it called";
	else if (t->waits == LIVE_LOOP && s->task.bytes > s->first.bytes)
		t->changes = pool_printf(pool, "it read or wrote %llu bytes", (unsigned long long)bytes);
}

/* It was woken since the first look, in a call without a time limit: what it waits for arrives. One that slept elsewhere then went to sleep
 * here since, which is no progress yet. */
static bool was_served(const struct live_thread *t, const struct seen *s)
{
	bool transfers = s->task.call == SYS_read || s->task.call == SYS_write || s->task.call == SYS_recvfrom ||
			 s->task.call == SYS_recvmsg || s->task.call == SYS_sendto || s->task.call == SYS_sendmsg ||
			 s->task.call == SYS_accept || s->task.call == SYS_accept4;
	bool of_other = t->waits == LIVE_PIPE || t->waits == LIVE_SOCKET || t->waits == LIVE_ACCEPT ||
			t->waits == LIVE_FILE || t->waits == LIVE_WORKER;

	bool here = s->first.in_call && s->first.call == s->task.call && s->first.arg[0] == s->task.arg[0];

	return s->task.in_call && transfers && of_other && s->task.switches - s->first.switches >= (here ? 1 : 2);
}

static bool sleeps_in_lock(const struct live_thread *t)
{
	return t->waits == LIVE_LOCK || t->waits == LIVE_EVENT || t->waits == LIVE_UNKNOWN || t->waits == LIVE_SLEEP ||
	       t->waits == LIVE_SIGNAL;
}

/* Python says more than the call, where the call is only how it is done. */
static void refine(struct live_thread *t, enum live_waits python)
{
	bool wait_for_other = python == LIVE_PROCESS || python == LIVE_WORKER;

	if (python == LIVE_NOTHING)
		return;
	if (sleeps_in_lock(t) || python == LIVE_STORE || python == LIVE_COLLECTIVE || python == LIVE_CUDA ||
	    (wait_for_other && (t->waits == LIVE_PIPE || t->waits == LIVE_SOCKET || t->waits == LIVE_PROCESS)))
		t->waits = python;
}

void thread_waits(struct live_thread *t, struct process_look *l, struct seen *s, struct pool *pool)
{
	const struct native_frame *of = NULL;
	enum live_waits native = wait_by_native(t, &of);

	if (s->task.state == 'T' || s->task.state == 't') {
		t->waits = LIVE_STOPPED;
		tell_peer(t, s->task.state == 't' ? s->task.tracer : 0, pool);
		return;
	}
	if (s->task.in_call)
		wait_call(t, l, &s->task, pool);
	else
		wait_running(t, l, s, pool);
	if (native != LIVE_NOTHING && !s->moved) {
		t->waits = native;
		t->what = of->function ? pool_printf(pool, "%s in %s", of->function, of->library) : of->library;
	} else if (s->task.in_call) {
		if (waits_for_gil(s))
			t->waits = LIVE_GIL;
		else
			refine(t, wait_by_python(t, l->torch_path));
	}
	t->timed = s->task.in_call && t->waits != LIVE_GIL && has_limit(&s->task);
	t->moved |= was_served(t, s);
}
