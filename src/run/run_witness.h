/* SPDX-License-Identifier: Apache-2.0
 * A process next to the program that does nothing but receive the signals of our process group.
 *
 * A signal that was sent to the whole group (a terminal's Ctrl-C, `kill %1`, `timeout`) has reached
 * the program already; one that was sent only to cuwhy has not and must be forwarded. Nothing
 * in a signal says which it was. But what went to the whole group also went to the witness.
 */
#ifndef CUWHY_RUN_WITNESS_H
#define CUWHY_RUN_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

struct witness {
	pid_t pid;		/* 0 = none */
	int pipe;
};

/* All signals must be blocked by the caller, so that the witness starts with them blocked. */
void witness_start(struct witness *w);
/* `from_kernel`: without a witness, or without /proc, that decides. */
bool witness_saw(struct witness *w, int sig, bool from_kernel);
void witness_ended(struct witness *w);	/* somebody killed it, and it has been reaped */
void witness_leave(const struct witness *w);	/* in another process than the one that started it */
void witness_stop(struct witness *w);

#endif
