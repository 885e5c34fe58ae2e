/* SPDX-License-Identifier: Apache-2.0
 * Does what makes the recorder call the system: starts, many threads, memory that runs out, a forked child, an end by
 * _exit or exit. Its output must not depend on whether those calls succeed. */
#include "../e2e/cases/cu.h"

#include <pthread.h>
#include <signal.h>
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

static long in_threads(void)
{
	pthread_t id[THREADS];
	long wrong = 0;
	void *result;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&id[i], NULL, work, NULL))
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
	sigset_t mask;
	CUmodule module;
	long wrong = 0;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&nop, module, "nop"));
	for (int i = 0; i < 3; i++)
		wrong += in_threads();
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
