/* SPDX-License-Identifier: Apache-2.0
 * Which memory the address of a fault belongs to: live, freed, near a block, on another device, or the host's.
 */
#ifndef CUWHY_ADDRESS_H
#define CUWHY_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"
#include "case/line.h"
#include "find/fault/strays.h"

struct trace;
struct culprit;
struct cw_failure;
struct cw_launch;
struct fault_launch;
struct stray_around;

struct memory {			/* a PyTorch block, or a driver allocation */
	bool known;
	uint64_t addr, size;
	int device;		/* -1 = unknown */
	struct place made, freed;	/* `file` NULL = not known */
	bool freed_after;		/* not at that line, but some time after it */
};

struct address {
	const char *in;		/* the fact "address.in" */
	size_t lane;		/* of the culprit: the first one whose address is not in live memory */
	size_t threads;		/* that faulted, as far as memory can tell */
	struct memory block, segment;	/* PyTorch's, and the driver's around it */
	struct memory next;	/* guard mode, "near": the next live one on that side */
	uint64_t freed_ticks;	/* guard mode, "freed": when; it stayed mapped until all work before had ended. 0 = not known */
	int param;		/* the number of the kernel's parameter that points there, -1 = unknown */
	int param_byte;		/* offset of that pointer in the parameters, -1 = none */
	int device;		/* the kernel ran on, -1 = unknown */
	bool device_sure;	/* the core dump says so too */
	bool past;		/* "near": the address is past the end, not before the start */
	uint64_t distance;
	bool wraps, wraps_sure;	/* a 32-bit index overflowed; the kernel's own pointer says so too */
	bool param_sure;	/* a parameter points into that block, or into the same host memory */
	bool several;		/* "near": parameters point into other blocks, too */
	bool traced;		/* "near": the code computed the address from a pointer into that block */
};

void address_find(struct address *a, struct trace *t, const struct culprit *c, const struct cw_failure *noticed,
		  const struct fault_launch *m);

/* The memory around a launch, for the addresses that its threads are computed to access. NULL is freed without complaint. */
struct stray_around *stray_around_open(struct trace *t, const struct culprit *c, const struct cw_failure *noticed,
				       const struct cw_launch *l);
void stray_around_close(struct stray_around *a);
/* enum stray; a stray_fn */
enum stray stray_around_at(void *around, const struct sass_access *a);
/* Was there an access of which that is not known? */
bool stray_around_doubt(const struct stray_around *a);

/* In guard mode: does one of the launch's arguments point into memory that had been freed? */
bool stray_around_freed(struct stray_around *a);

/* Fills the facts "address.…". */
void address_facts(struct casefile *f, const struct trace *t, const struct address *a);

#endif
