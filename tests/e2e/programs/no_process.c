/* Preloaded into `cuwhy run`: its fork()s fail from the one in FORK_FAILS on, as at a limit of processes; at the third, the program's, a SIGTERM
 * arrives, too. Signals to anybody but one process are written to the file SIGNALS and not sent. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int forks;
static pid_t first;

pid_t fork(void)
{
	pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

	first = first ? first : getpid();
	if (first != getpid())
		return real();
	if (++forks == 3)
		raise(SIGTERM);		/* blocked: it waits until cuwhy asks for signals */
	if (forks >= atoi(getenv("FORK_FAILS"))) {
		errno = EAGAIN;
		return -1;
	}
	return real();
}

int kill(pid_t pid, int sig)
{
	int (*real)(pid_t, int) = (int (*)(pid_t, int))dlsym(RTLD_NEXT, "kill"), fd;

	if (pid > 0 || sig == 0)
		return real(pid, sig);
	fd = open(getenv("SIGNALS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	dprintf(fd, "kill(%d, %d)\n", (int)pid, sig);
	close(fd);
	return 0;
}
