/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy run --hang-after`: a process that waits too long for the GPU.
 *
 * When a process has waited too long, and nothing else of it progressed meanwhile, we request a core dump of the running GPU through the pipe on which its
 * driver listens. The dump ends the kernel (R580), so it is requested once, and only if the process still waits.
 * Then the program is ended, or continues with the error that follows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/children.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"
#include "run/run_waiters.h"
#include "read/dump/dump.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define MS_NS		1000000u
#define SECOND_NS	1000000000u
#define BUSY_MS		50		/* while a dump is being taken, or the program is being ended */
#define TERM_NS		(5ull * SECOND_NS)	/* from SIGTERM to SIGKILL */
#define GIVE_UP_NS	(15ull * SECOND_NS)	/* from SIGTERM: not even SIGKILL helped */
#define ASLEEP_NS	(5ull * SECOND_NS)	/* we look at least once a second */
#define HOURS_MAX	(24 * 365)
#define PIPE_BYTES	(1u << 20)	/* it took this much to trigger a dump (R580) */
#define FEED_MS		20		/* for a driver that is slow to read them */
#define DUMP_NS		(20ull * SECOND_NS)
#define STABLE_NS	(2ull * SECOND_NS)	/* a dump that has not grown for this long is complete */
#define SETTLED_NS	(300ull * MS_NS)	/* likewise, once the waiting call has returned */

int hang_parse(uint64_t *ns, const char *option, const char *text, struct err *e)
{
	static const struct { const char *unit; uint64_t seconds; } units[] = {
		{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
	size_t digits = strspn(text, "0123456789"), i;
	char number[16] = "";
	uint64_t n;

	if (digits < sizeof(number))
		memcpy(number, text, digits);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text + digits, units[i].unit) || !str_u64(number, &n) || n == 0 ||
		    n > HOURS_MAX * 3600 / units[i].seconds)
			continue;
		*ns = n * units[i].seconds * SECOND_NS;
		return 0;
	}
	err_set(e, -EINVAL, "--%s takes a time, not '%s'", option, text);
	return err_hint(e, "for example 90, 60s, 5m or 1h");
}

/* The recorder arms the pipe only if told to, in its own process. */
void hang_prepare(const struct hang *h, const struct server *s)
{
	if (h->limit_ns && s->dir)
		setenv("CUWHY_HANG", s->dir, 1);
	else
		unsetenv("CUWHY_HANG");
}

/* " (train.py:12)", or "" if the line is not known; owned by the caller. */
static char *place_text(const struct process *p, uint32_t stack)
{
	struct place at = {0};
	struct trace *t;
	size_t len;
	void *bytes = process_bytes(p, &len);
	char *text = NULL;

	t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;
	if (t && place_of_stack(t, stack, &at))
		text = xasprintf(" (%s:%u)", file_shown(at.file, trace_header(t)->cwd), at.line);
	trace_free(t);
	return text ? text : xstrdup("");
}

static void tell_hang(const struct hang *h, const struct process *p, const struct waiters *w, uint64_t now,
		      const char *place, const char *then)
{
	if (h->quiet)
		return;
	fprintf(stderr, "cuwhy: process %d has waited %llu s for the GPU in %s%s; %s\n", (int)p->pid,
		(unsigned long long)((now - w->list[0].wait.since_ns) / SECOND_NS), api_name(w->list[0].wait.api),
		place, then);
	fflush(stderr);
}

static void tell_no_dump(const struct hang *h, const struct process *p)
{
	if (!h->quiet)
		fprintf(stderr, "cuwhy: process %d: the driver wrote no core dump within %llu s\n", (int)p->pid,
			DUMP_NS / SECOND_NS);
}

/* Is it a file in our folder? The path comes from the recording, which is not trusted. */
static bool in_our_folder(const struct server *s, const char *path, const char *start)
{
	size_t n = s->dir ? strlen(s->dir) : 0;

	return n && strncmp(path, s->dir, n) == 0 && str_starts(path + n, start) && !strchr(path + n + 1, '/');
}

/* The pipe, open for writing; -1 if nothing listens on it. Never blocks. */
static int open_pipe(const struct server *s, const struct waiters *w)
{
	struct stat st;
	int fd;

	if (!in_our_folder(s, w->pipe_path, "/pipe-"))
		return -1;
	fd = open(w->pipe_path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* All at once, as long as the driver keeps reading: after a pause, more bytes would be another request. */
static void feed_pipe(int pipe)
{
	static const char bytes[65536];
	struct pollfd p = {.fd = pipe, .events = POLLOUT};
	size_t fed = 0;
	ssize_t n = 0;

	while (fed < PIPE_BYTES && n >= 0 && poll(&p, 1, FEED_MS) == 1) {
		n = write(pipe, bytes, PIPE_BYTES - fed < sizeof(bytes) ? PIPE_BYTES - fed : sizeof(bytes));
		fed += n > 0 ? (size_t)n : 0;
	}
	log_line("hang", 1, "%zu bytes written to the pipe", fed);
}

static void fill_record(struct cw_hang *r, const struct hang *h, const struct waiters *w, uint64_t now)
{
	*r = (struct cw_hang){.mono_ns = now, .flags = h->go_on ? 0 : CW_HANG_END, .n = (uint32_t)w->n};
	for (size_t i = 0; i < w->n; i++) {
		r->thread[i].tid = w->list[i].tid;
		r->thread[i].api = w->list[i].wait.api;
		r->thread[i].stack = w->list[i].wait.stack;
		r->thread[i].polls = w->list[i].polls;
		r->thread[i].waited_ns = now - w->list[i].wait.since_ns;
	}
}

/* No dump can be requested: the waiting lines and the suspects are all there will be. */
static void go_without(const struct hang *h, struct process *p, const struct waiters *w, uint64_t now, const char *place)
{
	struct process_hang *ph = &p->hang;
	char *then = xasprintf("no core dump can be taken: %s",
			       w->pipe_path[0] ? "the driver is not listening on its pipe" : reason_text(w->pipe_reason));

	tell_hang(h, p, w, now, place, then);
	free(then);
	ph->record.flags |= w->pipe_path[0] ? CW_HANG_NO_PIPE : 0;
	hang_write(p, &ph->record);
	ph->state = HANG_TOLD;
}

/* Requests a dump of the GPU that `p` waits for, or goes without if nothing listens. */
static void hang_ask(const struct hang *h, const struct server *s, struct process *p, const struct waiters *w)
{
	struct process_hang *ph = &p->hang;
	char *place = place_text(p, w->list[0].wait.stack);
	uint64_t now = proc_mono_ns();

	fill_record(&ph->record, h, w, now);
	ph->first = w->list[0];
	str_copy(ph->dump_path, sizeof(ph->dump_path), in_our_folder(s, w->dump_path, "/core-") ? w->dump_path : "");
	/* finding the line took a moment: a wait that has ended since is not a hang */
	if (!waiter_still(p, &w->list[0])) {
		free(place);
		return;
	}
	ph->pipe = fs_exists(ph->dump_path) ? -1 : open_pipe(s, w);
	if (ph->pipe < 0) {
		go_without(h, p, w, now, place);
	} else {
		tell_hang(h, p, w, now, place, "taking a core dump, which ends the kernel");
		ph->record.flags |= CW_HANG_TRIGGERED;
		hang_write(p, &ph->record);	/* before the dump, so that it is not taken for a fault */
		ph->state = HANG_ASKED;
		ph->asked_ns = ph->grown_ns = now;
		feed_pipe(ph->pipe);
	}
	free(place);
}

static bool dump_opens(const char *path)
{
	struct dump *d = dump_open(path, NULL);
	bool yes = d != NULL;

	dump_free(d);
	return yes;
}

static bool dump_is_complete(struct process *p, uint64_t now)
{
	struct process_hang *ph = &p->hang;
	struct stat st;

	if (!ph->dump_path[0] || stat(ph->dump_path, &st) != 0 || st.st_size == 0)
		return false;
	if ((uint64_t)st.st_size != ph->size) {
		ph->size = (uint64_t)st.st_size;
		ph->grown_ns = now;
	}
	return now - ph->grown_ns >= (waiter_still(p, &ph->first) ? STABLE_NS : SETTLED_NS) && dump_opens(ph->dump_path);
}

/* Watches the dump grow until it is complete, or gives up. */
static void hang_follow_dump(const struct hang *h, struct process *p, uint64_t now)
{
	struct process_hang *ph = &p->hang;
	bool complete = dump_is_complete(p, now);

	if (!complete && !p->ended && now - ph->asked_ns < DUMP_NS)
		return;
	if (!complete && !ph->size) {
		ph->record.flags |= CW_HANG_NO_DUMP;
		hang_write(p, &ph->record);
		tell_no_dump(h, p);
	}
	log_line("hang", 1, "dump of %d: %llu bytes", (int)p->pid, (unsigned long long)ph->size);
	close(ph->pipe);
	ph->pipe = -1;
	ph->state = HANG_TOLD;
}

/* The program, which only its parent may signal, and all of its processes that we know: the one that hangs may not be the one we
 * started. */
static void signal_all(const struct server *s, const struct child *c, const struct keeper *self, int sig)
{
	const struct process *p;

	for (size_t i = 0; i < s->n_processes; i++) {
		p = s->process[i];
		if (!p->ended && p->pid != c->pid)
			pidfd_signal(p->pidfd, sig);
	}
	if (!c->ended)
		keeper_ask_signal(self, sig);
}

static void end_program(struct hang *h, const struct server *s, const struct child *c, const struct keeper *self,
			uint64_t now)
{
	if (!h->ending_ns) {
		log_line("hang", 1, "ending the program");
		h->ending_ns = now;
		signal_all(s, c, self, SIGTERM);
	} else if (!h->killed && now - h->ending_ns >= TERM_NS) {
		h->killed = true;
		signal_all(s, c, self, SIGKILL);
	}
}

bool hang_is_ending(const struct hang *h, const struct server *s)
{
	bool alive = false;

	for (size_t i = 0; i < s->n_processes; i++)
		alive |= !s->process[i]->ended;
	return h->ending_ns && alive && proc_mono_ns() - h->ending_ns < GIVE_UP_NS;
}

static size_t count_hangs(const struct server *s, enum hang_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_processes; i++)
		n += s->process[i]->hang.state == state;
	return n;
}

/* Stopped by a terminal or a debugger: it is not waiting for the GPU. */
static bool is_stopped(const struct process *p)
{
	char state = proc_state(p->pid);

	return state == 'T' || state == 't';
}

static bool has_waited(const struct process *p, const struct waiter *w, uint64_t limit, uint64_t now)
{
	uint64_t from = w->wait.since_ns > p->hang.counts_from_ns ? w->wait.since_ns : p->hang.counts_from_ns;

	return now > from && now - from >= limit;
}

/* Loading code may take minutes of compile time, but also waits for the GPU if it is busy. */
static bool wait_counts(const struct hang *h, struct process *p, const struct waiter *w, uint64_t limit, uint64_t now)
{
	if (!waiter_loads(w))
		return has_waited(p, w, limit, now);
	if (!has_waited(p, w, limit + h->load_ns, now) || p->hang.idle_since_ns == w->wait.since_ns)
		return false;
	if (process_has_work(p))
		return true;
	p->hang.idle_since_ns = w->wait.since_ns;
	return false;
}

/* Moves the first whose wait counts to the front; false if none does. */
static bool put_first(const struct hang *h, struct process *p, struct waiters *w, uint64_t limit, uint64_t now)
{
	struct waiter first;
	size_t i = 0;

	while (i < w->n && !wait_counts(h, p, &w->list[i], limit, now))
		i++;
	if (i == w->n)
		return false;
	first = w->list[i];
	memmove(&w->list[1], &w->list[0], i * sizeof(first));
	w->list[0] = first;
	return true;
}

/* A wait is only a hang while nothing else of the process progresses: launches, waits that end. */
static void note_progress(struct process *p, uint64_t now)
{
	uint64_t progress = process_progress(p);

	if (p->hang.progress && progress != p->hang.progress)
		p->hang.counts_from_ns = p->hang.progress_ns = now;
	p->hang.progress = progress;
}

/* It would have counted, had nothing progressed. Reported once, and left alone. */
static void tell_slow(const struct hang *h, struct process *p, const struct waiters *w, uint64_t now)
{
	const struct waiter *first = &w->list[0];
	char *place;

	if (waiter_loads(first) || !p->hang.progress_ns || p->hang.progress_ns < first->wait.since_ns + h->limit_ns / 2 ||
	    now - first->wait.since_ns < h->limit_ns || p->hang.slow_since_ns == first->wait.since_ns)
		return;
	p->hang.slow_since_ns = first->wait.since_ns;
	place = place_text(p, first->wait.stack);
	tell_hang(h, p, w, now, place, "other work of it goes on, so this is not taken for a hang");
	free(place);
}

/* If the program will be ended anyway, half the time limit is enough for a dump of another process. And once one
 * thread has waited too long, threads that have waited half as long count as waiting with it. */
static void look_for_hangs(struct hang *h, struct server *s, uint64_t now)
{
	bool one = count_hangs(s, HANG_ASKED) + count_hangs(s, HANG_TOLD) > 0;
	uint64_t limit = one && !h->go_on ? h->limit_ns / 2 : h->limit_ns;
	bool stopped = now - h->looked_ns > ASLEEP_NS && h->looked_ns;	/* Ctrl-Z stops us as well */
	struct waiters w;

	h->looked_ns = now;
	for (size_t i = 0; i < s->n_processes; i++) {
		struct process *p = s->process[i];

		if (p->ended || p->judged || p->hang.state != HANG_NO)
			continue;
		if (stopped || is_stopped(p))
			p->hang.counts_from_ns = now;
		note_progress(p, now);
		if (!waiters_find(&w, p, now - limit / 2))
			continue;
		if (put_first(h, p, &w, limit, now))
			hang_ask(h, s, p, &w);
		else
			tell_slow(h, p, &w, now);
	}
}

int hang_wait_ms(const struct hang *h, const struct server *s)
{
	uint64_t ms = h->limit_ns / 10 / MS_NS;

	if (!h->limit_ns)
		return -1;
	if (h->ending_ns || count_hangs(s, HANG_ASKED))
		return BUSY_MS;
	return ms > 1000 ? 1000 : (int)ms;
}

void hang_step(struct hang *h, struct server *s, const struct child *c, const struct keeper *self)
{
	uint64_t now = proc_mono_ns();

	if (!h->limit_ns)
		return;
	for (size_t i = 0; i < s->n_processes; i++)
		if (s->process[i]->hang.state == HANG_ASKED)
			hang_follow_dump(h, s->process[i], now);
	if (!h->ending_ns && now >= h->next_ns) {
		look_for_hangs(h, s, now);
		h->next_ns = now + (uint64_t)hang_wait_ms(h, s) * MS_NS;
	}
	if (!h->go_on && count_hangs(s, HANG_TOLD) && !count_hangs(s, HANG_ASKED))
		end_program(h, s, c, self, now);
}
