/* SPDX-License-Identifier: Apache-2.0
 * Judges a machine: a line for each check, and the verdict about the one thing that has to be fixed first.
 */
#ifndef CUWHY_DOCTOR_H
#define CUWHY_DOCTOR_H

#include "verdict/verdict.h"

struct machine;

enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_NONE, DOCTOR_UNKNOWN, DOCTOR_STATUSES };

/* Its words, for people and in JSON; ends with NULL. */
extern const char *const doctor_status_words[];

struct doctor_check {
	const char *id, *label;
	enum doctor_status status;
	const char *text;		/* the evidence, in one sentence */
	const char *cause;		/* WARN and FAIL */
	const char *command;		/* may be NULL */
};

struct doctor {
	struct verdict *verdict;	/* its case has the facts, of the GPU that is worst off; its pool has the words */
	struct doctor_check *check;
	size_t n_checks;
};

struct doctor *doctor_judge(const struct machine *m);
void doctor_free(struct doctor *d);

/* The verdict alone; the caller owns it, and the doctor cannot be used afterwards. */
struct verdict *doctor_take_verdict(struct doctor *d);

/* Where a check stands among all, from the hardware up; behind the last when there is no such. */
int doctor_check_place(const char *id);

/* The answer in one line. */
const char *doctor_title(const struct doctor *d);

/* 0 nothing wrong, 1 something found, 2 could not judge. */
int doctor_exit(const struct doctor *d);

#endif
