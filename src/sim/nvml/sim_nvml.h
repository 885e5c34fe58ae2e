/* SPDX-License-Identifier: Apache-2.0
 * Private header of the simulated NVML: GPUs, processes and planned failures, as described by CUWHY_SIM_NVML.
 */
#ifndef CUWHY_SIM_NVML_H
#define CUWHY_SIM_NVML_H

#include <stdbool.h>
#include <stddef.h>

#define GPUS_MAX	16
#define HOLDERS_MAX	256
#define PLANS_MAX	16

struct holder {
	unsigned int pid;
	unsigned long long bytes;	/* all ones = not available */
	char kind;			/* 'c'ompute, 'g'raphics, 'm'ps */
	unsigned int instance;
};

struct gpu {
	char name[96], uuid[64];
	unsigned long long total, reserved, used;
	bool used_given, mig, lost;
	unsigned int cc, mode, migs, fabric, busy;	/* cc: 90 = 9.0; migs: MIG devices; busy: percent */
	unsigned long long ecc;		/* uncorrected errors since the driver was loaded */
	bool remap_pending, remap_failed;
	struct holder holder[HOLDERS_MAX];
	size_t n_holders;
};

struct plan {
	char name[64];			/* of a function */
	char what;			/* 'h'ang, 'c'rash, 'f'ail */
	int code;
};

struct machine {
	struct gpu gpu[GPUS_MAX];
	size_t n_gpus;
	struct plan plan[PLANS_MAX];
	size_t n_plans;
	size_t entry;			/* bytes of one process in a list */
	bool live;			/* nothing was written for it: it describes what runs here */
	bool no_v2;			/* memory without the driver's reserve */
	char driver[32];		/* its version; "" = 580.00.00 */
	int cuda;			/* 13000; 0 = it has no such function */
};

extern struct machine machine;

/* Reads CUWHY_SIM_NVML, or looks at what runs here. False when there are no GPUs, or it cannot be parsed (then it has printed a
 * message). */
bool machine_read(void);
void gpu_renew(struct gpu *g);		/* how much of it is used now, if it is live */

#endif
