/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into cuwhy: the worst moment, every time. Between PTRACE_SEIZE and PTRACE_INTERRUPT of the first thread that it stops, the thread is told
 * to go on (a byte of the file BETWEEN_FILE), or gets BETWEEN_SIGNALS; once it has got somewhere, cuwhy goes on. With BETWEEN_HOG, another program
 * is told to take its processor, and has answered, before PTRACE_INTERRUPT (the next two bytes). With BETWEEN_KILL, cuwhy and its process group are
 * killed where the thread would be let go.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char state_of(pid_t tid)
{
	char path[64], text[512] = "", *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	at = strrchr(text, ')');
	return at ? at[2] : 'Z';
}

static void send_signals(pid_t tid, const char *numbers)
{
	int value = 0;

	for (char *rest = (char *)numbers; *rest;) {
		int number = (int)strtol(rest, &rest, 10);
		siginfo_t info = {.si_signo = number, .si_code = SI_QUEUE};

		info.si_pid = getpid();
		info.si_value.sival_int = ++value;
		syscall(SYS_rt_sigqueueinfo, tid, number, &info);
	}
}

static int is_running(char state)
{
	return state == 'R' || state == 'D';
}

static const struct timespec pause_1ms = {.tv_nsec = 1000000};

/* Sets a byte of the file; false if it was set already. */
static int set_byte(off_t at)
{
	const char *file = getenv("BETWEEN_FILE");
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1, set;
	char told = 0;

	if (fd < 0)
		return 0;
	set = pread(fd, &told, 1, at) == 1 && !told && pwrite(fd, "1", 1, at) == 1;
	close(fd);
	return set;
}

static void between(pid_t tid)
{
	const char *signals = getenv("BETWEEN_SIGNALS");

	if (!set_byte(0))
		return;		/* it is not the first */
	if (signals)
		send_signals(tid, signals);
	for (int i = 0; i < 20000 && is_running(state_of(tid)); i++)
		nanosleep(&pause_1ms, NULL);
	if (!getenv("BETWEEN_HOG") || !set_byte(1))
		return;
	for (char told = 0; !told; nanosleep(&pause_1ms, NULL)) {
		int fd = open(getenv("BETWEEN_FILE"), O_RDONLY | O_CLOEXEC);

		if (pread(fd, &told, 1, 2) != 1)
			told = 1;
		close(fd);
	}
}

long ptrace(enum __ptrace_request request, ...)
{
	long (*real)(int, pid_t, void *, void *), rc;
	void *address, *data;
	pid_t tid;
	va_list ap;

	va_start(ap, request);
	tid = va_arg(ap, pid_t);
	address = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	if (request == PTRACE_DETACH && getenv("BETWEEN_KILL"))
		kill(0, SIGKILL);
	*(void **)&real = dlsym(RTLD_NEXT, "ptrace");
	rc = real((int)request, tid, address, data);
	if (request == PTRACE_SEIZE && rc == 0)
		between(tid);
	return rc;
}
