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
#include "find/words/env.h"
#include "find/words/likeness.h"
#include "find/words/printed_assert.h"

/* Where a text starts a program again: people paste a failure, what they did about it, and the next failure. */

struct text_line;

/* In order: the later ones are the better proof that what failed before is over. */
enum restart {
	RESTART_NOT,
	RESTART_STATEMENT,	/* the next line typed into Python or a notebook: the same process goes on */
	RESTART_TOLD,		/* a sentence says that it was tried again */
	RESTART_PROGRAM,	/* a command: a new process */
};

struct restarts {
	unsigned long cell;	/* the last "In [n]:"; numbers that begin again are those of a new process */
	bool chained;		/* the line before says that the next exception follows from the last one */
};

/* Every line in order. `failed`: something did before it; otherwise nothing can be started again. */
enum restart restart_line(struct restarts *r, const struct text_line *line, bool failed);

/* The frames of a traceback, line by line, as Python, notebooks and rich write them. */

#define TRACEBACK_FRAMES_MAX	64

struct text_frame {
	const char *file;	/* NULL: only its text is known */
	const char *function, *source;	/* may be NULL */
	uint32_t line;
};

/* A frame that is being read: most are never kept. */
struct raw_frame {
	char file[240], function[80], source[200];
	uint32_t line;
};

struct traceback {
	struct raw_frame frame[TRACEBACK_FRAMES_MAX];	/* a ring: the innermost ones count */
	size_t n;		/* frames so far; 0 empties it */
};

/* Whose code a file of a traceback is. Windows paths have backslashes. */
enum owner text_frame_owner(const char *file);

/* Takes a line that is a frame, or the arrow that names the line of the frame above. False: something else. */
bool traceback_frame(struct traceback *t, const char *s);
bool traceback_arrow(struct traceback *t, const char *s);
/* Rich and IPython: a numbered line of the code around the one with the arrow. It was not executed: what it says is not said. */
bool traceback_context(const struct traceback *t, const char *s);
/* The source line of the frame above, or of a frame without other data. */
void traceback_source(struct traceback *t, const char *s);

/* What is kept of it, innermost last. Returns how many. */
size_t traceback_keep(const struct traceback *t, struct pool *pool, struct text_frame **frames);

#define LOG_EVENTS_MAX	64
#define LOG_XIDS_MAX	32
#define LOG_RUNS_MAX	64

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
	uint64_t order;		/* of its line */
	uint64_t count;		/* how often */
	uint64_t progress;	/* lines of its process before it that show progress */
	double time;		/* of the last line of its file before it that has one, in seconds; 0 = none has */
	bool raised;		/* an exception as Python prints it when nothing catches it, not one that a sentence names */
	bool warning;
	bool peer;		/* it is about another process */
	bool gpu;		/* it speaks of GPUs */
	bool marked;		/* it has the words of a CUDA failure (kb/text_marks.def) */
	bool listed;		/* an item or a question is about it */
	bool heading;		/* it is underlined */
	bool cited;		/* in the middle of a sentence */
	bool in_sentence;	/* it is described in the words of a person */
	uint64_t after, after_last;	/* lines of its process that show progress after it; the order of the last one */
	uint64_t at;		/* bytes of its input before it */
	uint64_t shape;		/* of the last line before it that shows progress; 0 = none */
	bool collected;		/* its own line has a time: the program that collects the lines wrote it, when a line arrived */
	double bar, bar_of;	/* the last progress bar after it: so many steps, of so many */
	bool live;		/* and they were written after it: what standard output had buffered follows the end of a program */
	bool handled;		/* and the log ends with them */
	bool cut;		/* a traceback whose exception is missing; its message, if any, is in the line that raised it */
	bool worked;		/* its run had shown progress before it */
	unsigned run;		/* of the text: see log_restarted */
};

/* One of the inputs. */
struct text_file {
	const char *name;
	int rank;		/* that its name tells; -1 */
	uint64_t order;		/* of its first line */
	double first, last;	/* times in it, in seconds; 0 = there are none */
	bool failed;		/* it has an error that is not about another process */
};

/* Lines that are over, by their order: something was handled, or started again, after them. Words and assertions in them do not count. All zero:
 * there are none. */
struct text_past {
	uint64_t from, to;
};

struct text_log;

struct text_log *log_new(void);
void log_free(struct text_log *l);

/* Reads another input, from the descriptor (a file may be compressed) or from memory. `copy`: see stream_read_fd. 0, or -errno. */
int log_read_fd(struct text_log *l, const char *name, int fd, int copy);
void log_read_text(struct text_log *l, const char *name, const char *text, size_t len);

/* For tests: texts in memory are skimmed as if they were the middle of a long one. */
void log_hasty(struct text_log *l);

/* After the last input. */
void log_finish(struct text_log *l);

size_t log_files(const struct text_log *l, const struct text_file **list);
size_t log_events(const struct text_log *l, const struct text_event **list);
/* The process went on after `e`: another exception ended it, or nothing did. */
bool log_handled(const struct text_log *l, const struct text_event *e);
/* What lies between two events of one input, where something failed and was started again: the best proof of it. RESTART_NOT: they are of one run. */
enum restart log_restarted(const struct text_log *l, const struct text_event *a, const struct text_event *b);
/* What came before the run of `e` is over, too. */
struct text_past log_past_runs(const struct text_log *l, struct text_past past, const struct text_event *e);
/* `e` is over, too, and what shows that it was handled. */
struct text_past log_past_event(struct text_past past, const struct text_event *e);
/* Its errors are what it is about, as in release notes or a list of questions: none of them is reported. */
bool log_document(const struct text_log *l);
/* A sentence that says that something of a GPU fails, in a text without an error of any other kind; NULL: there is none. */
const struct text_hit *log_complaint(const struct text_log *l);
/* A line that names a GPU and what failed, in a text that did not go on after it; NULL: there is none. Clean logs have such lines, too. */
const struct text_hit *log_trouble(const struct text_log *l);
const struct text_words *log_words(const struct text_log *l);
/* Those of the process of `e`; of all of them when it is NULL. */
size_t log_asserts(const struct text_log *l, struct text_past past, const struct text_event *e,
		   const struct text_assert **list);
size_t log_xids(const struct text_log *l, const char *const **lines);
/* The words that were looked for and that the text has, in their order; copied into the pool. */
size_t log_hits(const struct text_log *l, struct text_past past, struct pool *pool, const struct text_hit **list);
const struct text_env *log_env(const struct text_log *l);
const char *log_crashed(const struct text_log *l);	/* the library that crashed; "" when nothing names one */
uint64_t log_bytes(const struct text_log *l);
bool log_binary(const struct text_log *l);	/* the input read last: mostly bytes that are not text */
bool log_progress(const struct text_log *l);	/* the program had been working */
bool log_progress_after(const struct text_log *l, const struct text_event *e);	/* and it went on after `e`, in its run */
size_t log_ranks(const struct text_log *l);	/* different ranks that wrote */

/* Which logs are of different runs: both fail, and their times are far apart. Numbers of two runs must not become one answer. */

#define RUN_ANY (-1)

/* `run` has room for every input of the log (log_files): it gets the number of the input's run, RUN_ANY where nothing tells (no times,
 * no failure). Returns how many runs there are, the earliest first; 0 or 1: nothing proves that there are several. */
size_t log_runs(const struct text_log *l, int *run);

#endif
