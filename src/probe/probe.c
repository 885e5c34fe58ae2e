/* SPDX-License-Identifier: Apache-2.0
 * The probe as seen from outside (see probe.h).
 *
 * A process that hangs in the driver may not even die of SIGKILL. So nothing here waits for it to end, and it inherits none
 * of our descriptors: otherwise a reader of our output would never see its end.
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

#include "base/children.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "probe/message.h"

#define PROGRAM		"cuwhy-probe"
#define LIMIT_NS	2000000000u
#define TOLD_MAX	(64u << 20)

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void become_probe(const char *path, const char *mode, int out)
{
	char name[] = PROGRAM, what[16] = "", *argv[] = {name, mode ? what : NULL, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct rlimit no_core = {0, 0};
	sigset_t none;

	str_copy(what, sizeof(what), mode ? mode : "");
	dup2(null, STDIN_FILENO);
	dup2(null, STDERR_FILENO);
	dup2(out, STDOUT_FILENO);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setrlimit(RLIMIT_CORE, &no_core);
	/* what is meant for the program, above all the recorder */
	unsetenv("LD_PRELOAD");
	unsetenv("CUWHY_SOCK");
	execv(path, argv);
	_exit(127);
}

void probe_start(struct probe *p)
{
	probe_start_as(p, NULL, LIMIT_NS);
}

void probe_start_as(struct probe *p, const char *mode, uint64_t limit_ns)
{
	char *path = proc_find_part(PROGRAM);
	int fds[2] = {-1, -1};

	*p = (struct probe){.fd = -1, .mode = mode, .asked_ns = proc_mono_ns()};
	p->until_ns = p->asked_ns + limit_ns;
	buf_init(&p->told, TOLD_MAX);
	if (path && pipe2(fds, O_CLOEXEC) == 0) {
		p->pid = fork();
		if (p->pid == 0)
			become_probe(path, mode, fds[1]);
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
	case PROBE_CUDA:
		m->library.path[sizeof(m->library.path) - 1] = '\0';
		break;
	case PROBE_CUDA_DEVICE:
		m->device.name[sizeof(m->device.name) - 1] = '\0';
		m->device.uuid[sizeof(m->device.uuid) - 1] = '\0';
		m->device.pci[sizeof(m->device.pci) - 1] = '\0';
		break;
	case PROBE_DETAILS:
		break;
	default:
		m->text[sizeof(m->text) - 1] = '\0';
	}
}

/* False after the last one. */
static bool take_usage(struct gpu_usage *u, struct probe_message *m)
{
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
		u->code = (int32_t)m->gpu;
		return true;
	case PROBE_DETAILS:
		if (m->gpu < u->n)
			u->gpu[m->gpu].details = m->details;
		return true;
	case PROBE_NVML:
		u->cuda = m->gpu ? (int32_t)m->gpu : -1;
		str_copy(u->nvml, sizeof(u->nvml), m->text);
		return true;
	default:
		return false;
	}
}

static bool take_cuda(struct cuda_answer *a, const struct probe_message *m)
{
	switch (m->word) {
	case PROBE_CUDA:
		a->library = m->library;
		return true;
	case PROBE_CUDA_DEVICE:
		if (a->n == CUDA_DEVICES_MAX)
			return true;
		a->device = xgrow(a->device, a->n, &a->cap, sizeof(*a->device));
		a->device[a->n++] = m->device;
		return true;
	case PROBE_NO_CUDA:
		a->trouble = USAGE_NO_LIBRARY;
		str_copy(a->why, sizeof(a->why), m->text);
		return true;
	default:
		return false;
	}
}

/* One of the two handles it. True when the answer is complete. */
static bool read_told(struct gpu_usage *u, struct cuda_answer *a, const struct buf *b)
{
	struct probe_message m = {0};
	size_t at;

	for (at = 0; at + sizeof(m) <= b->len; at += sizeof(m)) {
		memcpy(&m, b->data + at, sizeof(m));
		end_strings(&m);
		if (u ? !take_usage(u, &m) : !take_cuda(a, &m))
			break;
	}
	return m.word == PROBE_END;
}

