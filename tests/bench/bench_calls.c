/* SPDX-License-Identifier: Apache-2.0
 * Times single driver calls from inside a Python process: the clock is read around every call, so
 * that we get the tail and not only the mean. Loaded by bench_calls.py with ctypes.
 */
#include "bench_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

static inline uint64_t now_ticks(void)
{
#if defined(__x86_64__)
	unsigned int aux;

	return __builtin_ia32_rdtscp(&aux);
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double bench_ticks_per_ns(void)
{
	uint64_t t0 = now_ticks(), n0 = now_ns();

	while (now_ns() - n0 < 50000000)
		;
	return (double)(now_ticks() - t0) / (double)(now_ns() - n0);
}

static void keep(struct bench *b, uint64_t ticks, int code)
{
	b->ticks[b->count++] = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
	b->failed += code != 0;
}

void bench_one(struct bench *b)
{
	uint64_t begin = now_ticks();
	int code = b->launch(b->function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);

	keep(b, now_ticks() - begin, code);
}

void bench_launches(struct bench *b, uint64_t n)
{
	while (n--)
		bench_one(b);
}

struct job {
	struct bench *bench;
	uint64_t n;	/* 0: count the instructions of one */
	int64_t steps;
};

static void *launches_in_thread(void *arg)
{
	struct job *job = arg;

	job->bench->failed += job->bench->set_current(job->bench->context) != 0;
	for (uint64_t i = 0; i < 64; i++)	/* the first ones make this thread's ring */
		job->bench->launch(job->bench->function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	if (job->n)
		bench_launches(job->bench, job->n);
	else
		job->steps = bench_steps_launch(job->bench);
	return NULL;
}

/* The same from a thread that Python does not know, so that there is no stack to walk. */
static int64_t run_in_thread(struct bench *b, uint64_t n)
{
	struct job job = {b, n, -1};
	pthread_t id;

	if (pthread_create(&id, NULL, launches_in_thread, &job))
		b->failed++;
	else
		pthread_join(id, NULL);
	return job.steps;
}

void bench_launches_no_python(struct bench *b, uint64_t n)
{
	run_in_thread(b, n);
}

int64_t bench_steps_no_python(struct bench *b)
{
	return run_in_thread(b, 0);
}

/* One sample is an allocation and the free of the same block. */
void bench_pairs(struct bench *b, uint64_t n)
{
	while (n--) {
		unsigned long long address = 0;
		uint64_t begin = now_ticks();
		int code = b->alloc(&address, 4096);

		code |= b->free(address);
		keep(b, now_ticks() - begin, code);
	}
}

/* From the host to the GPU. */
static void copies(struct bench *b, uint64_t n, size_t bytes)
{
	static char from[64 << 10];

	while (n--) {
		uint64_t begin = now_ticks();
		int code = b->copy(b->to, from, bytes);

		keep(b, now_ticks() - begin, code);
	}
}

void bench_copies_small(struct bench *b, uint64_t n)
{
	copies(b, n, 512);
}

void bench_copies_large(struct bench *b, uint64_t n)
{
	copies(b, n, 64 << 10);
}

/* The recorder's functions with these names come first and call these, which stand in for PyTorch's. */
#define REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define NAME(symbol) #symbol
#define NAME_OF(symbol) NAME(symbol)
report_fn REPORT;
void REPORT(void *block, int64_t size, size_t allocated, size_t reserved, struct bench_device d)
{
	(void)block, (void)size, (void)allocated, (void)reserved, (void)d;
}

uint64_t _ZN2at15sequence_number17get_and_incrementEv(void);
uint64_t _ZN2at15sequence_number17get_and_incrementEv(void)
{
	static uint64_t next;

	return next++;
}

uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void);
uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void)
{
	return 1;
}

/* A kernel of the simulated GPU; in a file named like PyTorch's, it is PyTorch's own code. */
const char bench_image[] = "cuwhy-sim-module 1\ntarget compute_50 ptx 7.0\nkernel fill\n";

void bench_block(report_fn *report, uint64_t i)
{
	const struct bench_device cuda = {1, 0};
	const size_t reserved = 2 << 20, allocated = 150 * 512;
	uintptr_t made = 0x7f0000000000u + i * 7919 % 400 * 512, gone = 0x7f0000000000u + (i + 150) * 7919 % 400 * 512;

	report((void *)made, 512, allocated + 512, reserved, cuda);
	report((void *)gone, -512, allocated, reserved, cuda);
}

/* One sample is a block allocated and another freed, with a few hundred live, as in a training step. */
void bench_blocks(struct bench *b, uint64_t n)
{
	b->report = (report_fn *)dlsym(RTLD_DEFAULT, NAME_OF(REPORT));
	b->report = b->report ? b->report : REPORT;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t begin = now_ticks();

		bench_block(b->report, i);
		keep(b, now_ticks() - begin, 0);
	}
}
