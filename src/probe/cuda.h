/* SPDX-License-Identifier: Apache-2.0
 * What libcuda.so.1 reports in this environment: which file it is, whether it starts, which GPUs it shows. Only the probe
 * asks it, and creates no context, so it uses no GPU memory.
 */
#ifndef CUWHY_PROBE_CUDA_H
#define CUWHY_PROBE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#define CUDA_DEVICES_MAX 64

struct cuda_library {
	char path[240];		/* the file that the loader picked; "" = not known */
	int32_t init;		/* what cuInit returned; -1 = it did not return, or was not called */
	int32_t version;	/* 13000 = CUDA 13.0; -1 = not known */
	int32_t count;		/* devices; -1 = not known */
};

struct cuda_device {
	char name[96];
	char uuid[48];		/* "GPU-…"; "" = not known */
	char pci[32];
	int32_t cc_major, cc_minor;	/* -1 = not known */
	int32_t compute_mode;	/* as in details.def */
	uint64_t total;		/* USAGE_UNKNOWN = not known */
	uint64_t peers;		/* bit i: it can access the memory of device i */
	uint32_t peers_known;
};

#endif
