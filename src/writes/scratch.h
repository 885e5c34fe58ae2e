/* SPDX-License-Identifier: Apache-2.0
 * The folder that takes what a dry run writes when no mount can be made: who makes what in it, for fence.c, for the preloaded library
 * (src/redirect) and for whoever tells the user afterwards what was not kept.
 *
 *	new/ABSOLUTE/PATH	what was written, or copied to be changed. A folder in it that is also one of the user's only has what differs.
 *	gone/ABSOLUTE/PATH	an empty file: the user's file or folder of that name is not there for the program, nor is anything below it. Marks
 *				are never taken back: if new/PATH exists as well, it was made anew. Folders only lead to marks.
 *	pass			16 random bytes: the library's own system calls carry them (fence_filter.c)
 *	real			the folders that stay real, each with a zero behind it
 *	state			struct scratch_state, mapped by every process
 */
#ifndef CUWHY_WRITES_SCRATCH_H
#define CUWHY_WRITES_SCRATCH_H

#include <stdint.h>

#define SCRATCH_NEW	"/new"
#define SCRATCH_GONE	"/gone"
#define SCRATCH_PASS	"/pass"
#define SCRATCH_REAL	"/real"
#define SCRATCH_STATE	"/state"

/* While a file is copied, it has a name like this beside its place; such names are in no listing. */
#define SCRATCH_PART	".cuwhy-copied-"

#define SCRATCH_LIBRARY		"libcuwhy-writes.so"	/* in LD_PRELOAD */
#define SCRATCH_ENV		"CUWHY_WRITES"		/* the folder; unset: the library does nothing */
#define SCRATCH_REAL_ENV	"CUWHY_WRITES_REAL"	/* more folders that stay real, separated by colons */

#define SCRATCH_LONGEST		400	/* bytes of the folder's own path */
#define SCRATCH_REAL_LONGEST	8192	/* of the folders that stay real */

/* The kernel compares a system call's sixth argument; no call that needs the pass has one. In two parts, so that the
 * whole is in no memory of the program's, from which a register might be filled by accident. */
struct scratch_pass { uint64_t half, other; };

struct scratch_state {
	uint32_t changes;	/* 0: nothing was redirected yet, so every name means what it always meant. Grows with each folder in `new` or `gone`
				 * that one of the user's has for the first time */
};

#endif
