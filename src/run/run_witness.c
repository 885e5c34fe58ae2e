/* SPDX-License-Identifier: Apache-2.0
 * Shows which signals went to the whole process group (see run_witness.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/children.h"
#include "run/run_witness.h"

/* kill() reaches the members of a group one by one; the rest get the signal within this time. */
#define GROUP_DELAY_NS 1500000

#ifndef SYS_close_range	/* headers of Linux before 5.9 */
#define SYS_close_range 436
#endif

/* Only the one that was seen: another may have come since, and is still to be seen. */
static void drain_signal(int sig)
{
	struct timespec none = {0, 0};
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, sig);
	while (sigtimedwait(&one, NULL, &none) > 0)
		;
}

/* Keeps only its end of the pipe open: the program's own files must close when the program ends. */
static void witness_main(int fd)
{
	unsigned char sig;
	ssize_t n;

	prctl(PR_SET_NAME, "cuwhy-witness");
	if (dup2(fd, 0) != 0)
		_exit(0);
	syscall(SYS_close_range, 1u, ~0u, 0u);
	for (;;) {
		n = read(0, &sig, 1);
		if (n == 0 || (n < 0 && errno != EINTR))
			_exit(0);
		if (n == 1)
			drain_signal(sig);
	}
}

void witness_start(struct witness *w)
{
	sigset_t all, old;
	int fds[2];

	*w = (struct witness){.pipe = -1};
	if (pipe2(fds, O_CLOEXEC) != 0)
		return;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	w->pid = fork();
	if (w->pid == 0) {
		close(fds[1]);
		witness_main(fds[0]);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fds[0]);
	w->pipe = fds[1];
	if (w->pid < 0) {
		w->pid = 0;
		close(w->pipe);
		w->pipe = -1;
	}
}

enum pending { PENDING_NO, PENDING_YES, PENDING_UNKNOWN };

static enum pending pending(pid_t pid, int sig)
{
	unsigned long long own = 0, shared = 0;
	char path[64], text[4096];
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return PENDING_UNKNOWN;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strstr(text, "SigPnd:");
	if (!p || sscanf(p, "SigPnd: %llx ShdPnd: %llx", &own, &shared) != 2)
		return PENDING_UNKNOWN;
	return (own | shared) >> (sig - 1) & 1 ? PENDING_YES : PENDING_NO;
}

bool witness_saw(struct witness *w, int sig, bool from_kernel)
{
	struct timespec delay = {0, GROUP_DELAY_NS};
	unsigned char seen = (unsigned char)sig;
	enum pending saw = w->pid > 0 ? pending(w->pid, sig) : PENDING_UNKNOWN;

	if (saw == PENDING_NO) {
		nanosleep(&delay, NULL);
		saw = pending(w->pid, sig);
	}
	if (saw == PENDING_UNKNOWN)	/* a terminal signals the whole group, except when it is closed */
		return from_kernel && sig != SIGHUP;
	return saw == PENDING_YES && write(w->pipe, &seen, 1) == 1;
}

void witness_leave(const struct witness *w)
{
	if (w->pid > 0)
		close(w->pipe);
}

void witness_ended(struct witness *w)
{
	close(w->pipe);
	w->pid = 0;
}

/* Killed: the end of its pipe may also be open in a process that never ends. */
void witness_stop(struct witness *w)
{
	if (w->pid <= 0)
		return;
	child_signal(w->pid, SIGKILL);
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	witness_ended(w);
}
