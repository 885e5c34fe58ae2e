/* SPDX-License-Identifier: Apache-2.0
 * Where the writes of a dry run go: to a layer (src/writes) that is discarded or kept at its end, or to the real files.
 *
 * The supervisor makes the layer, the program's process enters it, the keeper watches its size, says what was written, and removes it. A
 * layer that is still used then, or whose cuwhy was killed, is removed by a later run.
 */
#ifndef CUWHY_RUN_WRITES_H
#define CUWHY_RUN_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/err.h"
#include "run/run_mark.h"

struct keeper;

enum writes_mode {
	WRITES_REAL,
	WRITES_DISCARDED,
	WRITES_KEPT,
	WRITES_OUTER,		/* they go where those of the dry run go that we are in */
};

#define WRITES_REAL_MAX	 8
#define WRITES_NAMES	 20	/* of the files that were written, in the JSON */
#define WRITES_WORDS	 "discard", "real"

struct writes_name {
	char *path;
	int what;		/* enum layer_what */
	int rank;		/* the user's own files before caches */
	uint64_t bytes;
};

struct writes_sum {		/* at the end */
	uint64_t files, replaced, deleted, folders, bytes;
	struct writes_name name[WRITES_NAMES];
	size_t n;
	bool unreadable;
};

struct run_writes {
	enum writes_mode mode;
	char *keep;		/* --keep-writes: the folder, an absolute path */
	bool made_keep;		/* there was no such folder before */
	bool made_base;		/* likewise, for recordings */
	char *real[WRITES_REAL_MAX + 1];
	size_t n_real;
	char *place[8];		/* folders that may hold the layer, the best first */
	size_t n_places, next;
	bool strict;		/* an overlay must be able to take over all that the program will write to */
	struct writes_shared *shared;	/* with the program's process and the keeper */
	struct mark mark;	/* on the layer */
	uint64_t limit;		/* bytes */
	uint64_t next_ns, ending_ns;
	const char *home;
	char *cwd;
	const struct keeper *self;
	struct writes_sum sum;
	struct err failed;	/* code != 0: it was not kept */
	bool in_use;		/* a process outlived the run in it */
};

/* For a dry run. `writes`: the word of --writes, or NULL; `keep`: that of --keep-writes. -errno with `e` filled. */
int run_writes_open(struct run_writes *w, const char *writes, const char *keep, struct err *e);

/* A folder that the program writes to for real; it is created. NULL is none. */
int run_writes_real(struct run_writes *w, const char *path, struct err *e);

/* Makes a layer, or the next one if the program could not enter the last: in another place, or behind a fence. -errno with `e`
 * filled: there is no other. */
int run_writes_make(struct run_writes *w, const char *out, struct err *e);

/* In the program's process. Whatever it answers but 0: it must not become the program. */
int run_writes_enter(struct run_writes *w, char *const *argv);

/* In the keeper. */
void run_writes_step(struct run_writes *w);
int run_writes_wait_ms(const struct run_writes *w);	/* -1 = no need to look */
void run_writes_finish(struct run_writes *w, const struct keeper *self);	/* lists what was written, and keeps it */
json_t *run_writes_json(const struct run_writes *w);
bool run_writes_active(const struct run_writes *w);	/* they do not go to the real files */
/* The line about what was written, from that JSON: nothing, if that was nothing. `keep`: it is there; or NULL. */
void run_writes_tell_json(json_t *writes, const char *keep, const char *who, FILE *out);
void run_writes_tell(const struct run_writes *w, bool failed, FILE *out);

/* Also where there is no keeper. */
void run_writes_clean(struct run_writes *w);
void run_writes_release(struct run_writes *w);

#endif
