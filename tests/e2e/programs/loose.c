/* SPDX-License-Identifier: Apache-2.0
 * Ends, or releases the context, while other threads use CUDA: loose exit|release. */
#include "../cases/cu.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

CUresult cuDevicePrimaryCtxRelease_v2(int device);

static CUfunction nop;

static void *go_on(void *unused)
{
	CUcontext context;

	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	for (;;) {
		cuLaunchKernel(nop, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		usleep(100);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t id;

	nop = cu_start();
	for (int i = 0; i < 3; i++)
		pthread_create(&id, NULL, go_on, NULL);
	usleep(20000);
	if (argc > 1 && strcmp(argv[1], "release") == 0) {
		cuDevicePrimaryCtxRelease_v2(0);
		_exit(3);
	}
	exit(3);
}
