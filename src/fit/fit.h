/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy fit`: dry runs of a program on simulated cards, whose memory is played back on others.
 */
#ifndef CUWHY_FIT_H
#define CUWHY_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "cmd/cards.h"
#include "find/memory/growth.h"
#include "cmd/replays.h"
#include "run/run_mark.h"

struct fit_runs {
	char *folder;			/* of everything below; removed at the end */
	const char *steps;		/* "auto", "all" or a number */
	unsigned most;			/* optimizer steps of the first run that did not fail; later ones are not ended by a clock; 0 = not known */
	unsigned devices;		/* of each run */
	unsigned n;			/* runs so far */
	const char *how;		/* --writes, or NULL */
	const char *keep;		/* --keep-writes, or NULL: the first run's are in DIR/1 */
	const char *changes;		/* what is changed in the program while it runs, as "bf16,checkpoint"; NULL = nothing */
	const char *calls;		/* of "no_grad": the models' calls that it is for */
	const char *batches;		/* how much of the batch fits, in millionths: edits are proposed; NULL = it is not known */
	bool edited;			/* the program is edited: what it prints and writes is not for the user */
	bool other_words;		/* nor is what it prints with other words */
	char *modules;			/* folder of the modules in the programs */
	struct mark mark;		/* on `folder` */
	json_t *writes;			/* dry_run.writes of the run that wrote most; NULL = none ended */
};

struct fit_run {
	bool fits;			/* it did not run out of memory */
	unsigned stopped;		/* after so many optimizer steps; 0: it ran to its end */
	unsigned took;			/* steps until it ended by itself, as far as that is known */
	bool settled;			/* and its memory rose no more by then; true if it ran to its end */
	uint64_t *asked;		/* requests of the first GPU until the end of each of its last steps, as far as that is known */
	size_t n_asked;
	json_t *told;			/* what the modules in the program have said, object by object */
	char *folder;			/* the recording */
};

int fit_runs_begin(struct fit_runs *r, struct err *e);
void fit_runs_end(struct fit_runs *r);

/* Runs the words on a simulated card with that much memory (NULL: its own). 0; -errno with `e` filled when the program failed for
 * another reason than memory, or could not be started. */
#define FIT_NO_LIMIT "4T"
int fit_run(struct fit_runs *r, struct fit_run *run, const struct card_model *card, const char *memory,
	    char *const *words, struct err *e);
void fit_run_release(struct fit_run *run);

/* `cuwhy explain --try`: the program on such a card, in words of --gpu. The answer is printed, or with `json` put into `to`. An exit status;
 * -errno with `e` filled. */
int fit_try(const char *gpu, char **program, bool json, json_t *to, struct err *e);

struct fit_vary {
	char *name;			/* "batch-size"; owned */
	uint64_t from, to;
};

/* "batch-size=4..64" */
int fit_vary_parse(struct fit_vary *v, const char *text, struct err *e);

/* The words with the value: in place of "{}", of what follows "--NAME", or at their end. Free each and the list. */
char **fit_vary_words(const struct fit_vary *v, char *const *words, uint64_t value);
void fit_words_free(char **words);

/* The largest value that fits: by doubling and halving, and where `guess` expects it. 0, with `from` - 1 when not even the first fits; or
 * what `ask` answered below 0 (with the first value, larger ones are asked before). */
struct fit_search {
	int (*ask)(void *of, uint64_t value, bool *fits);
	uint64_t (*guess)(void *of, uint64_t most);	/* after two values or more; 0: nothing is expected */
	void *of;
};
int fit_vary_largest(const struct fit_vary *v, const struct fit_search *s, uint64_t *largest);

struct fit_sized {			/* a recording */
	uint64_t size;
	unsigned stopped;		/* after so many optimizer steps; 0: it ran to its end */
	bool settled;			/* as in struct fit_run */
	struct replays all;
};

struct fit_sizes {
	struct fit_sized list[GROWTH_SIZES_MAX];	/* ascending */
	size_t n;
	struct growth *growth;		/* of each process and GPU */
	size_t n_growths;
	uint64_t most;			/* larger sizes are not tried */
};

/* 0: not even size 1. */
struct fit_sizes_answer {
	uint64_t largest;
	uint64_t low, high;		/* it is in between */
	bool exact;
	unsigned doubts, growth_doubts;	/* bits by enum replay_doubt and enum growth_doubt */
};

/* "8,16" and as many recordings. -errno with `e` filled when these cannot be compared. */
int fit_sizes_open(struct fit_sizes *s, const char *sizes, char *const *paths, struct err *e);
void fit_sizes_close(struct fit_sizes *s);

/* What to expect of a program that was recorded with other sizes, at most `most`; 0: nothing. */
uint64_t fit_sizes_guess(const struct fit_sized *list, size_t n, const struct card_model *card, uint64_t most);

void fit_sizes_largest(const struct fit_sizes *s, const struct card_model *card, struct fit_sizes_answer *a);

#endif
