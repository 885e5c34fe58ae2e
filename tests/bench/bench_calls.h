/* SPDX-License-Identifier: Apache-2.0
 * What bench_calls.py calls through ctypes: timing of single driver calls, and counting of their
 * instructions. */
#ifndef CUWHY_BENCH_CALLS_H
#define CUWHY_BENCH_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef int launch_fn(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
		      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		      void *stream, void **params, void **extra);
typedef int alloc_fn(unsigned long long *address, size_t bytes);
typedef int free_fn(unsigned long long address);
typedef int copy_fn(unsigned long long to, const void *from, size_t bytes);
typedef int current_fn(void *context);

/* What PyTorch's allocator calls for every block. */
struct bench_device { int8_t type, index; };
typedef void report_fn(void *block, int64_t size, size_t allocated, size_t reserved, struct bench_device d);

struct bench {
	launch_fn *launch;
	void *function;
	alloc_fn *alloc;
	free_fn *free;
	current_fn *set_current;
	void *context;
	uint32_t *ticks;	/* of each call */
	uint64_t count;		/* calls so far */
	int64_t failed;
	report_fn *report;
	copy_fn *copy;
	unsigned long long to;	/* room for the largest copy */
};

/* bench_calls.c: the clock is read around every call. */
double bench_ticks_per_ns(void);
void bench_one(struct bench *b);
void bench_launches(struct bench *b, uint64_t n);
void bench_launches_no_python(struct bench *b, uint64_t n);
void bench_pairs(struct bench *b, uint64_t n);
void bench_copies_small(struct bench *b, uint64_t n);	/* 512 bytes each */
void bench_copies_large(struct bench *b, uint64_t n);	/* 64 KiB */
void bench_blocks(struct bench *b, uint64_t n);
void bench_block(report_fn *report, uint64_t i);	/* the i-th block allocated, and another freed */
int64_t bench_steps_no_python(struct bench *b);

extern const char bench_image[];

/* bench_steps.c: instructions of one call, -1 where a process may not trace its parent. */
int64_t bench_steps_launch(struct bench *b);
int64_t bench_steps_pair(struct bench *b);
int64_t bench_steps_block(struct bench *b);

#endif
