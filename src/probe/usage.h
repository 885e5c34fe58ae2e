/* SPDX-License-Identifier: Apache-2.0
 * Every GPU of the machine and who uses its memory at one moment, from NVML.
 *
 * What NVML does not say is not invented: bytes may be unknown, a pid may be invisible from here,
 * and what no process accounts for is a line of its own (usage_unattributed).
 */
#ifndef CUWHY_USAGE_H
#define CUWHY_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USAGE_UNKNOWN	UINT64_MAX	/* instead of a number of bytes */

enum holder_kind {			/* bits: a process may be several */
		   HOLDER_COMPUTE = 1,
		   HOLDER_GRAPHICS = 2,
		   HOLDER_MPS = 4, /* a client of MPS */
};

enum holder_state {
	HOLDER_UNKNOWN,			/* not checked, or it cannot be determined */
	HOLDER_RUNNING,
	HOLDER_ZOMBIE,			/* it ended, but its parent has not reaped it */
	HOLDER_GONE,			/* the process no longer exists */
	HOLDER_OUTSIDE,			/* a process outside this container: the pid is from another namespace */
};

struct gpu_holder {
	uint32_t pid;			/* as NVML reports it */
	uint32_t instance;		/* the MIG instance that it is in; UINT32_MAX = none */
	uint32_t kind;			/* enum holder_kind, bits */
	uint32_t state;			/* enum holder_state */
	uint32_t own_user;		/* 1: runs as the user who asks */
	uint64_t bytes;			/* USAGE_UNKNOWN: not available (MIG, vGPU, WSL) */
	char command[160];		/* "" = not known */
};

struct gpu_card {
	uint32_t index;			/* NVML's: the order of the bus, without CUDA_VISIBLE_DEVICES */
	uint32_t mig;			/* 1: it is divided into instances */
	char uuid[96];			/* "GPU-…" */
	char pci[32];
	char name[96];
	/* USAGE_UNKNOWN where not known. total = reserved + used + free. */
	uint64_t total, reserved, used, free;
};

/* What NVML says about one GPU beyond its memory, each -1 where it is not known. */
struct gpu_details {
#define DETAIL(field, text) int64_t field;
#include "probe/details.def"
#undef DETAIL
};

struct gpu_state {
	struct gpu_card card;
	struct gpu_details details;	/* known only when requested */
	struct gpu_holder *holder;	/* most bytes first, unknown ones last */
	size_t n, cap;
	bool holders_known;		/* the list of processes is complete */
};

enum usage_trouble {
	USAGE_COMPLETE,
	USAGE_NO_PROBE,			/* our probe is missing or failed to start */
	USAGE_NO_LIBRARY,		/* there is no NVML: no NVIDIA driver */
	USAGE_REFUSED,			/* NVML is there but returned an error */
	USAGE_HUNG,			/* no answer in time */
	USAGE_DIED,			/* it crashed */
};

struct gpu_usage {
	char driver[80];		/* its version; "" = not known */
	char nvml[80];			/* NVML's own version; "" = not known */
	int32_t cuda;			/* CUDA version that NVML reports, 13000 = 13.0; -1 = not known */
	int32_t code;			/* NVML's last error; 0 = nothing */
	struct gpu_state *gpu;
	size_t n, cap;
	enum usage_trouble trouble;	/* not USAGE_COMPLETE: this may be only a part */
	char why[240];			/* in words; "" = no trouble */
	uint64_t mono_ns, real_ns;	/* when it was requested */
};

void gpu_details_unknown(struct gpu_details *d);	/* all of them */

struct gpu_usage *usage_new(void);
void usage_free(struct gpu_usage *u);

struct gpu_state *usage_add_gpu(struct gpu_usage *u, const struct gpu_card *card);

/* A process may be in several of NVML's lists with the same bytes, or in several MIG instances with different ones. */
void usage_add_holder(struct gpu_state *g, const struct gpu_holder *h);

/* What is known about a process, on every GPU where it holds memory. */
void usage_name_holder(struct gpu_usage *u, const struct gpu_holder *who);

void usage_sort(struct gpu_usage *u);

/* The GPU with this UUID, as the CUDA driver reports it; NULL when it is not here. */
const struct gpu_state *usage_find(const struct gpu_usage *u, const uint8_t uuid[16]);

/* Bytes in use that no listed process accounts for; USAGE_UNKNOWN when the card does not say what is in use. */
uint64_t usage_unattributed(const struct gpu_state *g);

/* Words for JSON: "running", …; "hung", …, "none" when it is complete. Both lists end with NULL. */
extern const char *const usage_states[], *const usage_troubles[];
const char *usage_state_name(enum holder_state s);
const char *usage_trouble_name(enum usage_trouble t);

#endif
