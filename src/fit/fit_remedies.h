/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy fit`: what makes a program fit where it does not, tried in dry runs.
 *
 * Each change is made while the program runs, without a limit; its allocations are played back on the cards, as those of the program were.
 */
#ifndef CUWHY_FIT_REMEDIES_H
#define CUWHY_FIT_REMEDIES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "fit/fit.h"
#include "fit/fit_patch.h"
#include "show/what_if.h"

#define REMEDIES_MAX 16

/* One run with one or several changes. */
struct fit_tried {
	const char *changes;		/* "checkpoint,bf16" */
	const char *words, *numbers, *costs;
	const char *failed;		/* why the program ended with it; NULL = it did not */
	unsigned stopped;		/* as in struct fit_run */
	bool settled;
	uint64_t peak;			/* of what PyTorch had in use */
	const struct what_if_row *row;	/* for each card; NULL if it failed */
	struct fit_patch patch;		/* `ran_on` NULL: none */
};

/* A smaller batch with which the program ran on a card: as a command, or as an edit. */
struct fit_batch {
	const struct card_model *card;
	uint64_t size, of;
	const char *command;		/* NULL: `patch` has it */
	struct fit_patch patch;
	bool tried;			/* there was a way to run the program with it */
};
#define BATCHES_MAX 2

struct fit_menu {
	struct fit_runs *runs;
	struct pool *pool;
	const struct card_model *base;	/* of the dry runs */
	char *const *program;
	const struct card_model *const *card;	/* those on which it does not fit */
	const struct what_if_row *row;	/* how it stands there as it is */
	size_t n;
	bool grows;			/* that is why: nothing that needs less at once would help */
	/* The row of a card, as for the program itself. 0, or -errno. */
	int (*answer)(void *of, struct what_if_row *row, struct replays *all, const struct fit_run *run,
		      const struct card_model *card);
	void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
	void *of;

	/* the answer */
	struct fit_tried tried[REMEDIES_MAX];
	size_t n_tried;
	struct fit_batch batch[BATCHES_MAX];
	size_t n_batches;
	struct fit_batch refuted[BATCHES_MAX];	/* that should have fit, and with which it did not run */
	size_t n_refuted;
	unsigned began;			/* runs before the first of them */
	bool trains;			/* an optimizer has made a step */
	const char *failed;		/* why nothing was tried: the program failed when it was run again; NULL = it did not */
};

void fit_remedies_try(struct fit_menu *m);

/* Does the program run on that card, with these words, edited or not (NULL), and goes on to? */
bool fit_remedies_run(struct fit_menu *m, const struct fit_patch *p, char *const *words, const struct card_model *card);

/* How much of the batch fits on the cards, as `fit_runs` wants it. */
const char *fit_batches(const struct fit_menu *m);
void fit_batches_try(struct fit_menu *m, const json_t *told);

/* It fits there, and goes on to. */
bool fit_remedy_fits(const struct what_if_row *row);

void fit_remedies_print(FILE *out, const struct fit_menu *m);
json_t *fit_remedies_json(const struct fit_menu *m);

#endif
