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
	int width;
	const char *recording;	/* may be NULL */
};

/* Text ends with a newline. JSON is one object; `indent` false = one line. */
void report_text(FILE *out, const struct verdict *v, const struct text_style *style);
int report_json(FILE *out, const struct verdict *v, bool indent);

void report_victim(FILE *out, const struct verdict *v);	/* one line; nothing if it is not a victim */
void report_first(FILE *out, const struct verdict *v);	/* one line: which process failed first */
void report_line(FILE *out, const struct verdict *v, const char *recording);	/* notes only: one line */
void report_unrelated(FILE *out, const struct verdict *v, const struct text_style *style);	/* errors in a text that are not from CUDA */

/* The machine. `recommend`: also which PyTorch or driver to install, and why not the others. */
void doctor_text(FILE *out, const struct doctor *d, const struct machine *m, const struct text_style *style,
		 bool recommend);
int doctor_json(FILE *out, const struct doctor *d, const struct machine *m, bool recommend);

/* What is known about a cause, for `cuwhy explain CAUSE`: false if the id is unknown. */
bool report_cause(FILE *out, const char *id, const struct text_style *style);
void report_cause_list(FILE *out);

#endif
