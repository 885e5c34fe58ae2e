/* SPDX-License-Identifier: Apache-2.0
 * A process that ended: how it ended, and what was found besides its recording.
 */
#ifndef CUWHY_PROCESS_H
#define CUWHY_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct culprit;
struct xid_log;
struct gpu_usage;
struct ram_state;

/* How a process ended. */
struct process_end {
	uint32_t pid, ppid;
	bool status_known;	/* `exit` or `signal` below is known */
	int exit;		/* -1 when it was a signal or is not known */
	int signal;		/* 0 when none or not known */
	const char *command;	/* for people; may be NULL */
	const struct culprit *fault;	/* from the GPU core dump that it left; NULL = none */
	const struct xid_log *xids;	/* from the kernel log; NULL = not checked */
	const struct gpu_usage *usage;	/* who held the GPUs when memory ran out; NULL = not checked; may be incomplete */
	const struct ram_state *ram;	/* the host's memory then; NULL = not checked */
	uint64_t fault_real_ns;	/* CLOCK_REALTIME of that dump; 0 = not known */
	uint64_t fault_mark;	/* which dump it was (dump_mark); 0 = not known */
	uint64_t ended_ns;	/* CLOCK_MONOTONIC when it was noticed; 0 = not known */
	uint64_t alive_ns;	/* when it was last seen alive; 0 = not known */
};

#endif
