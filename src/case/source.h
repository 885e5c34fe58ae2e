/* SPDX-License-Identifier: Apache-2.0
 * Lines of source code, to be quoted: where they come from, and which files are read at all.
 *
 * A recording may come from anyone and name any file of the reader's, and verdicts are made to be shared. So the lines are read
 * once, when the program ends, and kept with the recording: a reader who opens it later sees the code that ran, and none of the
 * reader's own files is read. Only what has no such lines (an old recording, a memory snapshot) is looked up in files below the
 * current folder. In any case a file must be a regular one, named like source code, and of the size of source code.
 */
#ifndef CUWHY_SOURCE_H
#define CUWHY_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/pool.h"

struct source_book {
	const char *cwd;	/* relative names are looked up there */
	bool foreign;		/* it is not of a program that we just saw end */
	json_t *kept;		/* file -> line -> text: what came with the recording, or what was read so far; may be NULL */
};

void source_book_release(struct source_book *b);

/* Why a file of this name is not read; NULL: it may be. */
const char *source_unread(const char *file);

/* The text of a line, without its end, at most SOURCE_TEXT_MAX bytes; NULL when it is not there or must not be read. `*read_now`
 * (may be NULL): it is from the file as it is now. */
#define SOURCE_TEXT_MAX 400
char *source_line(struct source_book *b, const char *file, uint32_t number, struct pool *pool, bool *read_now);

/* Does the file train a model, by its text? 1, 0; -1 when it must not be read. */
int source_trains(struct source_book *b, const char *file);

/* Likewise: does it make a DataLoader of PyTorch's, or one like it? */
int source_loads(struct source_book *b, const char *file);

/* All of a file of the program that we just saw end: a later reader has no right to it, and it may be another one by then. What was found
 * in it is kept with the lines, as a note. Release `text` in any case; `note` is taken over. */
struct buf;
bool source_text(const struct source_book *b, const char *file, struct buf *text);
const json_t *source_note(const struct source_book *b, const char *file, const char *key);
void source_keep_note(struct source_book *b, const char *file, const char *key, json_t *note);

/* When the file was last written, in seconds since 1970; 0 = not known. */
int64_t source_written(const struct source_book *b, const char *file);

#endif
