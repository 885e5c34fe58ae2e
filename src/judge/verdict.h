/* SPDX-License-Identifier: Apache-2.0
 * The answer: the case, which causes fit it and how surely, what to say and what to try. Judge makes it, the writers
 * (src/write) print it. Its words are its own.
 */
#ifndef CUWHY_VERDICT_H
#define CUWHY_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"
#include "case/process.h"
#include "rules/rules.h"

struct culprit;
struct doctor;
struct doctor_check;
struct incident;
struct json_t;
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
	struct doctor_check *checks;	/* of the machine, when the doctor looked at it */
	size_t n_checks;
	/* the process; pid 0 = the input is none */
	uint32_t pid, ppid, rank;	/* rank CW_UNKNOWN = not set */
	bool exit_known;
	int exit, signal;
	const char *command;
	uint64_t time_ns, ended_ns;
	bool own;			/* the failure is its own: CUDA said so, not only an exception */
	const char *end_type, *end_text;	/* the exception that ended it; NULL = none was seen */
	uint32_t victim_of;		/* process that is to blame, 0 = it is nobody's victim */
	const char *victim_why;
	struct verdict *notes, *others;	/* lists by `next` */
	struct verdict *next;
};

/* --- making one -------------------------------------------------------------------------------- */

struct verdict *verdict_new(const char *cause);
void verdict_free(struct verdict *v);

/* Rules and words of the cause that fits the case best. */
void verdict_judge(struct verdict *v);

/* The words of a cause for these facts; `m` NULL: of the one that the verdict has. */
void verdict_of_cause(struct verdict *v, const struct match *m, const struct casefile *c);
void verdict_evidence(struct verdict *v, const char *source, const char *text);
void verdict_take_evidence(struct verdict *v);	/* what the case has gathered moves to the verdict */
void verdict_append(struct verdict **list, struct verdict *v);

/* Judges one process. `t` NULL: a process that never used CUDA. Never fails: worst case `unknown`. */
struct verdict *verdict_of_process(struct trace *t, const struct process_end *end);
/* Judges a GPU core dump alone. */
struct verdict *verdict_of_dump(const struct culprit *k);
/* Judges the last oom of a device in a memory snapshot of PyTorch; "none" when there is none. */
struct verdict *verdict_of_snapshot(const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d);
/* Judges a text: a log, a traceback, what people paste. "none" when it tells of no failure of CUDA. */
struct verdict *verdict_of_text(struct text_log *l);

/* --- several ----------------------------------------------------------------------------------- */

/* The surest of them leads, the others are kept with it as evidence from elsewhere. Takes ownership. */
struct verdict *verdict_combine(struct verdict **list, size_t n);

/* Joins the verdicts of a run: the first failure leads, the others and the victims follow it, notes of all are kept.
 * Takes ownership of all of them; returns the one to print ("none" verdict when the list is empty). */
struct verdict *verdict_join(struct verdict **list, size_t n);

/* Marks `v` as the victim of one in the list, if it is one: it failed because that one had. */
bool verdict_blame(struct verdict *v, struct verdict *const *list, size_t n);

/* Does the exception that ended it say that somebody else died? */
bool victim_speaks(const struct verdict *v);

/* --- the machine ------------------------------------------------------------------------------- */

/* May the environment be to blame? Then the doctor is worth asking; what it found becomes the verdict where it explains the
 * failure (true), and is evidence otherwise. */
bool verdict_wants_machine(const struct verdict *v);
bool verdict_adopt(struct verdict *v, const struct doctor *d);

/* Takes the doctor's word from the JSON of a verdict (verdict.json) about the same failure; false: it has none. */
bool verdict_restore(struct verdict *v, const struct json_t *stored);

/* --- reading ----------------------------------------------------------------------------------- */

/* "none" when nothing failed, or everything that failed was handled (see verdict_notes). */
const char *verdict_cause(const struct verdict *v);
const char *verdict_title(const struct verdict *v);
bool verdict_failed(const struct verdict *v);	/* anything but "none" */
size_t verdict_notes(const struct verdict *v);
uint32_t verdict_pid(const struct verdict *v);
uint64_t verdict_time_ns(const struct verdict *v);	/* CLOCK_MONOTONIC of the failure: orders processes */
const char *certainty_word(enum certainty c);

#endif
