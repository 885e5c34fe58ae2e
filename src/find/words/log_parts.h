/* SPDX-License-Identifier: Apache-2.0
 * A log while it is read, for the files log*.c alone: what each of them keeps, and what they ask of each other.
 */
#ifndef CUWHY_LOG_PARTS_H
#define CUWHY_LOG_PARTS_H

#include "find/words/crash.h"
#include "find/words/log.h"
#include "find/words/quoted.h"
#include "knowledge/words.h"
#include "read/text/clothes.h"
#include "read/text/line.h"

#define TALKS_MAX	64	/* processes whose lines may be interleaved */
#define RING_LINES	24	/* lines before an error that are kept with it */
#define RING_WIDTH	240
#define MESSAGE_MAX	4096
#define RANKS_MAX	4096
#define STAMPS		64
#define BARS		4	/* progress bars that are open at a time */
#define WENT_ON		2	/* lines that show progress: one may be a remark */

enum talk_state { TALK_IDLE, TALK_TRACEBACK, TALK_MESSAGE };

/* What one process is saying. */
struct talk {
	char who[LINE_WHO_MAX];
	enum talk_state state;
	size_t indent;		/* of the traceback's header */
	size_t frame_indent;	/* of its last frame */
	uint64_t frame_order, frame_number;
	int frame_rank;
	bool headed;		/* its beginning was seen */
	bool stack;		/* frames without an exception: where a program was, not where it failed */
	bool chained;		/* what it follows from was raised before it */
	struct traceback traceback;
	unsigned strays;
	struct text_event *event;	/* TALK_MESSAGE: whose message goes on; NULL: one that was seen before */
	unsigned lines;
	uint64_t progress;	/* lines that show it */
	uint64_t shape;		/* of the last of them */
	uint64_t used;
};

/* Something failed in this text, and something was started again. */
struct run {
	enum restart by;
	const char *file;
	uint64_t order;		/* of the line that starts it */
	uint64_t progress, progress_last;	/* order of the first and the last line that show it; 0 = none */
	struct {
		double n, of;
	} bar[BARS];		/* the last progress bars */
	size_t n_bars;
};

/* What is looked for in each line: error phrases, PyTorch's footers, notes, the words of rules and of known messages. */
struct word_search {
	struct needles *needles, *fast;	/* in a line; in all of a log */
	const struct word_table *words;
	struct text_hit *hit;	/* of each word */
	uint64_t *hit_last;	/* order of the last line that has the word */
	size_t found[16], n_found;	/* in the line being read */
};

/* The line being read. */
struct line_here {
	const struct text_line *line;
	bool error;		/* it has an error phrase */
	bool fine;		/* and says that it is none */
	bool exception;		/* it is a line of a traceback, or names an exception: not what a program says about its work */
	size_t len_before;	/* of the line before it */
	uint64_t error_shape;	/* of the line before it, if that has an error; 0 = it has none */
};

struct events {
	struct text_event list[LOG_EVENTS_MAX];
	size_t n;
};

struct talks {
	struct talk list[TALKS_MAX];
	uint64_t clock;
};

/* The lines before the one being read. */
struct lines_before {
	char line[RING_LINES][RING_WIDTH];
	size_t n;
};

/* The last times in this input, by line: lines are read a while after they came. */
struct stamps {
	struct {
		uint64_t number;
		double time;
	} list[STAMPS];
	size_t n;
};

struct runs {
	struct run list[LOG_RUNS_MAX];	/* the first one begins with the text */
	unsigned last;
	struct restarts restarts;
	uint64_t progress;	/* lines that show it, in all of them */
};

/* Failures that are described, not shown. */
struct told {
	struct text_hit complaint;	/* the first sentence that may be one */
	uint64_t complaint_order;	/* its line's */
	uint64_t order_said;	/* of the last line that says something */
	struct text_hit alarm;	/* the first line about a GPU that its writer calls an error, and that no row knows */
	uint64_t alarm_order;	/* its line's */
	bool alarm_leveled;	/* by a level alone */
	uint64_t alarms, said;	/* lines with such a level, and all that say something */
	uint64_t alarm_progress;	/* lines that showed progress before it */
	struct text_hit trouble;	/* the first line about a GPU that says that something failed, whatever its writer calls it */
	uint64_t trouble_progress;	/* lines that showed progress before it */
	bool opening, first;	/* only sentences so far; so it was when the complaint came */
	bool person;		/* the writer speaks of themselves */
};

