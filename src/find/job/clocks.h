/* SPDX-License-Identifier: Apache-2.0
 * Which of two events on different machines came first? Their clocks differ by seconds, so raw times prove nothing.
 *
 * While a collective is under way there is a moment at which all of its ranks are inside. On each machine that moment lies between
 * its call and its end, by the machine's own clock. So every shared collective gives bounds for the difference of two clocks, and
 * all of them together the narrowest. An event is earlier only if it is so for every difference within the bounds.
 */
#ifndef CUWHY_JOB_CLOCKS_H
#define CUWHY_JOB_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_rank;
struct job_clocks;

struct job_clocks *job_clocks_new(const struct job_rank *rank, size_t n);
void job_clocks_free(struct job_clocks *c);

/* Ranks by index. Is the event at `a_ns` of the first one's clock earlier than the other's at `b_ns`, for certain? */
bool job_clocks_before(struct job_clocks *c, size_t a, uint64_t a_ns, size_t b, uint64_t b_ns);

/* The difference between the two clocks lies in [*low, *high]; false: nothing is known about it. */
bool job_clocks_apart(struct job_clocks *c, size_t a, size_t b, int64_t *low, int64_t *high);

/* Machines, and which one a rank is on. */
size_t job_clocks_nodes(const struct job_clocks *c);
size_t job_clocks_node(const struct job_clocks *c, size_t rank);

#endif
