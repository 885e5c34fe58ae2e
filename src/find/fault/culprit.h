/* SPDX-License-Identifier: Apache-2.0
 * The fault in a GPU core dump: its kernel, threads, instruction and addresses.
 */
#ifndef CUWHY_CULPRIT_H
#define CUWHY_CULPRIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "find/fault/assert_words.h"
#include "read/dump/dump.h"
#include "find/fault/sass.h"
#include "find/fault/values.h"
#include "find/fault/view.h"

#define CULPRIT_PLACES_MAX	16
#define CULPRIT_LANES_MAX	1024	/* lanes kept one by one; all are counted */

enum culprit_fault {
#define FAULT(name, id, code, text)	FAULT_##name,
#include "kb/gpu_faults.def"
};

/* Where the fault was seen. */
enum culprit_source {
	CULPRIT_NOWHERE,	/* no thread was on the GPU */
	CULPRIT_LANE,		/* lanes carry the exception */
	CULPRIT_SM,		/* only the SM does: lanes are those right after the instruction */
	CULPRIT_BROKEN,		/* warps stopped without exception: a trap */
	CULPRIT_RUNNING,	/* nothing: a dump of a running GPU */
};

struct culprit_lane {
	uint32_t block[3], thread[3];
	uint64_t pc;			/* where the thread stopped */
	uint64_t address;		/* that it accessed */
	bool address_known;
};

/* Where threads of a running kernel are. */
struct culprit_place {
	uint64_t pc;
	char *function;			/* mangled; NULL = not known */
	uint64_t offset;		/* from it, else from the kernel's entry */
	size_t threads;
};

struct culprit {
	enum culprit_fault fault;
	enum culprit_source source;
	uint32_t exception;
	const char *exception_name;	/* "WARP_ILLEGAL_ADDRESS" */
	const char *exception_text;	/* the driver's own words (r580), or "" */

	const char *device_name, *sm_type, *chip;
	unsigned device, arch;		/* arch: 90 */
	uint32_t sm;
	unsigned driver_major, driver_minor, cuda_major, cuda_minor;	/* 0 = unknown */

	bool grid_known;
	char *kernel, *kernel_text;	/* mangled, for people; NULL = unknown. Without a grid: perhaps a function of it */
	uint64_t grid_id, entry, context;
	uint32_t grid[3], block[3];
	struct bytes params;	/* borrowed from the dump */
	uint64_t params_offset;
	uint64_t origin;		/* words of them that the address was computed from, as bits; 0 = not known */

	bool pc_known, pc_exact;	/* exact: the faulting instruction, not one near it */
	uint64_t pc;
	char *function;			/* the innermost symbol that contains the pc, mangled; NULL = unknown */
	uint64_t function_offset;	/* from it */
	uint64_t kernel_offset;		/* from the kernel's entry */
	bool decoded;
	struct sass insn;
	enum sass_space space;		/* of the instruction; generic ones by their address, where known */
	bool address_doubtful;		/* the load overwrote its address register: addresses are meaningless */
	bool address_recomputed;	/* it did, but they were recomputed from the code */
	bool address_unchecked;		/* and no surviving register could confirm that */
	bool address_computed;		/* the dump has no thread: those below were executed again (strays.h), */
	bool address_perhaps;		/* and it may have been others */

	struct culprit_lane *lanes;	/* the faulting ones, first first */
	size_t n_lanes, n_kept;
	size_t n_warps, n_other;	/* warps they are in; lanes with an exception in other grids */
	size_t n_blocks;
	struct culprit_place places[CULPRIT_PLACES_MAX];	/* CULPRIT_RUNNING: most threads first */
	size_t n_places, n_elsewhere;	/* threads at places beyond the table */
	bool other_grids;		/* CULPRIT_RUNNING: younger kernels were running, too */
	bool address_known;
	uint64_t address_min, address_max;
	unsigned call_depth;
	struct assertion assertion;	/* of FAULT_ASSERT: what is known about it */
	uint64_t values_at;		/* the instruction up to which threads were executed for these: 0 = they were not */
	struct values values;		/* what the threads checked, or computed their address from */
	struct view view;		/* of an access: the tensor that it was to */
	struct dump *dump;
	struct bytes image;		/* of the module with the instruction, borrowed from the dump */
	bool borrows;			/* all but the lanes belongs to another culprit; */
	bool names;			/* but not the kernel's names */
};

/* Always returns an answer, perhaps "nothing was running". Free it before the dump. */
struct culprit *culprit_find(struct dump *d);

/* The same; of several exceptions, one that the program was told of by this CUDA error, if there is one. */
struct culprit *culprit_find_told(struct dump *d, uint32_t code);

/* The same for a dump on request, which is known to have no fault: what was running. */
struct culprit *culprit_find_running(struct dump *d);
void culprit_free(struct culprit *c);

/* What the threads checked, or computed their address from, if memory was like this where the dump does not have it. */
typedef bool memory_fn(void *arg, uint64_t address, void *to, size_t n);
void culprit_values_with(const struct culprit *c, struct values *v, memory_fn *memory, void *arg);

/* Of an access whose threads and addresses are known: finds `view`. */
void culprit_find_view(struct culprit *c);
/* A thread as view_position() wants it; false when its address is not known. */
bool culprit_view_lane(const struct culprit *c, size_t lane, struct view_lane *to);

const char *culprit_fault_id(enum culprit_fault f);
const char *culprit_fault_text(enum culprit_fault f);
uint32_t culprit_fault_code(enum culprit_fault f);	/* the CUDA error, 0 = that depends */

#endif