/* What is read, and how far. */
struct log_input {
	const char *file;
	int rank;		/* that its name tells; -1 */
	struct text_file *files;
	size_t n_files;
	uint64_t bytes;
	uint64_t passed;	/* of lines that were read */
	uint64_t order;		/* of the line being read */
	uint64_t strange, read;	/* of this input: non-text bytes, of those looked at */
	struct clothes *clothes;
	struct quoted quoted;
	bool hasty;
};

struct log_machine {
	struct text_env env;
	uint32_t lines;		/* of this input, that were searched for it */
	struct text_crash crash;
	const char *xid[LOG_XIDS_MAX];
	size_t n_xids;
	unsigned char rank[RANKS_MAX / 8];	/* ranks that wrote */
	uint64_t answered;	/* order of the last table of nvidia-smi */
	uint64_t answered_progress;	/* lines that had shown progress before it */
};

struct text_log {
	struct pool pool;
	struct log_input input;
	struct line_here here;
	struct word_search search;
	struct lines_before before;
	struct stamps stamps;
	struct talks talks;
	struct events events;
	struct runs runs;
	struct told told;
	struct log_machine machine;
	struct printed_asserts asserts;
	struct text_words in_text;	/* all words of it */
};

static inline bool is_over(struct text_past past, uint64_t order)
{
	return order >= past.from && order < past.to;
}

static inline bool in_traceback(const struct talk *t)
{
	return t->state == TALK_TRACEBACK || t->traceback.n;
}

/* log_words.c */
void log_begin_words(struct text_log *l);
void log_release_words(struct text_log *l);
/* A message of a package that is an error even without an exception. */
bool log_found_message(const struct text_log *l);
/* "CUDA out of memory, falling back to CPU": the program says in the same line what it did instead. Where it found no GPU to begin with,
 * the CPU is what people complain about. */
bool log_is_fallback(const char *s);
/* The words that are in the line. False when it is PyTorch's footer, which is evidence of nothing. `code`: it may be a line of code. */
bool log_find_words(struct text_log *l, bool code);

/* log_restart.c */
/* The best proof among what starts the runs after `first`, up to `last`. */
enum restart log_best_restart(const struct text_log *l, unsigned first, unsigned last);
void log_note_restart(struct text_log *l, const struct talk *t, const struct text_line *line);

/* log_progress.c */
bool log_shows_progress(const struct text_log *l, const struct text_line *line);
/* Two lines have the same shape if only numbers differ. */
uint64_t log_shape_of(const char *s);
bool log_went_on_here(const struct text_log *l, const struct text_line *line);
void log_note_progress(struct text_log *l, const struct text_line *line);
void log_note_run_progress(struct text_log *l, const struct text_line *line);
/* A traceback without a handler ends a program, unless what follows it cannot be older. */
bool log_went_on_after(const struct text_log *l, const struct text_event *e);

/* log_event.c */
/* The last time in this input up to a line; 0 = none. */
double log_time_of_line(const struct text_log *l, uint64_t number);
/* NULL when it was seen before, or there is no room: later ones matter less. */
struct text_event *log_add_event(struct text_log *l, struct talk *t, const struct text_line *line, const char *type,
				 size_t type_len, const char *message);
/* The traceback that `t` was writing has ended without an exception. */
void log_cut_traceback(struct text_log *l, struct talk *t);
void log_keep_line(struct text_log *l, const struct text_line *line);
/* The line before was a heading. torchrun draws a line under the exception that it raises. */
void log_note_underline(struct text_log *l, const struct text_line *line);
void log_note_stamp(struct text_log *l, const char *s, size_t len, uint64_t number);

/* log_talk.c */
struct talk *log_talk_of(struct text_log *l, const char *who);
void log_talk_line(struct text_log *l, struct talk *t, const struct text_line *line);
/* A line of code that a traceback shows around the one that failed. */
bool log_is_code_around(struct talk *t, const struct text_line *line);

/* log_told.c */
/* Programs write sentences, too. A person's come before anything else in the text, or speak of the person. */
void log_note_complaint(struct text_log *l, const struct talk *t, const struct text_line *line);
/* A program's own words for a failure, of a package that no row knows. What went on after it was not stopped by it. */
void log_note_alarm(struct text_log *l, const struct talk *t, const struct text_line *line);
/* What may be a failure, if the words of the whole text are those of one. What went on after it was not stopped by it. */
void log_note_trouble(struct text_log *l, const struct talk *t, const struct text_line *line);

#endif
