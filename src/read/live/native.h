/* SPDX-License-Identifier: Apache-2.0
 * The native stack of a thread of another process.
 */
#ifndef CUWHY_NATIVE_H
#define CUWHY_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct native_frame;
struct pool;
struct remote;
struct target;
struct unwinder;

#define NATIVE_STACK	16384u	/* bytes from the stack pointer on */
#define NATIVE_MAX	32u

/* A thread's stack as it was at one moment. */
struct native_stack {
	uint64_t pc, sp;
	uint64_t reg[16];	/* in the order of DWARF on x86-64; only with `all` */
	bool all;
	uint8_t bytes[NATIVE_STACK];
	size_t n;
};

/* Copies it. `sp` and `pc` 0: they are not known, and nothing is. `reg` NULL: the other registers are not known. */
void native_copy(struct native_stack *s, struct remote *r, uint64_t sp, uint64_t pc, const uint64_t reg[16]);

/* Names it; innermost frame first. `u` NULL: without unwind tables. */
size_t native_frames(const struct native_stack *s, struct target *t, struct remote *r, struct unwinder *u,
		     struct native_frame **out, struct pool *pool);

#endif