/* The probe is always killed; one that hangs in the driver is abandoned. */
static int end_probe(struct probe *p, bool late)
{
	struct timespec moment = {.tv_nsec = 1000000};
	int status = 0, i;
	pid_t pid = 0;

	if (p->fd >= 0)
		close(p->fd);
	if (late)
		child_signal(p->pid, SIGKILL);
	for (i = 0; p->pid > 0 && pid == 0 && i < 50; i++) {
		pid = waitpid(p->pid, &status, WNOHANG);
		if (pid == 0 && i == 10)
			child_signal(p->pid, SIGKILL);
		if (pid == 0)
			nanosleep(&moment, NULL);
	}
	p->fd = -1;
	p->pid = 0;
	return pid > 0 ? status : -1;
}

static enum usage_trouble explain_end(const struct probe *p, int status, bool late, char *why, size_t size)
{
	const char *library = p->mode && !strcmp(p->mode, PROBE_ASK_CUDA) ? "libcuda" : "NVML";

	if (late) {
		snprintf(why, size, "the NVIDIA driver (%s) did not answer within %llu seconds", library,
			 (unsigned long long)((p->until_ns - p->asked_ns) / 1000000000u));
		return USAGE_HUNG;
	}
	if (status >= 0 && WIFSIGNALED(status)) {
		snprintf(why, size, "the NVIDIA driver's library (%s) crashed: signal %d", library, WTERMSIG(status));
		return USAGE_DIED;
	}
	if (status >= 0 && WEXITSTATUS(status) == 127) {
		str_copy(why, size, PROGRAM " failed to start");
		return USAGE_NO_PROBE;
	}
	str_copy(why, size, PROGRAM " ended before its answer was complete");
	return USAGE_DIED;
}

struct gpu_usage *probe_finish(struct probe *p)
{
	struct gpu_usage *u = usage_new();
	bool started = p->pid > 0, late = proc_mono_ns() >= p->until_ns;
	struct timespec now;
	int status = end_probe(p, late);

	clock_gettime(CLOCK_REALTIME, &now);
	u->mono_ns = p->asked_ns;
	u->real_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - (proc_mono_ns() - p->asked_ns);
	if (!started)
		set_trouble(u, USAGE_NO_PROBE, PROGRAM " is missing or failed to start");
	else if (!read_told(u, NULL, &p->told) && u->trouble == USAGE_COMPLETE)
		u->trouble = explain_end(p, status, late, u->why, sizeof(u->why));
	usage_sort(u);
	buf_release(&p->told);
	log_line("probe", 1, "%zu GPUs; %s", u->n, u->why[0] ? u->why : "complete");
	return u;
}

void cuda_answer_init(struct cuda_answer *a)
{
	*a = (struct cuda_answer){.library = {.init = -1, .version = -1, .count = -1}};
}

void cuda_answer_release(struct cuda_answer *a)
{
	free(a->device);
	cuda_answer_init(a);
}

void probe_finish_cuda(struct probe *p, struct cuda_answer *a)
{
	bool started = p->pid > 0, late = proc_mono_ns() >= p->until_ns;
	int status = end_probe(p, late);

	cuda_answer_init(a);
	if (!started) {
		a->trouble = USAGE_NO_PROBE;
		str_copy(a->why, sizeof(a->why), PROGRAM " is missing or failed to start");
	} else if (!read_told(NULL, a, &p->told) && a->trouble == USAGE_COMPLETE) {
		a->trouble = explain_end(p, status, late, a->why, sizeof(a->why));
	}
	buf_release(&p->told);
	log_line("probe", 1, "%zu CUDA devices; %s", a->n, a->why[0] ? a->why : "complete");
}

void probe_wait(struct probe *p)
{
	struct pollfd wait = {.events = POLLIN};
	uint64_t now;

	while (!probe_step(p, now = proc_mono_ns())) {
		wait.fd = p->fd;
		poll(&wait, 1, now < p->until_ns ? (int)((p->until_ns - now) / 1000000u) + 1 : 0);
	}
}

struct gpu_usage *probe_gpus(void)
{
	struct probe p;

	probe_start(&p);
	probe_wait(&p);
	return probe_finish(&p);
}
