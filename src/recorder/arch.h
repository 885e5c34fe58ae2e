/* SPDX-License-Identifier: Apache-2.0
 * Everything that depends on the processor, with arch_<name>.S and arch_<name>.map: the clock, the dlsym stub, relocations.
 * A port is one more branch here, one in src/portable/portable.h, and one more pair of files.
 */
#ifndef CUWHY_ARCH_H
#define CUWHY_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

/* In a function: the unwinder calls this routine when it passes the frame (pc-relative, 4 bytes, signed). */
#define ARCH_PERSONALITY(name) __asm__(".cfi_personality 0x1b, " name)

#define ARCH_CLOCK_SOURCE "tsc"	/* the kernel's name for it */

/* The time stamp counter runs at one rate on all cores and in all power states. */
static inline bool arch_has_steady_ticks(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}

static inline uint64_t arch_ticks(void)
{
	return __rdtsc();
}

/* Relocations whose word becomes the address of a symbol: of a call, of a function that the code compares or passes on, in data. */
#define ARCH_REFERENCES(X) X(R_X86_64_JUMP_SLOT) X(R_X86_64_GLOB_DAT) X(R_X86_64_64)
#elif defined(__aarch64__)

#define ARCH_PERSONALITY(name) __asm__(".cfi_personality 0x1b, " name)

#define ARCH_CLOCK_SOURCE "arch_sys_counter"

/* The generic timer is one counter for all cores, at a rate that never changes. */
static inline bool arch_has_steady_ticks(void)
{
	return true;
}

static inline uint64_t arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

#define ARCH_REFERENCES(X) X(R_AARCH64_JUMP_SLOT) X(R_AARCH64_GLOB_DAT) X(R_AARCH64_ABS64)
#else
#error "no port to this processor yet: see arch.h"
#endif

#endif
