/* SPDX-License-Identifier: Apache-2.0
 * The kernels and variables of one module of GPU code: a cubin (ELF) or PTX text. What a launch is checked against is read, the
 * instructions are not. Needs nothing but elf_sections.c: it is linked into the simulated driver.
 */
#ifndef CUWHY_GPU_CODE_H
#define CUWHY_GPU_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct gpu_param {
	uint16_t offset, size;
};

struct gpu_kernel {
	const char *name;
	unsigned regs;		/* per thread; 0 = not known: only PTX */
	unsigned shared;	/* static, in bytes */
	unsigned local;		/* stack frame, in bytes per thread */
	unsigned bounds;	/* threads per block at most, __launch_bounds__; 0 = none */
	unsigned cluster[3];	/* __cluster_dims__; 0 = none */
	unsigned param_bytes;
	unsigned n_params;
	size_t param;		/* the first, in gpu_code.param */
	uint64_t code;		/* bytes of instructions */
};

struct gpu_variable {
	const char *name;
	uint64_t size;
	bool constant, managed;
	struct bytes init;	/* what it contains at first; no data: zeros */
};

struct gpu_code {
	struct gpu_kernel *kernel;	/* by name */
	size_t kernels;
	struct gpu_variable *variable;
	size_t variables;
	struct gpu_param *param;
	size_t params;
	char *names;		/* texts that the others point into */
	uint8_t *init;		/* likewise contents */
};

/* Both return 0 or a negative errno: -EINVAL when it is not such code, -ENOMEM. The bytes are no longer needed afterward. */
int gpu_code_from_cubin(struct gpu_code *c, struct bytes cubin);
int gpu_code_from_ptx(struct gpu_code *c, struct bytes text);
void gpu_code_release(struct gpu_code *c);

/* NULL: there is none. */
const struct gpu_kernel *gpu_code_kernel(const struct gpu_code *c, const char *name);
const struct gpu_variable *gpu_code_variable(const struct gpu_code *c, const char *name);

/* What a module is made for; ptx is 0 for a cubin. False: it is neither. */
struct gpu_target {
	int arch;		/* 90 */
	char suffix;		/* 'a', 'f' or '\0'; a cubin does not say */
	int ptx;		/* ISA version, 87 is 8.7 */
};
bool gpu_cubin_target(struct bytes cubin, struct gpu_target *t);
bool gpu_ptx_target(struct bytes text, struct gpu_target *t);

/* How long a cubin is, of which only the address is known: its tables say so. 0: it is none. */
size_t gpu_cubin_size(const void *cubin);

/* For the two readers: by name, and ready to be searched. */
void gpu_code_sort(struct gpu_code *c);

#endif
