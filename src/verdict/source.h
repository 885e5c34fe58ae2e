/* SPDX-License-Identifier: Apache-2.0
 * Judges inputs: each one alone, and those about the same failure as one case.
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
	struct err *left;	/* one per process of a recording: why it could not be read; `code` 0 = it could */
	size_t n_left;
};

/* -errno with `e` filled. The kind of file is detected from its bytes. */
int source_from(struct source *s, const char *path, struct err *e);
void source_close(struct source *s);

/* One alone. NULL, with `e` filled, if nothing in it can be read. */
struct verdict *source_judge(struct source *s, struct err *e);

/* All together: inputs that are tied become one case; of the rest, the most certain comes first. */
struct verdict *sources_judge(struct source *list, size_t n, struct err *e);

#endif
