/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a machine, each with all that NVML, CUDA and the PCI bus say of it.
 */
#ifndef CUWHY_MACHINE_GPU_H
#define CUWHY_MACHINE_GPU_H

#include "compat/compat.h"
#include "input/machine/machine.h"

struct machine_gpu {
	size_t index;			/* NVML's, or the place in the list that it is from */
	const char *name;		/* NULL = not known */
	int cc;				/* 90 is 9.0; 0 = not known */
	enum compat_class class;
	const struct gpu_state *nvml;	/* NULL: not asked, or NVML does not have it */
	const struct cuda_device *cuda;	/* NULL: CUDA does not show it */
	const struct host_gpu *host;	/* NULL: not on the bus that was read */
	int ordinal;			/* CUDA's number; -1 */
};

/* How many there are: those of NVML; without it those of CUDA; without it those on the bus. */
size_t machine_gpus(const struct machine *m);
void machine_gpu(const struct machine *m, size_t i, struct machine_gpu *g);

/* The environment that is judged: the first one with PyTorch, else the active one; NULL when there is none. */
const struct pyenv *machine_env(const struct machine *m, size_t *index);

/* "12.8" as 12080; 0 = no version. */
int cuda_number(const char *text);

#endif
