/* SPDX-License-Identifier: Apache-2.0
 * Does what makes the recorder call the system: starts, many threads, memory that runs out, a forked child, an end by
 * _exit or exit. Its output must not depend on whether those calls succeed.
 *
 *   victim            ends well        victim together   all threads make their first CUDA call at once
 *   victim exit       by _exit         victim fail       by an error */
#include "../e2e/cases/cu.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 24 };
static CUcontext context;
static CUfunction nop;

static void *work(void *unused)
{
	CUdeviceptr p;
	long wrong = 0;

	wrong += cuCtxSetCurrent(context) != 0;
	for (int i = 0; i < 20; i++)
		wrong += cuLaunchKernel(nop, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != 0;
	wrong += cuMemAlloc_v2(&p, (size_t)1 << 44) != 2;
	return unused ? unused : (void *)wrong;
}

/* Every thread does all that a program does before its first launch. */
static void *start(void *barrier)
{
	pthread_barrier_wait(barrier);
	cu_start();
	return NULL;
}

static long in_threads(void *(*function)(void *), void *argument)
{
	pthread_t id[THREADS];
	long wrong = 0;
	void *result;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&id[i], NULL, function, argument))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(id[i], &result);
		wrong += (long)result;
	}
	return wrong;
}

static int in_child(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(cuInit(0) == 0 ? 3 : 4);
	waitpid(child, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	bool together = argc > 1 && strcmp(argv[1], "together") == 0;
	pthread_barrier_t barrier;
	sigset_t mask;
	CUmodule module;
	long wrong = 0;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	pthread_barrier_init(&barrier, NULL, THREADS);
	if (together)
		wrong += in_threads(start, &barrier);
	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&nop, module, "nop"));
	for (int i = 0; i < 3; i++)
		wrong += in_threads(work, NULL);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf("wrong %ld, child %x, own mask %d, others %d\n", wrong, (unsigned)in_child(),
	       sigismember(&mask, SIGUSR1), sigismember(&mask, SIGUSR2));
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "fail") == 0)
		CU_TRY(cuLaunchKernel(nop, 1, 80000, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	if (argc > 1)
		_exit(5);
	return 0;
}
