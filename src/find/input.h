/* SPDX-License-Identifier: Apache-2.0
 * What can be examined after a failure: recordings, core dumps, snapshots, bundles, texts. One list (inputs.def), one entry:
 * `explain`, `report` and `memory` learn here what a file is, and inputs observe into the case.
 */
#ifndef CUWHY_INPUT_H
#define CUWHY_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct casefile;
struct err;

/* A path before it is opened. */
struct sniffed {
	const char *path;
	bool folder;
	const unsigned char *head;	/* its first bytes, decompressed where it is a gzip file */
	size_t n;
	bool packed;			/* it is compressed */
};

struct input {
	const char *name;	/* "recording": the observer, also the kind of a page */
	const char *what;	/* "a recording" */
	/* Is this one of mine, by its name and its first bytes? */
	bool (*sniff)(const struct sniffed *s);
	/* NULL with the reason in `e`. */
	void *(*open)(const char *path, struct err *e);
	/* Adds everything that it knows about the failure to the case. Facts that another input set before stay. NULL: it has no one failure. */
	void (*observe)(void *it, struct casefile *c);
	void (*close)(void *it);
};

/* By authority: what an earlier one says about a failure wins over what a later one says. */
enum input_id {
#define INPUT(id) INPUT_##id,
#include "find/inputs.def"
	INPUT_COUNT
};
#define INPUT(id) extern const struct input input_##id;
#include "find/inputs.def"

const struct input *input_get(enum input_id id);

/* The input for a file or folder. Never NULL: anything else is a text. */
const struct input *input_sniff(const char *path);

/* An input that adds to the case of another one. */
struct input_beside {
	const struct input *input;
	void *it;
	const char *why;	/* they are of one failure */
};

struct inputs_beside {
	struct input_beside *list;
	size_t n;
};

/* In this order. */
void inputs_observe(struct casefile *c, const struct inputs_beside *beside);

#endif
