/* SPDX-License-Identifier: Apache-2.0
 * What a log says: its errors in order, kernel assertions, the words that rules look for, and the machine as far
 * as it is mentioned. Several files can be read into one.
 */
#ifndef CUWHY_LOG_TEXT_H
#define CUWHY_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "case/case.h"
#include "input/text/env.h"
#include "input/text/printed_assert.h"
#include "input/text/traceback.h"

#define LOG_EVENTS_MAX	64
#define LOG_XIDS_MAX	32

/* An error in the text. */
struct text_event {
	const char *type;	/* of the exception, "" when it is not one */
	const char *message;	/* lines joined by '\n', PyTorch's footer left out */
	struct text_frame *frame;	/* innermost last */
	size_t n_frames;
	const char *before;	/* the lines before it; "" when there are none */
	const char *who;	/* its prefix */
	int rank;		/* -1 = not known */
	const char *file;	/* the input that contains it */
	uint64_t line;		/* its line number */
	uint64_t count;		/* how often */
	bool warning;
	bool peer;		/* it is about another process */
	bool marked;		/* it has the words of a CUDA failure (kb/text_marks.def) */
};

struct text_log;

struct text_log *log_new(const char *const *words, size_t n);
void log_free(struct text_log *l);

/* Reads another input, from the descriptor or from memory. `copy`: see stream_read_fd. 0, or -errno. */
int log_read_fd(struct text_log *l, const char *name, int fd, int copy);
void log_read_text(struct text_log *l, const char *name, const char *text, size_t len);

/* For tests: texts in memory are skimmed as if they were the middle of a long one. */
void log_hasty(struct text_log *l);

/* After the last input. */
void log_finish(struct text_log *l);

size_t log_events(const struct text_log *l, const struct text_event **list);
size_t log_asserts(const struct text_log *l, const struct text_assert **list);
size_t log_xids(const struct text_log *l, const char *const **lines);
const struct text_hit *log_hit(const struct text_log *l, const char *word);	/* NULL: not in the text, or no rule looks for it */
const struct text_env *log_env(const struct text_log *l);
const char *log_crashed(const struct text_log *l);	/* the library that crashed; "" when nothing names one */
uint64_t log_bytes(const struct text_log *l);
bool log_binary(const struct text_log *l);	/* the input read last: mostly bytes that are not text */
bool log_progress(const struct text_log *l);	/* the program had been working */
bool log_progress_before(const struct text_log *l, uint64_t line);
bool log_progress_after(const struct text_log *l, uint64_t line);
size_t log_ranks(const struct text_log *l);	/* different ranks that wrote */

#endif
