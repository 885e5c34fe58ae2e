/* SPDX-License-Identifier: Apache-2.0
 * Which threads of a launch leave the memory that is mapped? For a fault whose threads are gone from the dump.
 *
 * A store is not waited for: the GPU reports one that goes astray after its warp has exited. The dump then has the instruction and the
 * code, the recording has the launch's dimensions and arguments, and these determine what every thread accesses, as far as that does
 * not depend on memory. So the threads are executed again (see sass_run.h).
 */
#ifndef CUWHY_STRAYS_H
#define CUWHY_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "find/fault/culprit.h"
#include "find/fault/sass_run.h"

/* A third of a second of work (a step takes 0.15 µs) for all launches together: as long as people wait for the rest of a verdict. */
#define STRAYS_STEPS 2000000u

enum stray {
	STRAY_INSIDE,	/* or not known to be outside */
	STRAY_PERHAPS,	/* of memory that was freed later, or right beside memory that is mapped */
	STRAY_BEYOND,	/* of all memory that is known; the driver may have some of its own there */
	STRAY_OUTSIDE,	/* no memory was mapped there */
};

/* Where is this access? Its address is known. */
typedef enum stray stray_fn(void *arg, const struct sass_access *a);

struct stray_launch {
	const char *kernel; /* its mangled name; NULL: the one that has the dump's instruction */
	uint32_t grid[3], block[3];
	struct bytes params;
};

struct strays {
	enum stray best;	/* STRAY_INSIDE: none was found */
	bool sure;		/* the threads make these accesses, whatever is not known */
	bool complete;		/* all threads were followed to their end, and all their accesses are known */
	uint64_t pc;		/* of the first */
	struct sass insn;
	struct culprit_lane *lanes; /* the first ones, of the best kind; in order */
	size_t n_kept, n_lanes;
	uint64_t entry, params_offset; /* of the kernel */
	struct bytes image;
};

/* Takes what it uses from `steps`. False when the kernel's code is not in the dump, or cannot be executed. Only accesses of the
 * dump's instruction count, if it has one. */
bool strays_find(struct strays *s, const struct culprit *k, const struct stray_launch *l, unsigned *steps,
		 stray_fn *where, void *arg);
void strays_free(struct strays *s);

/* The culprit with these threads, which it takes over, as far as the dump no longer has them. Free it before the original. */
struct culprit *culprit_with_strays(const struct culprit *k, const struct stray_launch *l, struct strays *s);

#endif
