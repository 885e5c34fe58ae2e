/* SPDX-License-Identifier: Apache-2.0
 * Dumps on request: a named pipe, and a thread that waits until something is written to it.
 *
 * As on R580, the dump ends the running kernel. If there is none, the dump shows an idle GPU. */
#include "sim/cuda/sim_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUIET_MS = 50 };			/* a request ends when nothing more arrives for this long */

static int pipe_fd = -1;
static char pipe_path[1200];
static _Atomic int asked, busy;

bool sim_trigger_asked(void)
{
	int one = 1;

	return atomic_load_explicit(&asked, memory_order_acquire) == 1 &&
	       atomic_compare_exchange_strong(&asked, &one, 0);
}

/* A request that came too late for one kernel does not apply to the next. */
void sim_trigger_busy(int change)
{
	if (!atomic_fetch_add(&busy, change) && change > 0)
		atomic_store(&asked, 0);
}

static void dump_idle(void)
{
	char *base = atomic_load(&sim.contexts.base);
	size_t used = atomic_load(&sim.contexts.used);
	struct sim_dump_plan plan;

	for (size_t i = 0; i < used; i++) {
		struct sim_ctx *ctx = (struct sim_ctx *)(void *)(base + i * sim.contexts.stride);

		if (!atomic_load(&ctx->head.alive))
			continue;
		sim_dump_plan(ctx, &plan);
		sim_dump_write(ctx, NULL, NULL, &plan);
		return;
	}
}

/* Reads as long as bytes arrive: the writer may send a megabyte and must not stay blocked. */
static void *trigger_main(void *arg)
{
	struct pollfd wait = {.fd = pipe_fd, .events = POLLIN};
	static char drain[65536];

	(void)arg;
	for (;;) {
		if (poll(&wait, 1, -1) < 1 || !(wait.revents & POLLIN))
			continue;
		while (poll(&wait, 1, QUIET_MS) > 0 && read(pipe_fd, drain, sizeof(drain)) > 0)
			;
		if (atomic_load(&busy))
			atomic_store(&asked, 1);
		else
			dump_idle();
	}
	return NULL;
}

/* The pipe is opened for reading and writing, so that we never get end of file. */
int sim_trigger_start(const char *pattern)
{
	sigset_t all, old;
	pthread_t thread;
	int failed;

	if (pipe_fd >= 0)
		return 0;
	sim_dump_name(pipe_path, sizeof(pipe_path), pattern);
	if (mkfifo(pipe_path, 0600) && errno != EEXIST)
		return SIM_OPERATING_SYSTEM;
	pipe_fd = open(pipe_path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (pipe_fd < 0)
		return SIM_OPERATING_SYSTEM;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	failed = pthread_create(&thread, NULL, trigger_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return SIM_OPERATING_SYSTEM;
	pthread_detach(thread);
	return 0;
}

void sim_trigger_stop(void)
{
	if (pipe_fd >= 0)
		unlink(pipe_path);
}
