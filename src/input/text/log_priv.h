/* SPDX-License-Identifier: Apache-2.0
 * Inside of a log: shared by log.c and the readers of tracebacks and assertions, by nobody else.
 */
#ifndef CUWHY_LOG_PRIV_H
#define CUWHY_LOG_PRIV_H

#include "input/text/line.h"
#include "input/text/log.h"
#include "base/needles.h"

#define TALKS_MAX	64	/* processes whose lines may be interleaved */
#define RING_LINES	24	/* lines before an error that are kept with it */
#define RING_WIDTH	240
#define MESSAGE_LINES	14
#define MESSAGE_MAX	4096
#define RANKS_MAX	4096

enum talk_state { TALK_IDLE, TALK_TRACEBACK, TALK_MESSAGE };

/* A frame of a traceback that is being read: most are never kept. */
struct raw_frame {
	char file[240], function[80], source[200];
	uint32_t line;
};

/* What one process is saying. */
struct talk {
	char who[LINE_WHO_MAX];
	enum talk_state state;
	size_t indent;		/* of the traceback's header */
	struct raw_frame frame[LOG_FRAMES_MAX];	/* a ring: the innermost ones count */
	size_t n_frames;
	unsigned strays;
	struct text_event *event;	/* TALK_MESSAGE: whose message goes on; NULL: one that was seen before */
	unsigned lines;
	uint64_t used;
};

struct text_log {
	struct pool pool;
	struct needles *needles, *fast;	/* in a line; in all of a log */
	const char **words;
	struct text_hit *hit;
	size_t n_words, n_errors;	/* the first n_errors words make an event */
	size_t n_fixed;			/* and those up to here are PyTorch's footers; the rest is in order */
	size_t found[16], n_found;	/* in the line being read */
	uint32_t env_lines;		/* lines that were searched for the machine */
	struct text_event event[LOG_EVENTS_MAX];
	size_t n_events;
	struct text_assert assertion[LOG_ASSERTS_MAX];
	size_t n_asserts;
	const char *xid[LOG_XIDS_MAX];
	size_t n_xids;
	struct text_env env;
	struct talk talk[TALKS_MAX];
	uint64_t clock;
	char ring[RING_LINES][RING_WIDTH];
	size_t ring_n;
	const char *file;		/* the input being read */
	uint64_t offset;		/* lines of earlier inputs */
	uint64_t lines, bytes, strange, read;
	uint64_t progress, progress_last;	/* first and last line that show it; 0 = none */
	unsigned char rank[RANKS_MAX / 8];
	struct text_line line;
	bool hasty;
	bool error_here;		/* the line has words of an error */
};

/* Fills `words`: those of errors first, then footers, then those of rules in order, each once. */
void log_collect_words(struct text_log *l, const char *const *words, size_t n);
/* The words that are in the line. False when it is PyTorch's footer, which is evidence of nothing. */
bool log_find_words(struct text_log *l);
/* The reader of tracebacks and error lines. */
void talk_line(struct text_log *l, const struct text_line *line);
/* A line that prints a failed assertion of a kernel: taken, or not one. */
bool assert_line(struct text_log *l, const struct text_line *line);
/* A frame of a traceback; the arrow that names its line; its code. False: it is something else. */
bool frame_read(struct talk *t, const char *s);
bool frame_arrow(struct talk *t, const char *s);
void frame_source(struct talk *t, const char *s);
bool line_has_any(const char *s, const char *const *words);

#endif
