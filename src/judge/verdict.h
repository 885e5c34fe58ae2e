/* SPDX-License-Identifier: Apache-2.0
 * The answer: what happened, where, why, how sure, what to try. Facts and rules fill it, the
 * writers (text, JSON) print it. Strings are owned by the verdict.
 */
#ifndef CUWHY_VERDICT_H
#define CUWHY_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "case/process.h"

struct trace;
struct culprit;
struct snapshot;
struct snap_lines;
struct snap_device;
struct text_log;

enum certainty { SURE_POSSIBLE, SURE_LIKELY, SURE_CERTAIN };

struct verdict;

/* Judges one process. `t` NULL: a process that never used CUDA. Never fails: worst case `unknown`. */
struct verdict *verdict_of_process(struct trace *t, const struct process_end *end);
/* Judges a GPU core dump alone. */
struct verdict *verdict_of_dump(const struct culprit *c);
/* Judges the last oom of a device in a memory snapshot of PyTorch; "none" when there is none. */
struct verdict *verdict_of_snapshot(const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d);
/* Judges a text: a log, a traceback, what people paste. "none" when it tells of no failure of CUDA. */
struct verdict *verdict_of_text(struct text_log *l);
/* The surest of them leads, the others are kept with it as evidence from elsewhere. Takes ownership. */
struct verdict *verdict_combine(struct verdict **list, size_t n);
void verdict_free(struct verdict *v);

/* "none" when nothing failed, or everything that failed was handled (see verdict_notes). */
const char *verdict_cause(const struct verdict *v);
const char *verdict_title(const struct verdict *v);
size_t verdict_notes(const struct verdict *v);
uint32_t verdict_pid(const struct verdict *v);
uint64_t verdict_time_ns(const struct verdict *v);	/* CLOCK_MONOTONIC of the failure: orders processes */

/* May the environment be to blame? Then the doctor is worth asking; what it found becomes the verdict where it explains the
 * failure (true), and is evidence otherwise. */
struct doctor;
bool verdict_wants_machine(const struct verdict *v);
bool verdict_adopt(struct verdict *v, const struct doctor *d);

/* Takes the doctor's word from the JSON of a verdict (verdict.json) about the same failure; false: it has none. */
struct json_t;
bool verdict_restore(struct verdict *v, const struct json_t *stored);

/* Marks `v` as the victim of one in the list, if it is one: it failed because that one had. */
bool verdict_blame(struct verdict *v, struct verdict *const *list, size_t n);

/* Joins the verdicts of a run: the first failure leads, the others and the victims follow it, notes of all are kept.
 * Takes ownership of all of them; returns the one to print ("none" verdict when the list is empty). */
struct verdict *verdict_join(struct verdict **list, size_t n);

/* Writers. Text ends with a newline. JSON is one object; `indent` false = one line. */
struct text_style { bool colour; int width; const char *recording; /* may be NULL */ };
void report_text(FILE *out, const struct verdict *v, const struct text_style *style);
void report_victim(FILE *out, const struct verdict *v);	/* one line; nothing when it is none */
void report_first(FILE *out, const struct verdict *v);	/* one line: which process failed first */
void report_line(FILE *out, const struct verdict *v, const char *recording);	/* notes only: one line */
void report_unrelated(FILE *out, const struct verdict *v, const struct text_style *style);	/* errors of a text that are not CUDA's */
int report_json(FILE *out, const struct verdict *v, bool indent);

/* Knowledge about a cause for `cuwhy explain CAUSE`: false when the id is unknown. */
bool report_cause(FILE *out, const char *id, const struct text_style *style);
void report_cause_list(FILE *out);

#endif
