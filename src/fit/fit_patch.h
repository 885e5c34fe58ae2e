/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy fit`: a change as an edit of the program's own file. Only what ran is shown.
 */
#ifndef CUWHY_FIT_PATCH_H
#define CUWHY_FIT_PATCH_H

#include <jansson.h>

#include "base/pool.h"
#include "fit/fit.h"

struct fit_patch {
	const char *change;		/* "no_grad" */
	const char *file, *text;	/* its path, and the whole edited file */
	const char *diff;
	const struct card_model *ran_on;	/* NULL = it did not, or not there */
};

/* What the modules in a run have proposed for this change. False: nothing. */
bool fit_patch_read(struct fit_patch *p, const json_t *told, const char *change, struct pool *pool);

/* The program, with the edited file in the place of the user's: a dry run's writes are its own. As fit_run. */
int fit_patch_run(struct fit_runs *r, struct fit_run *run, const struct fit_patch *p, const struct card_model *card,
		  const char *memory, char *const *program, struct err *e);

#endif
