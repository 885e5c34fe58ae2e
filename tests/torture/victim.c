/* SPDX-License-Identifier: Apache-2.0
 * Uses the GPU from several threads until a timer kills it with SIGKILL: victim SEED MICROSECONDS.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char image[] = "cuwhy-sim-module 1\ntarget compute_50 ptx 6.0\nkernel nop\n";

/* Only what is called: everything is an int function of integers and pointers. */
static int (*init)(unsigned int), (*retain)(void **, int), (*current)(void *);
static int (*load)(void **, const void *), (*get)(void **, void *, const char *);
static int (*launch)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
		     unsigned int, unsigned int, void *, void **, void **);
static int (*alloc)(uint64_t *, size_t), (*release)(uint64_t), (*sync_all)(void);
static void *context, *function;

/* What PyTorch's allocator calls for every block: the recorder's, where there is one. */
struct device { int8_t type, index; };
static void (*report)(void *, int64_t, size_t, size_t, struct device);

static void blocks(unsigned int seed, unsigned int i)
{
	const struct device cuda = {1, 0};
	uintptr_t at = 0x10000000000u + ((uintptr_t)seed << 32);

	if (!report)
		return;
	report((void *)(at + i % 3000 * 512), 512, 0, 0, cuda);
	if (i % 3)
		report((void *)(at + (i + 1500) % 3000 * 512), -512, 0, 0, cuda);
}

static void find(void *lib, const char *name, void *to)
{
	*(void **)to = dlsym(lib, name);
	if (!*(void **)to) {
		fprintf(stderr, "no %s\n", name);
		exit(3);
	}
}

static void kill_after(uint64_t us)
{
	struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {0};
	timer_t timer;

	when.it_value.tv_sec = (time_t)(us / 1000000);
	when.it_value.tv_nsec = (long)(us % 1000000) * 1000 + 1;	/* 0 would disarm it */
	if (timer_create(CLOCK_MONOTONIC, &how, &timer) || timer_settime(timer, 0, &when, NULL)) {
		perror("timer");
		exit(3);
	}
}

static void *work(void *arg)
{
	uint64_t block[8] = {0};
	unsigned int i, seed = (unsigned int)(uintptr_t)arg;

	current(context);
	for (i = 0;; i++) {
		/* Sometimes a grid that is too large: failures are recorded under load, too. */
		launch(function, 1, i % 500 == 7 ? 70000 : 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
		if (i % 8 == 0)
			blocks(seed, i / 8);
		if (i % 16 == 0) {
			if (block[i / 16 % 8])
				release(block[i / 16 % 8]);
			if (alloc(&block[i / 16 % 8], 256 + (seed + i) % 4096) != 0)
				block[i / 16 % 8] = 0;
		}
		if (i % 64 == 0)
			sync_all();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 1;
	uint64_t range = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000, r = seed;
	pthread_t thread;
	void *lib, *module;

	r = (r + 1) * 6364136223846793005u;
	kill_after((r >> 33) % range);
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 3;
	}
	*(void **)&report = dlsym(RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
	find(lib, "cuInit", &init);
	find(lib, "cuDevicePrimaryCtxRetain", &retain);
	find(lib, "cuCtxSetCurrent", &current);
	find(lib, "cuModuleLoadData", &load);
	find(lib, "cuModuleGetFunction", &get);
	find(lib, "cuLaunchKernel", &launch);
	find(lib, "cuMemAlloc_v2", &alloc);
	find(lib, "cuMemFree_v2", &release);
	find(lib, "cuCtxSynchronize", &sync_all);
	if (init(0) || retain(&context, 0) || current(context) || load(&module, image) ||
	    get(&function, module, "nop")) {
		fprintf(stderr, "the simulated GPU does not work\n");
		return 3;
	}
	pthread_create(&thread, NULL, work, (void *)1);
	work((void *)2);
	return 0;
}
