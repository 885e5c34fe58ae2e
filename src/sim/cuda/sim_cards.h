/* SPDX-License-Identifier: Apache-2.0
 * How much memory of each card the processes of a run have taken: one file for all of them, named by CUWHY_SIM_CARDS.
 *
 * A file of zeros is a valid beginning, so nobody has to prepare it. What a process holds is in its own row, which no other process
 * changes while it lives; a sum over the rows is the memory in use, and what a killed process held is gone from it as soon as
 * somebody misses the process. */
#ifndef CUWHY_SIM_CARDS_H
#define CUWHY_SIM_CARDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CARDS_MAX = 16,
	CARD_HOST = CARDS_MAX,		/* not a card: memory of the host that is pinned */
	CARDS_ALL,
	CARD_ROWS = 512,
};

struct sim_cards {
	_Atomic uint64_t spec;		/* a hash of CUWHY_SIM; 0: nobody has joined yet */
	_Atomic uint32_t lock;		/* pid of the process that is taking memory; 0: none */
	_Atomic uint32_t rows;		/* that were ever used */
	_Atomic uint32_t cards;
	_Atomic uint64_t total, taken;	/* of each card; `taken`: as in sim_config */
	_Atomic uint64_t peak[CARDS_ALL];
	struct {
		_Atomic uint32_t pid;	/* 0: the row is free */
		_Atomic uint64_t start;	/* of the process, in ticks since boot; 0: not known */
		_Atomic uint64_t pids;	/* the namespace of its pid */
	} process[CARD_ROWS];
	_Atomic uint64_t used[CARDS_ALL][CARD_ROWS];
};

/* Gives this process a row, until it is gone. Without the variable, or when the file cannot be used, it has cards of its own. */
void sim_cards_join(const char *spec, int cards, size_t total, size_t taken);

/* `limit`: of all processes. One process must not call these from several threads at once. */
bool sim_cards_take(int card, size_t bytes, size_t limit);
void sim_cards_give(int card, size_t bytes);
size_t sim_cards_used(int card);	/* by processes that live */
size_t sim_cards_own(int card);
size_t sim_cards_peak(int card);

/* For readers: the file of this run; NULL: there is none, or nobody has joined. */
struct sim_cards *sim_cards_map(void);
size_t sim_cards_sum(const struct sim_cards *c, int card);	/* of all rows: at a request that failed, those of processes that live */
bool sim_cards_alive(const struct sim_cards *c, size_t row);

#endif
