/* SPDX-License-Identifier: Apache-2.0
 * The memory of the host and the limits of one process on it, at one moment, from /proc and the cgroups.
 *
 * CUDA's pinned memory comes out of it: these explain why pinning failed.
 */
#ifndef CUWHY_RAM_H
#define CUWHY_RAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RAM_UNKNOWN	UINT64_MAX		/* instead of a number of bytes */
#define RAM_UNLIMITED	(UINT64_MAX - 1)	/* there is no limit */

struct ram_state {
	uint64_t mono_ns;		/* when */
	uint64_t total, available;	/* of the machine (in a virtual machine: its own) */
	uint64_t swap_total, swap_free;
	uint64_t lock_limit, lock_hard;	/* RLIMIT_MEMLOCK; the first is unlimited with CAP_IPC_LOCK */
	uint64_t files, address_space;	/* RLIMIT_NOFILE, RLIMIT_AS */
	uint64_t group_limit;		/* the tightest limit among the cgroup and those above it */
	uint64_t group_used;		/* without the file cache, which can be reclaimed */
	bool wsl;			/* Windows Subsystem for Linux: at most half of the RAM can be pinned */
};

/* Nothing is known. */
void ram_unknown(struct ram_state *r);

/* `root` is "" on the live machine, or the folder of a captured tree; a `pid` of 0 is this process (/proc/self). */
void ram_look(struct ram_state *r, const char *root, pid_t pid);

/* What stopped a request: the tightest of the limits that leave too little. */
#define RAM_LIMITS(X)                \
	X(NONE, "")                  \
	X(RAM, "ram")                \
	X(GROUP, "cgroup")           \
	X(WSL, "wsl")                \
	X(LOCKED, "locked")

enum ram_limit {
#define X(name, id) RAM_LIMIT_##name,
	RAM_LIMITS(X)
#undef X
};

/* `pinned` is what the process had, `peak` its maximum: a limit below the peak is not real. `room` is what the limit
 * left; unchanged when there is none. */
enum ram_limit ram_limit_of(const struct ram_state *r, uint64_t request, uint64_t pinned, uint64_t peak, uint64_t *room);
const char *ram_limit_id(enum ram_limit l);

#endif
