/* SPDX-License-Identifier: Apache-2.0
 * The answer: the case, which causes fit it and with what certainty, what to say and what to try. Judge makes it, the
 * writers (src/show) print it. It owns its texts.
 */
#ifndef CUWHY_VERDICT_H
#define CUWHY_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"
#include "case/process.h"
#include "verdict/rules/rules.h"

struct culprit;
struct doctor;
struct doctor_check;
struct incident;
struct json_t;
struct kb_question;
struct snap_device;
struct snap_lines;
struct snapshot;
struct text_log;
struct trace;

enum certainty { SURE_POSSIBLE, SURE_LIKELY, SURE_CERTAIN };

struct verdict {
	struct pool pool;
	struct casefile c;
	const struct cause *cause;
	enum certainty sure;
	const char *title;		/* with this failure's numbers */
	const char *because;
	struct said *why, *fix, *evidence;
	struct match *candidates;
	size_t n_candidates;
	const char **unchecked;
	size_t n_unchecked;
	struct doctor_check *checks;	/* of the machine, if the doctor looked at it */
	size_t n_checks;
	/* the process; pid 0 = the input is not a process */
	uint32_t pid, ppid, rank;	/* rank CW_UNKNOWN = not set */
	bool exit_known;
	int exit, signal;
	const char *command;
	uint64_t time_ns, ended_ns, alive_ns;
	uint64_t began_ns;		/* when its recording began; 0 = not known */
	uint64_t used_ns;		/* when it last used the GPU with success; 0 = not known */
	bool own;			/* the failure is its own: reported by CUDA, not only by an exception */
	const char *end_type, *end_text;	/* the exception that ended it; NULL = none was seen */
	const char *end_words;		/* its message and those of the exceptions behind it */
	bool ending_unknown;		/* the program may have ended for another reason */
	bool last;			/* a note: not on the main thread, and nothing was launched after it */
	uint32_t victim_of;		/* process to blame, 0 = not a victim */
	const char *victim_why;
	struct verdict *notes, *others;	/* lists by `next` */
	struct verdict *next;
};

struct verdict *verdict_new(const char *cause);
void verdict_free(struct verdict *v);

/* Applies the rules; takes the text of the cause that fits the case best. */
void verdict_judge(struct verdict *v);

/* Takes the text of a cause for these facts; `m` NULL: of the verdict's own cause. */
void verdict_of_cause(struct verdict *v, const struct match *m, const struct casefile *c);
void verdict_evidence(struct verdict *v, const char *source, const char *text);
void verdict_why(struct verdict *v, const char *text);	/* one more reason, after those of the cause */
void verdict_take_evidence(struct verdict *v);	/* moves the case's evidence to the verdict */
void verdict_append(struct verdict **list, struct verdict *v);
/* At most this certain, for this reason, and so are the other candidates. */
void verdict_cap(struct verdict *v, enum certainty most, const char *why);
/* At most likely: the program may have ended for another reason. */
void verdict_doubt_end(struct verdict *v, const char *why);

/* What is wrong with what it was judged from; NULL = nothing. */
const char *verdict_damage(const struct verdict *v);
void verdict_tell_damage(struct verdict *v);

/* Judges one process. `t` NULL: it never used CUDA. Never fails: at worst the cause is `unknown`. */
struct verdict *verdict_of_process(struct trace *t, const struct process_end *end);
/* A program that failed, but could not be recorded: `why` says what was in the way. `end` NULL: it is not known. */
struct verdict *verdict_unrecorded(const struct process_end *end, const char *why);
/* The verdict of its run, if `all` is what was found in spite of it: a failure that was found stays. Takes ownership. */
struct verdict *verdict_without(struct verdict *all, const struct process_end *end, const char *why);
/* Judges a GPU core dump alone. */
struct verdict *verdict_of_dump(const struct culprit *k);
/* Judges the last out-of-memory error of a device in a PyTorch memory snapshot; "none" if there is none. */
struct verdict *verdict_of_snapshot(const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d);
/* Judges a text: a log, a traceback, what people paste. "none" if it has no CUDA failure. */
struct verdict *verdict_of_text(const struct text_log *l);

/* The most certain one comes first, the others are kept with it as evidence. Takes ownership. */
struct verdict *verdict_combine(struct verdict **list, size_t n);

/* Joins the verdicts of a run: the first failure comes first, then the others and the victims; all notes are kept.
 * Takes ownership of all of them; returns the one to print (a "none" verdict if the list is empty). */
struct verdict *verdict_join(struct verdict **list, size_t n);

/* The program that was started ended with 0: a child of its own that failed may have been expected to. */
void verdict_ended_well(struct verdict *all);

/* Marks `v` as a victim if it failed because of one in the list. */
bool verdict_blame(struct verdict *v, struct verdict *const *list, size_t n);

/* A process survived a failure, but another one was ended by the exception that it raised for it: then the failure was
 * not handled, and becomes the verdict of its process. Returns the index in the list of a verdict that was replaced so;
 * -1: none. */
long verdict_promote(struct verdict **list, size_t n);

/* Does the exception that ended it say that another process died? */
bool victim_speaks(const struct verdict *v);
const char *victim_words(const struct verdict *v);	/* in our words; NULL = it does not */
/* The same of an exception's type and message, each may be NULL. */
const char *victim_words_in(const char *type, const char *text);

/* May the environment be to blame? Then ask the doctor; its finding becomes the verdict if it explains the failure (true),
 * and is evidence otherwise. */
bool verdict_wants_machine(const struct verdict *v);
bool verdict_adopt(struct verdict *v, const struct doctor *d);

/* Takes the doctor's finding from a verdict's JSON (verdict.json) about the same failure; false: it has none. */
bool verdict_restore(struct verdict *v, const struct json_t *stored);

/* "none" if nothing failed, or if the program handled every failure (see verdict_notes). */
const char *verdict_cause(const struct verdict *v);
const char *verdict_title(const struct verdict *v);
bool verdict_failed(const struct verdict *v);	/* anything but "none" */
size_t verdict_notes(const struct verdict *v);
uint32_t verdict_pid(const struct verdict *v);
uint64_t verdict_time_ns(const struct verdict *v);	/* CLOCK_MONOTONIC of the failure: puts processes in order */
const char *certainty_word(enum certainty c);
/* Of a text whose cause is not certain: what would tell its first candidates apart. NULL otherwise. */
const struct kb_question *verdict_question(const struct verdict *v);

#endif
