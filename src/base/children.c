/* SPDX-License-Identifier: Apache-2.0
 * Signals to processes that we started (see children.h).
 */
#include "base/children.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sigaction inherited;

void children_begin(void)
{
	struct sigaction ours = {.sa_handler = SIG_DFL};

	sigaction(SIGCHLD, &ours, &inherited);
}

void children_inherit(void)
{
	sigaction(SIGCHLD, &inherited, NULL);
}

bool child_signal(pid_t pid, int sig)
{
	siginfo_t si;

	return pid > 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && kill(pid, sig) == 0;
}

bool pidfd_signal(int pidfd, int sig)
{
	return pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) == 0;
}
