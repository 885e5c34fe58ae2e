/* SPDX-License-Identifier: Apache-2.0
 * Judges what was given: each input alone, and those that tell of the same failure as one case.
 */
#ifndef CUWHY_SOURCE_H
#define CUWHY_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct input;
struct verdict;

/* An input that was opened. */
struct source {
	const struct input *input;
	void *it;
	const char *path;	/* for people */
	struct err *left;	/* processes of a recording that could not be read; `code` 0 = it could */
	size_t n_left;
};

/* Before the first one is opened: inputs that search for words learn here which. */
void source_prepare(void);

/* -errno with `e` filled. What a path is, is found out from its bytes. */
int source_from(struct source *s, const char *path, struct err *e);
void source_close(struct source *s);

/* One alone. NULL, with `e` filled, when nothing of it can be read. */
struct verdict *source_judge(struct source *s, struct err *e);

/* All together: what ties two inputs makes them one case; of the rest the surest leads. */
struct verdict *sources_judge(struct source *list, size_t n, struct err *e);

#endif
