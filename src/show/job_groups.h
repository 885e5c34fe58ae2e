/* SPDX-License-Identifier: Apache-2.0
 * Ranks that did the same, together: nobody reads a thousand lines.
 */
#ifndef CUWHY_JOB_GROUPS_H
#define CUWHY_JOB_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "find/job/order.h"

struct job_group {
	enum job_role role;
	const char *did, *at;	/* `at` NULL: not known, or not the same for all */
	bool deed;		/* `did` follows the name of the rank */
	uint32_t *rank;		/* those that have a number, ascending */
	size_t n_ranks, n;
	size_t example;		/* the index of one */
	size_t *member;		/* the indexes of all */
};

/* The largest first within a role. The list is the pool's. */
size_t job_groups(const struct job_answer *a, struct job_group **list, struct pool *pool);

#endif
