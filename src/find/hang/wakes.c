/* SPDX-License-Identifier: Apache-2.0
 * What may wake a thread that waits (see wakes.h).
 */
#include "find/hang/wakes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "case/line.h"
#include "read/live/fds.h"
#include "find/input_live.h"
#include "read/live/kin.h"
#include "read/live/look.h"
#include "read/live/pyloop.h"
#include "find/hang/waits.h"

#define LEFT_OUT "some of its Python threads could not be read"
#define KIN_LOOKED_AT	64u	/* more processes are not looked at: there may be hundreds of workers, all alike */

static const struct { const char *file, *function; } helpers[] = {
#define PY_HELPER(file, function) {file, function},
#include "kb/python_helpers.def"
};

static bool is_helper(const struct line *l)
{
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
		if (l->function && str_ends(l->file, helpers[i].file) && !strcmp(l->function, helpers[i].function))
			return true;
	return false;
}

bool only_helps(const struct live_thread *t)
{
	for (size_t i = 0; i < t->n_stack; i++)
		if (is_helper(&t->stack[i]))
			return true;
	return false;
}

/* What a forked child runs begins here; below are the frames of its parent. */
static bool is_start_of_child(const struct line *l)
{
	return l->function && str_ends(l->file, "/multiprocessing/process.py") && !strcmp(l->function, "_bootstrap");
}

/* May it do anything for the program when it goes on? The threads of PyTorch and the helpers of other packages only look after
 * themselves, unless code of the program's is on their stack. Without Python, nothing tells threads apart. */
static bool may_act(const struct live *of, const struct live_thread *t, const char *torch_path)
{
	bool helps = false;

	if (!of->python)
		return true;
	for (size_t i = 0; i < t->n_stack && !is_start_of_child(&t->stack[i]); i++) {
		enum owner owner = frame_owner(t->stack[i].file, torch_path);

		if (owner == OWNER_USER || t->stack[i].typed)
			return true;
		helps |= owner == OWNER_TORCH || is_helper(&t->stack[i]);
	}
	return t->python && !helps;
}

/* Does it wait with a time limit that its program has set? PyTorch's own only serve to check whether its workers are still alive;
 * then it waits again. */
static bool has_own_limit(const struct live_thread *t, const char *torch_path)
{
	for (size_t i = 0; i < t->n_stack; i++) {
		enum owner owner = frame_owner(t->stack[i].file, torch_path);

		if (owner != OWNER_STDLIB && (owner != OWNER_GENERATED || t->stack[i].typed))
			return t->timed && owner != OWNER_TORCH;
	}
	return t->timed;
}

static const char *const native_helpers[] = {
#define NATIVE_HELPER(name) name,
#include "kb/native_helpers.def"
};

static const char *const native_servers[] = {
#define NATIVE_SERVER(name) name,
#include "kb/native_helpers.def"
};

static bool is_native_server(const struct live_thread *t)
{
	for (size_t i = 0; i < t->n_native; i++)
		for (size_t k = 0; t->native[i].function && k < sizeof(native_servers) / sizeof(native_servers[0]); k++)
			if (strstr(t->native[i].function, native_servers[k]))
				return true;
	return false;
}

static bool is_native_helper(const char *library)
{
	for (size_t i = 0; i < sizeof(native_helpers) / sizeof(native_helpers[0]); i++)
		if (str_starts(library, native_helpers[i]))
			return true;
	return false;
}

/* The library that made the thread: the outermost one on its stack that may call a function of the program's; NULL = none. */
static const char *foreign_library(const struct live_thread *t, const struct process_look *l)
{
	const char *found = NULL;

	for (size_t i = 0; i < t->n_native; i++)
		if (!is_native_helper(t->native[i].library) && strcmp(t->native[i].library, l->target.module[0].base) != 0)
			found = t->native[i].library;
	return found;
}

/* Only something outside the process wakes it; but the pipe or the local socket to its parent is not outside. */
static bool waits_outside(const struct live_thread *t)
{
	return t->waits == LIVE_ACCEPT || t->waits == LIVE_TERMINAL || t->waits == LIVE_EVENT ||
	       t->waits == LIVE_UNKNOWN || t->waits == LIVE_SIGNAL || t->waits == LIVE_DEVICE ||
	       t->public || (t->waits == LIVE_SOCKET && t->what && !str_ends(t->what, LOCAL_SOCKET));
}

