/* SPDX-License-Identifier: Apache-2.0
 * The events of a PyTorch program without Python or PyTorch, for bench_parts.py, which counts what the recorder does in
 * each. Runs under valgrind, so there are few of them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench_calls.h"

#define WARM	64
#define REPEATS	16	/* of each: now and then an event has more to do, a sample of the memory for example */

/* PyTorch's, for which bench_calls.c has stand-ins; the recorder's of the same name come first and call those. */
#define REPORT	 "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define SEQUENCE "_ZN2at15sequence_number17get_and_incrementEv"

static struct {
	int (*init)(unsigned), (*retain)(void **, int), (*load)(void **, const void *);
	int (*get)(void **, void *, const char *), (*event)(void **, unsigned), (*record)(void *, void *);
	int (*copy)(void *, unsigned long long, size_t, void *), (*wait)(void *);
	current_fn *set_current;
	launch_fn *launch;
	alloc_fn *alloc;
	report_fn *report;
	uint64_t (*sequence)(void);
	void *function, *cuda_event;
	unsigned long long memory;
} on;

/* Where an event begins and ends in the trace. */
__attribute__((noinline)) void bench_mark(void)
{
	__asm__ volatile("" ::: "memory");
}

static void launch(uint64_t i)
{
	unsigned long long pointer = on.memory;
	float value = 1;
	int n = (int)(i % 2);
	void *params[] = {&pointer, &value, &n};

	on.launch(on.function, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}

static void block(uint64_t i)
{
	const struct bench_device cuda = {1, 0};

	on.report((void *)(0x7f0000000000u + i % REPEATS * 512), 512, 4096, 2 << 20, cuda);
}

static void block_freed(uint64_t i)
{
	const struct bench_device cuda = {1, 0};

	on.report((void *)(0x7f0000000000u + i % REPEATS * 512), -512, 3584, 2 << 20, cuda);
}

/* This and the next, as .item() does. */
static void copy(uint64_t i)
{
	static char to[64];

	(void)i;
	on.copy(to, on.memory, 4, NULL);
}

static void wait(uint64_t i)
{
	(void)i;
	on.wait(NULL);
}

static void record(uint64_t i)
{
	(void)i;
	on.record(on.cuda_event, NULL);
}

static void node(uint64_t i)
{
	(void)i;
	on.sequence();
}

static const struct {
	const char *name;
	void (*run)(uint64_t);
} events[] = {
	{"launch", launch}, {"block allocated", block}, {"block freed", block_freed}, {"copy to the host", copy},
	{"wait", wait}, {"event recorded", record}, {"autograd node", node},
};
#define EVENTS (sizeof(events) / sizeof(events[0]))

static void *find(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *f = library ? dlsym(library, name) : NULL;

	if (!f)
		fprintf(stderr, "bench_parts: no %s\n", name);
	return f;
}

/* Lines of the map that bench_parts.py needs. */
static void print_recorder(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "libcuwhy-rec.so"))
			printf("map %s", line);
	if (maps)
		fclose(maps);
	printf("mark %lx\nrepeats %d\n", (unsigned long)(uintptr_t)bench_mark, REPEATS);
	for (size_t e = 0; e < EVENTS; e++)
		printf("event %s\n", events[e].name);
	fflush(stdout);
}

int main(void)
{
	void *context, *module;

	on.init = find("cuInit"), on.retain = find("cuDevicePrimaryCtxRetain"), on.set_current = find("cuCtxSetCurrent");
	on.load = find("cuModuleLoadData"), on.get = find("cuModuleGetFunction"), on.launch = find("cuLaunchKernel");
	on.alloc = find("cuMemAlloc_v2"), on.event = find("cuEventCreate"), on.record = find("cuEventRecord");
	on.copy = find("cuMemcpyDtoHAsync_v2"), on.wait = find("cuStreamSynchronize");
	on.report = dlsym(RTLD_DEFAULT, REPORT), on.sequence = dlsym(RTLD_DEFAULT, SEQUENCE);
	if (on.init(0) || on.retain(&context, 0) || on.set_current(context) || on.load(&module, bench_image) ||
	    on.get(&on.function, module, "fill") || on.alloc(&on.memory, 4096) || on.event(&on.cuda_event, 2))
		return 1;
	for (uint64_t i = 0; i < WARM; i++)
		for (size_t e = 0; e < EVENTS; e++)
			events[e].run(i);
	print_recorder();
	for (size_t e = 0; e < EVENTS; e++)
		for (uint64_t i = 0; i < REPEATS; i++) {
			bench_mark();
			events[e].run(i);
		}
	bench_mark();
	return 0;
}
