/* SPDX-License-Identifier: Apache-2.0
 * Makes programs that are built with a new glibc start with an old one (2.28).
 *
 * glibc gives a function a new version when it changes or moves to another library: 2.33 did that with stat, 2.34 with
 * all of libdl and libpthread and with program startup, 2.38 with what reads numbers, 2.29 and 2.38 with some of libm.
 * The linker always picks the newest version, and a program that needs it does not start where it is missing, although
 * old and new systems alike still have the old one. The files here define those functions again, hidden inside the
 * program, and request the old version by name. They are linked only into what we distribute; libraries that are linked
 * in statically use them, too. To port this to another processor, add a branch here, with the versions in `objdump -T`
 * of its libc.so.6.
 */
#ifndef CUWHY_PORTABLE_H
#define CUWHY_PORTABLE_H

#if defined(__x86_64__)
#define GLIBC_FIRST	"2.2.5"	/* the first version that glibc had on this processor */
#define GLIBC_FXSTATAT	"2.4"
#define STAT_LAYOUT	1	/* of struct stat, ever since */
#elif defined(__aarch64__)
#define GLIBC_FIRST	"2.17"
#define GLIBC_FXSTATAT	"2.17"
#define STAT_LAYOUT	0
#else
#error "no port to this processor yet: see portable.h"
#endif

/* Declares `old_name` with the type of `name`, bound to the version that glibc had before. */
#define OLD(name, version)                                                                         \
	extern __typeof__(name) old_##name;                                                        \
	__asm__(".symver old_" #name ", " #name "@GLIBC_" version)
#define HERE __attribute__((visibility("hidden")))

#endif