static const char *at_line(const struct live_thread *t, struct pool *pool)
{
	return t->line.file ? pool_printf(pool, " at %s:%u", t->line.shown, t->line.number) : "";
}

static const char *what_it_does(const struct live_thread *t, struct pool *pool)
{
	if (t->waits == LIVE_SLEEP)
		return pool_printf(pool, "sleeps%s, and goes on by itself", at_line(t, pool));
	if (t->timed)
		return pool_printf(pool, "waits for %s%s with a time limit, and goes on by itself",
				   live_waits_text(t->waits), at_line(t, pool));
	return pool_printf(pool, "waits for %s%s", live_waits_text(t->waits), at_line(t, pool));
}

/* Does it go on by itself, or when the signal for which it waits is sent? */
static bool may_go_on(const struct live_thread *t, const char *torch_path)
{
	return has_own_limit(t, torch_path) || t->waits == LIVE_SIGNAL;
}

/* A thread that waits for something outside the process, or with a time limit, may then call into Python. */
static const char *of_native_threads(const struct live *of, const struct live_thread *waits,
				     const struct process_look *l, struct pool *pool)
{
	for (size_t i = 0; of->python && i < of->n; i++) {
		const struct live_thread *t = &of->thread[i];
		const char *library = !t->python && (t->timed || waits_outside(t)) ? foreign_library(t, l) : NULL;

		if (library)
			return pool_printf(pool, "%s of %s %s, and may call a function of the program's",
					   live_thread_name(t, pool), library, what_it_does(t, pool));
		if (waits->waits == LIVE_CONDITION && !t->python && is_native_server(t))
			return pool_printf(pool, "%s serves other processes, which may be all that the program does",
					   live_thread_name(t, pool));
	}
	return NULL;
}

static const char *of_threads(const struct live *of, const struct live_thread *but, const char *torch_path,
			      struct pool *pool)
{
	for (size_t i = 0; i < of->n; i++) {
		const struct live_thread *t = &of->thread[i];

		if (t != but && may_go_on(t, torch_path) && may_act(of, t, torch_path))
			return pool_printf(pool, "%s %s", live_thread_name(t, pool), what_it_does(t, pool));
	}
	return NULL;
}

/* Those that a program handles in order to be told something. Not: what crashes it, SIGINT, which Python always handles, SIGCHLD, which
 * PyTorch's DataLoader does. */
