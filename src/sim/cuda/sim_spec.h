/* SPDX-License-Identifier: Apache-2.0
 * The words of CUWHY_SIM and of `cuwhy run --gpu sim:…`: which GPUs exist, and what is planned to fail.
 * Read by the simulated GPU, and by `cuwhy run` before it starts anything: libc only, no state.
 */
#ifndef CUWHY_SIM_SPEC_H
#define CUWHY_SIM_SPEC_H

#include <stdbool.h>
#include <stddef.h>

enum { SIM_DEVICES_MAX = 16, SIM_PLANS_MAX = 32 };

struct sim_model {
	const char *id, *name;
	int major, minor;
	size_t memory, overhead;
	int sms;
	int shared_sm, shared_optin;
	int threads_sm, blocks_sm;
	int cluster_max;
	int l2_kib, bus_bits, core_mhz, memory_mhz;
	bool peers;
};

struct sim_plan {
	char name[48];
	long number;
	int code;
	bool sticky;
	_Atomic long calls;
};

enum sim_values { SIM_VALUES_ZEROS, SIM_VALUES_ONES, SIM_VALUES_RANDOM };

struct sim_config {
	const struct sim_model *model;
	int devices;
	size_t memory, hidden, taken;
	size_t ram;			/* of the host: no more can be pinned */
	bool no_device;
	bool lost_dumps;		/* the dump of an assertion is abandoned, and the error is 719 */
	bool late_dumps;		/* a kernel ends, and calls that wait for it return, before its dump exists */
	bool pointers;			/* captured kernels of real code look whether what they were given is still mapped */
	bool full_gpu; /* every kernel fills the GPU: one runs at a time, whatever their streams */
	int error_first;		/* ms from a kernel's error to its dump; 0: the dump comes first */
	bool load_waits;		/* loading code waits for running kernels */
	int load_takes;			/* ms that loading code takes */
	bool debugger_crashes;		/* the library that writes dumps aborts the process in its exit handler */
	bool own_words;			/* assertions are printed by a system call, not by libc */
	bool warp_exits;		/* a warp with an illegal address is missing from the dump */
	int driver, ptx;
	size_t contents;		/* the largest write whose contents are kept */
	enum sim_values values;		/* what memory contains that nobody wrote */
	int plan_count;
	struct sim_plan plans[SIM_PLANS_MAX];
};

/* Why a specification is not one: a sentence, and what would be right. */
struct sim_spec_error {
	char what[200], hint[400];
};

const struct sim_model *sim_model_find(const char *id, size_t length);	/* NULL: there is none */
bool sim_spec_read(struct sim_config *c, const char *text, struct sim_spec_error *why);

#endif
