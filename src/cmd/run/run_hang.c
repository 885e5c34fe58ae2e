/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy run --hang-after`: a process that waits for the GPU for too long.
 *
 * Whoever has waited for too long gets a core dump of the running GPU, asked for through the pipe at which its
 * driver listens. The dump ends the kernel (R580), so it is asked for once, and only of one who still waits.
 * Then the program is ended, or goes on with the error that follows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/run/run_hang.h"
#include "base/banned.h"

#define BUSY_MS		50		/* while a dump is being taken, or the program ended */
#define TERM_NS		(5ull * SECOND_NS)	/* from SIGTERM to SIGKILL */
#define GIVE_UP_NS	(15ull * SECOND_NS)	/* from SIGTERM: not even SIGKILL helped */
#define ASLEEP_NS	(5ull * SECOND_NS)	/* looks are a second apart at most */
#define HOURS_MAX	(24 * 365)

/* --- options ---------------------------------------------------------------------------------- */

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

/* The recorder arms the pipe only when it is told to, in its own process. */
void hang_prepare(const struct hang *h, const struct server *s)
{
	if (h->limit_ns && s->dir)
		setenv("CUWHY_HANG", s->dir, 1);
	else
		unsetenv("CUWHY_HANG");
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The program and all of its processes that we know of: the one that hangs may not be the one we started. */
static void signal_all(const struct server *s, const struct child *c, int sig)
{
	const struct process *p;

	for (size_t i = 0; i < s->n_processes; i++) {
		p = s->process[i];
		if (p->ended || p->pid == c->pid)
			continue;
		if (p->pidfd >= 0)
			syscall(SYS_pidfd_send_signal, p->pidfd, sig, NULL, 0);
		else
			kill(p->pid, sig);
	}
	if (!c->ended)
		kill(c->pid, sig);
}

static void end_program(struct hang *h, const struct server *s, const struct child *c, uint64_t now)
{
	if (!h->ending_ns) {
		log_line("hang", 1, "ending the program");
		h->ending_ns = now;
		signal_all(s, c, SIGTERM);
	} else if (!h->killed && now - h->ending_ns >= TERM_NS) {
		h->killed = true;
		signal_all(s, c, SIGKILL);
	}
}

bool hang_is_ending(const struct hang *h, const struct server *s)
{
	bool alive = false;

	for (size_t i = 0; i < s->n_processes; i++)
		alive |= !s->process[i]->ended;
	return h->ending_ns && alive && proc_mono_ns() - h->ending_ns < GIVE_UP_NS;
}

/* --- the course of things --------------------------------------------------------------------- */

static size_t count(const struct server *s, enum hang_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_processes; i++)
		n += s->process[i]->hang.state == state;
	return n;
}

/* Stopped by a terminal or a debugger: it waits for nobody. */
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

/* To load code may take minutes of the compiler's time, but waits for the GPU as well where that is at work. */
static bool counts(const struct hang *h, struct process *p, const struct waiter *w, uint64_t limit, uint64_t now)
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

/* Puts the first whose wait counts in front; false when none does. */
static bool lead(const struct hang *h, struct process *p, struct waiters *w, uint64_t limit, uint64_t now)
{
	struct waiter first;
	size_t i = 0;

	while (i < w->n && !counts(h, p, &w->list[i], limit, now))
		i++;
	if (i == w->n)
		return false;
	first = w->list[i];
	memmove(&w->list[1], &w->list[0], i * sizeof(first));
	w->list[0] = first;
	return true;
}

/* When the program is to be ended anyway, a process that has waited for half the time is asked, too. And when one
 * thread has waited for too long, those that have for half the time wait with it. */
static void look(struct hang *h, struct server *s, uint64_t now)
{
	bool one = count(s, HANG_ASKED) + count(s, HANG_TOLD) > 0;
	uint64_t limit = one && !h->go_on ? h->limit_ns / 2 : h->limit_ns;
	bool stopped = now - h->looked_ns > ASLEEP_NS && h->looked_ns;	/* Ctrl-Z stops us, too */
	struct waiters w;

	h->looked_ns = now;
	for (size_t i = 0; i < s->n_processes; i++) {
		struct process *p = s->process[i];

		if (p->ended || p->judged || p->hang.state != HANG_NO)
			continue;
		if (stopped || is_stopped(p))
			p->hang.counts_from_ns = now;
		if (waiters_find(&w, p, now - limit / 2) && lead(h, p, &w, limit, now))
			hang_ask(h, s, p, &w);
	}
}

int hang_wait_ms(const struct hang *h, const struct server *s)
{
	uint64_t ms = h->limit_ns / 10 / MS_NS;

	if (!h->limit_ns)
		return -1;
	if (h->ending_ns || count(s, HANG_ASKED))
		return BUSY_MS;
	return ms > 1000 ? 1000 : (int)ms;
}

void hang_step(struct hang *h, struct server *s, const struct child *c)
{
	uint64_t now = proc_mono_ns();

	if (!h->limit_ns)
		return;
	for (size_t i = 0; i < s->n_processes; i++)
		if (s->process[i]->hang.state == HANG_ASKED)
			hang_follow_dump(h, s->process[i], now);
	if (!h->ending_ns && now >= h->next_ns) {
		look(h, s, now);
		h->next_ns = now + (uint64_t)hang_wait_ms(h, s) * MS_NS;
	}
	if (!h->go_on && count(s, HANG_TOLD) && !count(s, HANG_ASKED))
		end_program(h, s, c, now);
}
