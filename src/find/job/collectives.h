/* SPDX-License-Identifier: Apache-2.0
 * The collectives of all ranks side by side: who called something else than the others, who alone called one more, and who never came.
 *
 * The ranks of a communicator must make the same calls in the same order. Who is odd is decided by a majority: more than half of its ranks, those
 * without a file included. Without one, either side may be wrong.
 */
#ifndef CUWHY_JOB_COLLECTIVES_H
#define CUWHY_JOB_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_clocks;
struct job_rank;

/* The first call of a communicator in which its ranks do not agree. */
struct job_divergence {
	bool found;
	const char *comm;
	uint64_t seq;
	bool exact;		/* false: it was `seq` or an earlier call, which no rank kept */
	bool alone;		/* the odd ones called it, and no other rank will: the others have ended, or wait for them in another communicator */
	const char *other_comm;	/* where the others wait; NULL = they have ended */
	uint64_t other_seq;
	size_t *odd, n_odd;	/* ranks, by index, that called something else than most; all of them if there is no most */
	bool no_most;
	size_t other;		/* one of the others */
};

void job_find_divergence(struct job_divergence *d, const struct job_rank *rank, size_t n);

/* Ranks that called a collective to which the others can never come. `over`: which ranks have ended well; `stuck`: is it known that those that
 * wait do not go on? */
void job_find_alone(struct job_divergence *d, const struct job_rank *rank, size_t n, struct job_clocks *clocks,
		    const bool *over, bool stuck);
void job_divergence_free(struct job_divergence *d);

/* Ranks for which others wait in a communicator and that do not wait themselves: the ends of all chains. A rank that still runs is among
 * them only if its file was provably written after another one had made a call that it had not come to. */
struct job_absent {
	size_t *rank, n;	/* by index */
	const char **comm;	/* where they are missing, of each */
	uint64_t *seq;		/* the call that did not come, of each */
	size_t *waiter;		/* a rank that called it */
	bool *most;		/* more than half of the ranks called it; false: those that did may have called one too many */
};

void job_find_absent(struct job_absent *a, const struct job_rank *rank, size_t n, struct job_clocks *clocks);
void job_absent_free(struct job_absent *a);

/* Had the rank made this call? */
bool job_came_to(const struct job_rank *r, const char *comm, uint64_t seq);

/* The call of this rank with this number; NULL = it was not kept. */
const struct job_call *job_call_of(const struct job_rank *r, const char *comm, uint64_t seq);
const struct job_comm *job_comm_of(const struct job_rank *r, const char *comm);

#endif
