/* SPDX-License-Identifier: Apache-2.0
 * The probe as seen from outside (see probe.h).
 *
 * A process that hangs in the driver may not even die of SIGKILL. So nothing here waits for its end, and it has none of
 * our descriptors: it cannot keep somebody waiting for the end of our output.
 */
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "probe/message.h"
#include "base/banned.h"

#define PROGRAM		"cuwhy-probe"
#define LIMIT_NS	2000000000u
#define TOLD_MAX	(64u << 20)

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* --- starting it ------------------------------------------------------------------------------ */

static void become(const char *path, int out)
{
	char name[] = PROGRAM, *argv[] = {name, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct rlimit no_core = {0, 0};
	sigset_t none;

	dup2(null, STDIN_FILENO);
	dup2(null, STDERR_FILENO);
	dup2(out, STDOUT_FILENO);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setrlimit(RLIMIT_CORE, &no_core);
	/* what is meant for the program: the recorder above all */
	unsetenv("LD_PRELOAD");
	unsetenv("CUWHY_SOCK");
	execv(path, argv);
	_exit(127);
}

void probe_start(struct probe *p)
{
	char *path = proc_find_part(PROGRAM);
	int fds[2] = {-1, -1};

	*p = (struct probe){.fd = -1, .asked_ns = proc_mono_ns()};
	p->until_ns = p->asked_ns + LIMIT_NS;
	buf_init(&p->told, TOLD_MAX);
	if (path && pipe2(fds, O_CLOEXEC) == 0) {
		p->pid = fork();
		if (p->pid == 0)
			become(path, fds[1]);
		close(fds[1]);
		p->fd = fds[0];
		fcntl(p->fd, F_SETFL, O_NONBLOCK);
	}
	if (p->pid <= 0) {
		p->pid = 0;
		if (p->fd >= 0)
			close(p->fd);
		p->fd = -1;
	}
	free(path);
}

bool probe_runs(const struct probe *p)
{
	return p->fd >= 0;
}

bool probe_step(struct probe *p, uint64_t now_ns)
{
	char bytes[4096];
	ssize_t n;

	if (p->fd < 0)
		return true;
	while ((n = read(p->fd, bytes, sizeof(bytes))) > 0)
		buf_add(&p->told, bytes, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return now_ns >= p->until_ns || p->told.full;
	return true;
}

/* --- what it told ----------------------------------------------------------------------------- */

static void set_trouble(struct gpu_usage *u, enum usage_trouble what, const char *words)
{
	u->trouble = what;
	str_copy(u->why, sizeof(u->why), words);
}

static void end_strings(struct probe_message *m)
{
	switch (m->word) {
	case PROBE_GPU:
		m->card.uuid[sizeof(m->card.uuid) - 1] = '\0';
		m->card.pci[sizeof(m->card.pci) - 1] = '\0';
		m->card.name[sizeof(m->card.name) - 1] = '\0';
		break;
	case PROBE_HOLDER:
	case PROBE_NAME:
		m->holder.command[sizeof(m->holder.command) - 1] = '\0';
		break;
	default:
		m->text[sizeof(m->text) - 1] = '\0';
	}
}

/* False after the last one. */
static bool take(struct gpu_usage *u, struct probe_message *m)
{
	end_strings(m);
	switch (m->word) {
	case PROBE_DRIVER:
		str_copy(u->driver, sizeof(u->driver), m->text);
		return true;
	case PROBE_GPU:
		usage_add_gpu(u, &m->card);
		return true;
	case PROBE_HOLDER:
		if (m->gpu < u->n)
			usage_add_holder(&u->gpu[m->gpu], &m->holder);
		return true;
	case PROBE_HOLDERS_END:
		if (m->gpu < u->n)
			u->gpu[m->gpu].holders_known = true;
		return true;
	case PROBE_NAME:
		usage_name_holder(u, &m->holder);
		return true;
	case PROBE_NO_LIBRARY:
		set_trouble(u, USAGE_NO_LIBRARY, m->text);
		return true;
	case PROBE_REFUSED:
		set_trouble(u, USAGE_REFUSED, m->text);
		return true;
	default:
		return false;
	}
}

static bool read_told(struct gpu_usage *u, const struct buf *b)
{
	struct probe_message m = {0};
	size_t at;

	for (at = 0; at + sizeof(m) <= b->len; at += sizeof(m)) {
		memcpy(&m, b->data + at, sizeof(m));
		if (!take(u, &m))
			break;
	}
	return m.word == PROBE_END;
}

/* It is killed in any case; one that hangs in the driver is left to itself. */
static int end(struct probe *p, bool late)
{
	struct timespec moment = {.tv_nsec = 1000000};
	int status = 0, i;
	pid_t pid = 0;

	if (p->fd >= 0)
		close(p->fd);
	if (p->pid > 0 && late)
		kill(p->pid, SIGKILL);
	for (i = 0; p->pid > 0 && pid == 0 && i < 50; i++) {
		pid = waitpid(p->pid, &status, WNOHANG);
		if (pid == 0 && i == 10)
			kill(p->pid, SIGKILL);
		if (pid == 0)
			nanosleep(&moment, NULL);
	}
	p->fd = -1;
	p->pid = 0;
	return pid > 0 ? status : -1;
}

static void explain(struct gpu_usage *u, int status, bool late)
{
	char words[120];

	if (late) {
		set_trouble(u, USAGE_HUNG, "the NVIDIA driver (NVML) did not answer within 2 seconds");
	} else if (status >= 0 && WIFSIGNALED(status)) {
		snprintf(words, sizeof(words), "the NVIDIA driver's library (NVML) crashed: signal %d", WTERMSIG(status));
		set_trouble(u, USAGE_DIED, words);
	} else if (status >= 0 && WEXITSTATUS(status) == 127) {
		set_trouble(u, USAGE_NO_PROBE, PROGRAM " does not start");
	} else {
		set_trouble(u, USAGE_DIED, PROGRAM " ended before it had told all");
	}
}

struct gpu_usage *probe_finish(struct probe *p)
{
	struct gpu_usage *u = usage_new();
	bool started = p->pid > 0, late = proc_mono_ns() >= p->until_ns;
	struct timespec now;
	int status = end(p, late);

	clock_gettime(CLOCK_REALTIME, &now);
	u->mono_ns = p->asked_ns;
	u->real_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - (proc_mono_ns() - p->asked_ns);
	if (!started)
		set_trouble(u, USAGE_NO_PROBE, PROGRAM " is missing or does not start");
	else if (!read_told(u, &p->told) && u->trouble == USAGE_COMPLETE)
		explain(u, status, late);
	usage_sort(u);
	buf_release(&p->told);
	log_line("probe", 1, "%zu GPUs; %s", u->n, u->why[0] ? u->why : "all was told");
	return u;
}

struct gpu_usage *probe_gpus(void)
{
	struct pollfd wait = {.events = POLLIN};
	struct probe p;
	uint64_t now;

	probe_start(&p);
	while (!probe_step(&p, now = proc_mono_ns())) {
		wait.fd = p.fd;
		poll(&wait, 1, now < p.until_ns ? (int)((p.until_ns - now) / 1000000u) + 1 : 0);
	}
	return probe_finish(&p);
}