static const struct { int number; const char *name; } signals[] = {
	{SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"},   {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
	{SIGALRM, "SIGALRM"}, {SIGQUIT, "SIGQUIT"}, {SIGIO, "SIGIO"},
};

/* Waits that a handler of a signal may end: it runs in the main thread, and sets an event or a variable. */
static bool ends_by_signal(const struct live_thread *t)
{
	return t->waits == LIVE_CONDITION || t->waits == LIVE_TASKS || t->waits == LIVE_LOOP;
}

/* `which`: as in its status, "SigCgt:". */
static unsigned long long signals_of(pid_t pid, const char *which)
{
	unsigned long long set = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (str_starts(line, which)) {
			set = strtoull(line + strlen(which), NULL, 16);
			break;
		}
	if (f)
		fclose(f);
	return set;
}

static unsigned long long caught_signals(pid_t pid)
{
	return signals_of(pid, "SigCgt:");
}

static bool has_signal(unsigned long long set, int number)
{
	return set >> (number - 1) & 1;
}

/* `who`: "the program", "process 12 (...)". */
static const char *of_signals(pid_t pid, const char *who, struct pool *pool)
{
	unsigned long long caught = caught_signals(pid);

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (has_signal(caught, signals[i].number))
			return pool_printf(pool, "%s handles %s, and its handler may end the wait", who, signals[i].name);
	return NULL;
}

static const char *process_text(pid_t pid, struct pool *pool)
{
	const char *command = process_command(pid, pool);

	return command && command[0] ? pool_printf(pool, "process %d (%s)", (int)pid, command)
				     : pool_printf(pool, "process %d", (int)pid);
}

/* One look: whether it moves was asked before (kin_works). */
static const char *of_process(pid_t pid, struct pool *pool)
{
	struct look_options o = {.no_stop = true};
	const char *text = NULL;
	struct process_look l;
	struct live told;
	struct err e = {0};

	if (look_open(&l, pid, &o, &e) != 0)
		return NULL;	/* it has ended, or is not ours to look at */
	if (look_once(&l)) {
		live_threads(&told, &l, false, pool);
		for (size_t i = 0; i < told.n && !text; i++) {
			const struct live_thread *t = &told.thread[i];

			if ((has_own_limit(t, l.torch_path) || waits_outside(t)) && may_act(&told, t, l.torch_path))
				text = pool_printf(pool, "%s %s", process_text(pid, pool), what_it_does(t, pool));
		}
		for (size_t i = 0; i < told.n && !text; i++)
			if (told.thread[i].main && ends_by_signal(&told.thread[i]))
				text = of_signals(pid, process_text(pid, pool), pool);
	}
	look_close(&l);
	return text;
}

static const char *of_processes(const struct live *of, const struct live_thread *t, struct pool *pool)
{
	pid_t list[KIN_LOOKED_AT];
	size_t n = kin_list((pid_t)of->pid, (pid_t)t->peer, list, KIN_LOOKED_AT);
	const char *text = NULL;

	for (size_t i = 0; i < n && !text; i++)
		text = of_process(list[i], pool);
	return text;
}

static bool of_other_process(const struct live_thread *t)
{
	return !t->alone && (t->waits == LIVE_PROCESS || t->waits == LIVE_WORKER || t->waits == LIVE_PIPE ||
			     t->waits == LIVE_FILE_LOCK || t->waits == LIVE_LOOP || t->waits == LIVE_COLLECTIVE ||
			     t->waits == LIVE_STORE || t->shared);
}

static bool of_other_thread(const struct live_thread *t)
{
	return waits_inside(t) || t->waits == LIVE_WORKER || t->waits == LIVE_PIPE || t->waits == LIVE_SOCKET ||
	       t->waits == LIVE_LOOP;
}

/* What its loop asks may have another answer the next time. */
static const char *of_loop(const struct live_thread *t, struct process_look *l, struct pool *pool)
{
	const struct seen *s = t->waits == LIVE_LOOP ? look_thread(l, t->tid) : NULL;

	const char *called, *text;

	if (!s || !s->own_code)
		return NULL;
	remote_forget(&l->remote);
	text = pyloop_may_end(&l->py, s->own_code, s->low, s->high, pool);
	called = text ? NULL : look_called(l, s);
	return called ? pool_printf(pool, "it calls %s in this loop, which may return something else each time", called)
		      : text;
}

const char *what_wakes(const struct live *of, const struct live_thread *t, struct process_look *l, struct pool *pool)
{
	const char *text = NULL;

	if (of_other_thread(t) || of_other_process(t)) {
		if (has_own_limit(t, l->torch_path))
			return pool_printf(pool, "%s %s", live_thread_name(t, pool), what_it_does(t, pool));
	}
	if (l->some_left_out)
		return LEFT_OUT;
	if (t->public)
		return "it is a named pipe, which any process may open";
	if (of_other_thread(t))
		text = of_threads(of, t, l->torch_path, pool);
	if (!text && of_other_thread(t))
		text = of_native_threads(of, t, l, pool);
	if (!text && of_other_process(t))
		text = of_processes(of, t, pool);
	if (!text && ends_by_signal(t))
		text = of_signals((pid_t)of->pid, "the program", pool);
	return text ? text : of_loop(t, l, pool);
}

/* These are not sent to end a wait: what crashes it, an interrupt from the keyboard, which Python always handles, and the two
 * that the C library keeps for itself. */
static unsigned long long unsent(void)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGINT, 32, 33};
	unsigned long long set = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		set |= 1ull << (numbers[i] - 1);
	return set;
}

static const char *signal_text(int number, struct pool *pool)
{
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i].number == number)
			return signals[i].name;
	return number == SIGCHLD ? "SIGCHLD" : pool_printf(pool, "signal %d", number);
}

/* Those that its timers send, unless it ignores them: a handler runs, or the program ends, or a thread of the C library calls a function. */
static unsigned long long timer_signals(pid_t pid)
{
	unsigned long long set = 0;
	char path[64], line[256];
	int number;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/timers", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "signal: %d/", &number) == 1 && number >= 1 && number <= 64)
			set |= 1ull << (number - 1);
	if (f)
		fclose(f);
	return set & ~signals_of(pid, "SigIgn:");
}

