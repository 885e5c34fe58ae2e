/* SPDX-License-Identifier: Apache-2.0
 * The keeper: a process of its own that records and judges, next to the supervisor.
 *
 * The supervisor is the process that was started as `cuwhy run`. All it does is run the program: it passes on signals,
 * waits, and ends as the program did; it needs neither memory nor descriptors for that. Everything that may be slow, grow
 * or fail is the keeper's, which has limits. If the keeper dies or is stuck, the diagnosis is lost, and only that.
 */
#ifndef CUWHY_RUN_KEEPER_H
#define CUWHY_RUN_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct keeper_signs;

struct keeper_news {		/* about the program: told when it starts and when it ends */
	pid_t pid;
	bool ended;
	int status;		/* as waitpid gives it */
	uid_t uid;		/* its real user at the end */
};

struct keeper {
	pid_t pid;		/* 0 = there is none, or it has ended */
	int tell;		/* to it: struct keeper_news. Closed before the end: there is no supervisor */
	struct keeper_signs *signs;	/* of life; shared with it */
	uint64_t limit_ns;
	uint64_t told_ns;	/* when it was told that it should come to an end; 0 = not yet */
	bool stuck;		/* it gave no sign of life, and was killed */
	uint64_t killed_ns;
	bool failed;		/* it did not finish its work; `why` says why */
	char why[128];
};

/* Starts it: a copy of this process that calls `work` and exits. False, with `why` set: there is none. */
bool keeper_start(struct keeper *k, void (*work)(void *arg, const struct keeper *self), void *arg);

/* In the supervisor. */
void keeper_tell(struct keeper *k, const struct keeper_news *n);	/* of several ends, only the first counts */
void keeper_dismiss(struct keeper *k);	/* there will be no program */
void keeper_look(struct keeper *k);	/* kills it if it is stuck */
void keeper_stopped(struct keeper *k);	/* by a signal: counts as stuck if it lasts */
void keeper_ended(struct keeper *k, int status);	/* as waitpid gives it */
int keeper_asks_signal(struct keeper *k);	/* for the program, once; 0 = none */

/* In the keeper. The next news; never waits. False with *gone: the supervisor is gone. */
bool keeper_hear(const struct keeper *k, struct keeper_news *n, bool *gone);

/* Work is in progress, and has come this far; or there is nothing to do until something happens. */
void keeper_works(const struct keeper *k);
void keeper_rests(const struct keeper *k);

/* The supervisor shall send the program this signal: only a parent knows whose a pid is. */
void keeper_ask_signal(const struct keeper *k, int sig);

#endif
