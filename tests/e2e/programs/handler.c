/* SPDX-License-Identifier: Apache-2.0
 * A timer's signal handler makes valid and invalid driver calls while launches continue outside. */
#include "../cases/cu.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t handled, ordinal;

static void on_timer(int unused)
{
	int device;

	(void)unused;
	if ((cuDeviceGet(&device, ordinal) == 0) == (ordinal == 0))
		handled++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Half a second of launches. Only one side fails at a time: the simulated driver, like a real one,
 * has locks of its own that a handler must not wait for. */
static void work(CUfunction nop, int wrong_in_handler)
{
	double end = now() + 0.5;

	ordinal = wrong_in_handler;
	while (now() < end) {
		CU_TRY(cuLaunchKernel(nop, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		if (!wrong_in_handler &&
		    cuLaunchKernel(nop, 1, 70000, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 0)
			exit(9);
	}
}

int main(void)
{
	struct itimerval every = {{0, 300}, {0, 300}};
	struct sigaction action;
	CUfunction nop = cu_start();

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	work(nop, 0);
	work(nop, 99);
	memset(&every, 0, sizeof(every));
	setitimer(ITIMER_REAL, &every, NULL);
	printf("handled %d\n", (int)handled);
	return handled > 10 ? 0 : 10;
}