/* Those that timers are known to send, or may: what alarm() and setitimer() have set cannot be seen from outside. */
static unsigned long long sent_by_timers(pid_t pid)
{
	unsigned long long set = timer_signals(pid) | 1ull << (SIGALRM - 1);

	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		set |= 1ull << (number - 1);
	return set;
}

/* The handler of a signal may raise an exception, or release what is waited for. SIGCHLD comes when a child ends. 0 = none. */
static int handled_signal(pid_t pid, bool *of_timer)
{
	unsigned long long caught = caught_signals(pid) & ~unsent(), timed = caught & sent_by_timers(pid);
	pid_t child;

	*of_timer = timed != 0;
	caught = timed ? timed : caught;
	for (int number = 1; number <= 64; number++)
		if (has_signal(caught, number) && (number != SIGCHLD || kin_list(pid, 0, &child, 1)))
			return number;
	return 0;
}

/* It does not wait, without a time limit, for another thread of the process: it may go on, and end what others wait for, or the program. What time limit
 * a socket has (SO_RCVTIMEO) cannot be seen from outside. */
static bool goes_on(const struct live_thread *t)
{
	return !t->in_circle && t->state != 'Z' && (t->timed || t->waits == LIVE_SOCKET || !waits_inside(t));
}

/* The thread that does nothing but wait for its time is of Python's own library: faulthandler's watchdog. */
static bool is_watchdog(const struct live_thread *t, const struct process_look *l)
{
	bool python = false;

	for (size_t i = 0; i < t->n_native; i++) {
		const char *library = t->native[i].library;

		python |= !strcmp(library, l->target.module[0].base) || str_starts(library, "libpython");
		if (!is_native_helper(library) && strcmp(library, l->target.module[0].base) != 0)
			return false;
	}
	return python && t->timed && !t->python;
}

static const char *of_who_goes_on(const struct live *of, struct process_look *l, struct pool *pool)
{
	static const struct live_thread nobody;

	for (size_t i = 0; i < of->n; i++) {
		const struct live_thread *t = &of->thread[i];

		if (goes_on(t) && may_act(of, t, l->torch_path))
			return pool_printf(pool, "%s %s", live_thread_name(t, pool),
					   t->waits == LIVE_NOTHING ? "works" : what_it_does(t, pool));
		if (is_watchdog(t, l))
			return pool_printf(pool, "%s is a watchdog of Python's, which may end the program",
					   live_thread_name(t, pool));
	}
	return of_native_threads(of, &nobody, l, pool);
}

static const char *of_children(pid_t pid, struct pool *pool)
{
	pid_t list[KIN_LOOKED_AT];
	size_t n = kin_list(pid, 0, list, KIN_LOOKED_AT);
	const char *text = NULL;

	for (size_t i = 0; i < n && !text; i++)
		text = of_process(list[i], pool);
	return text;
}

static const struct live_thread *timed_in_circle(const struct live *of)
{
	for (size_t i = 0; i < of->n; i++)
		if (of->thread[i].in_circle && of->thread[i].timed)
			return &of->thread[i];
	return NULL;
}

const char *what_ends_circle(const struct live *of, struct process_look *l, struct pool *pool, bool *itself)
{
	const struct live_thread *t = timed_in_circle(of);
	const char *who, *handler;
	bool of_timer;
	int number;

	*itself = true;
	if (t)
		return pool_printf(pool, "%s %s", live_thread_name(t, pool), what_it_does(t, pool));
	number = handled_signal(l->pid, &of_timer);
	handler = number ? pool_printf(pool, "the program handles %s%s, and its handler may end the wait",
				       signal_text(number, pool), of_timer ? ", which a timer may send" : "")
			 : NULL;
	if (of_timer)
		return handler;
	if (timer_signals(l->pid))
		return "a timer of the program's sends it a signal, which may end the program";
	who = l->some_left_out ? LEFT_OUT : of_who_goes_on(of, l, pool);
	if (!who)
		who = of_children(l->pid, pool);
	if (number && who)
		return pool_printf(pool, "%s; %s", handler, who);
	*itself = who && of->n && of->thread[0].main && goes_on(&of->thread[0]);
	return who ? who : handler;
}
