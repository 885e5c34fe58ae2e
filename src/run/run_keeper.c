/* SPDX-License-Identifier: Apache-2.0
 * The process that records and judges (see run_keeper.h).
 */
#include "run/run_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"

#define LIMIT_S		60	/* without a sign of life; CUWHY_JUDGE_SECONDS */
#define LIMIT_BYTES	((rlim_t)4 << 30)	/* of its own memory: a mapped core dump does not count */
#define ALONE_S		5	/* after the supervisor's death */
#define SECOND_NS	1000000000ull
#define LEAVE_NS	SECOND_NS	/* a killed process that does not die waits for a disk or a network */

struct keeper_signs {
	_Atomic uint64_t last_ns;
	_Atomic bool works;
	_Atomic int asked;	/* a signal for the program */
};

void keeper_works(const struct keeper *k)
{
	atomic_store(&k->signs->last_ns, proc_mono_ns());
	atomic_store(&k->signs->works, true);
}

void keeper_rests(const struct keeper *k)
{
	atomic_store(&k->signs->last_ns, proc_mono_ns());
	atomic_store(&k->signs->works, false);
}

void keeper_ask_signal(const struct keeper *k, int sig)
{
	atomic_store(&k->signs->asked, sig);
}

bool keeper_hear(const struct keeper *k, struct keeper_news *n, bool *gone)
{
	struct pollfd p = {.fd = k->tell, .events = POLLIN};

	if (poll(&p, 1, 0) != 1)
		return false;
	*gone = read(k->tell, n, sizeof(*n)) != (ssize_t)sizeof(*n);
	return !*gone;
}

static pid_t supervisor;

/* Not before: any process of the group can send any signal. */
static void on_supervisors_death(int sig)
{
	(void)sig;
	if (getppid() != supervisor)
		alarm(ALONE_S);
}

/* If the supervisor is killed, no process is left that would notice that the keeper is stuck; or stopped, hence SIGCONT. */
static void die_with_supervisor(void)
{
	struct sigaction notice = {.sa_handler = on_supervisors_death, .sa_flags = SA_RESTART},
			 die = {.sa_handler = SIG_DFL};
	sigset_t both;

	sigaction(SIGCONT, &notice, NULL);
	sigaction(SIGALRM, &die, NULL);
	sigemptyset(&both);
	sigaddset(&both, SIGCONT);
	sigaddset(&both, SIGALRM);
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	sigprocmask(SIG_UNBLOCK, &both, NULL);
	on_supervisors_death(SIGCONT);	/* if it died before that */
}

/* Signals are the supervisor's business. */
static void keeper_settle(void)
{
	sigset_t all;

	prctl(PR_SET_NAME, "cuwhy-keeper");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	die_with_supervisor();
	proc_limit_memory(LIMIT_BYTES);
	child_leave_streams();
}

static uint64_t limit_from_environment(void)
{
	const char *text = getenv("CUWHY_JUDGE_SECONDS");
	uint64_t s = 0;

	return (text && str_u64(text, &s) && s > 0 && s < 1000000 ? s : LIMIT_S) * SECOND_NS;
}

static bool no_keeper(struct keeper *k, const char *what)
{
	k->failed = true;
	snprintf(k->why, sizeof(k->why), "%s: %s", what, strerror(errno));
	return false;
}

bool keeper_start(struct keeper *k, void (*work)(void *arg, const struct keeper *self), void *arg)
{
	int fds[2];

	*k = (struct keeper){.tell = -1, .limit_ns = limit_from_environment()};
	k->signs = mmap(NULL, sizeof(*k->signs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (k->signs == MAP_FAILED) {
		k->signs = NULL;
		return no_keeper(k, "cuwhy has no memory");
	}
	if (pipe2(fds, O_CLOEXEC) != 0)
		return no_keeper(k, "cuwhy cannot create a pipe");
	supervisor = getpid();
	k->pid = fork();
	if (k->pid == 0) {
		close(fds[1]);
		k->tell = fds[0];
		keeper_settle();
		keeper_works(k);
		work(arg, k);
		exit(0);
	}
	close(fds[0]);
	k->tell = fds[1];
	if (k->pid > 0)
		return true;
	k->pid = 0;
	close(k->tell);
	k->tell = -1;
	return no_keeper(k, "cuwhy cannot start a process");
}

void keeper_tell(struct keeper *k, const struct keeper_news *news)
{
	ssize_t n;

	if (k->pid == 0 || k->told_ns)
		return;
	if (news->ended)
		k->told_ns = proc_mono_ns();
	do
		n = write(k->tell, news, sizeof(*news));
	while (n < 0 && errno == EINTR);
}

void keeper_dismiss(struct keeper *k)
{
	if (k->pid == 0)
		return;
	k->told_ns = proc_mono_ns();
	close(k->tell);
	k->tell = -1;
}

void keeper_look(struct keeper *k)
{
	uint64_t now = proc_mono_ns(), since;

	if (k->pid == 0)
		return;
	if (k->stuck) {
		if (now - k->killed_ns > LEAVE_NS)
			k->pid = 0;
		return;
	}
	since = atomic_load(&k->signs->last_ns);
	since = since > k->told_ns ? since : k->told_ns;
	if ((!k->told_ns && !atomic_load(&k->signs->works)) || now < since || now - since <= k->limit_ns)
		return;
	log_line("keeper", 1, "no sign of life");
	k->stuck = k->failed = true;
	k->killed_ns = now;
	snprintf(k->why, sizeof(k->why), "cuwhy's analysis was stuck for %llu s",
		 (unsigned long long)(k->limit_ns / SECOND_NS));
	child_signal(k->pid, SIGKILL);
}

int keeper_asks_signal(struct keeper *k)
{
	return k->signs ? atomic_exchange(&k->signs->asked, 0) : 0;
}

/* Only we know that it has been stopped: processes that send it something would wait. Within the limit, it may go on. */
void keeper_stopped(struct keeper *k)
{
	if (!atomic_load(&k->signs->works))
		keeper_works(k);
}

void keeper_ended(struct keeper *k, int status)
{
	k->pid = 0;
	if (k->tell >= 0)
		close(k->tell);
	k->tell = -1;
	if (k->stuck || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	k->failed = true;
	if (WIFSIGNALED(status))
		snprintf(k->why, sizeof(k->why), "cuwhy's analysis was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(k->why, sizeof(k->why), "cuwhy's analysis failed, maybe out of memory");
}
