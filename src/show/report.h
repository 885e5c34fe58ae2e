/* SPDX-License-Identifier: Apache-2.0
 * Writers: text for people, JSON for programs. They read verdicts and never change them.
 */
#ifndef CUWHY_REPORT_H
#define CUWHY_REPORT_H

#include <stdbool.h>
#include <stdio.h>

struct doctor;
struct machine;
struct verdict;

struct text_style {
	bool color;
	bool verbose;		/* everything that is known, not only what is needed first */
	int width;
	const char *recording;	/* may be NULL */
	const char *more;	/* the command that prints everything; NULL: this one, with -v */
};

/* Text ends with a newline. JSON is one object; `indent` false = one line. */
void report_text(FILE *out, const struct verdict *v, const struct text_style *style);
int report_json(FILE *out, const struct verdict *v, bool indent);

/* For an issue tracker. `text`: the whole answer; `v` may be NULL. */
void report_markdown(FILE *out, const struct verdict *v, const char *text);

void report_victim(FILE *out, const struct verdict *v);	/* one line; nothing if it is not a victim */
void report_first(FILE *out, const struct verdict *v);	/* one line: which process failed first */
void report_line(FILE *out, const struct verdict *v, const char *recording);	/* notes only: one line */
void report_unrelated(FILE *out, const struct verdict *v, const struct text_style *style);	/* errors in a text that are not from CUDA */

/* The machine. `recommend`: also which PyTorch or driver to install, and why not the others. */
void doctor_text(FILE *out, const struct doctor *d, const struct machine *m, const struct text_style *style,
		 bool recommend);
int doctor_json(FILE *out, const struct doctor *d, const struct machine *m, bool recommend);

/* What is known about a cause, for `cuwhy explain CAUSE`: false if the id is unknown. `answer`: about its example; may be NULL. */
bool report_cause(FILE *out, const char *id, const struct verdict *answer, const struct text_style *style);
bool report_cause_rules(FILE *out, const char *id, const struct text_style *style);	/* its rules, as they are written */
struct json_t *report_cause_json(const char *id, const char *text, const struct verdict *answer);
struct json_t *report_cause_words(const char *id);	/* of a known one: without its example and its program */
void report_cause_list(FILE *out);

#endif
