/* SPDX-License-Identifier: Apache-2.0
 * Many short-lived threads, eight at a time, each launching a kernel a number of times. */
#include "../cases/cu.h"

#include <pthread.h>

enum { AT_A_TIME = 8 };
static CUcontext context;
static CUfunction nop;
static int each;

static void *work(void *unused)
{
	(void)unused;
	CU_TRY(cuCtxSetCurrent(context));
	for (int i = 0; i < each; i++)
		CU_TRY(cuLaunchKernel(nop, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 8;
	pthread_t id[AT_A_TIME];
	CUmodule module;

	each = argc > 2 ? atoi(argv[2]) : 1;
	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&nop, module, "nop"));
	for (int begun = 0; begun < threads; begun += AT_A_TIME) {
		int now = threads - begun < AT_A_TIME ? threads - begun : AT_A_TIME;

		for (int i = 0; i < now; i++)
			if (pthread_create(&id[i], NULL, work, NULL))
				return 8;
		for (int i = 0; i < now; i++)
			pthread_join(id[i], NULL);
	}
	CU_TRY(cuCtxSynchronize());
	printf("done %d\n", threads * each);
	return 0;
}
