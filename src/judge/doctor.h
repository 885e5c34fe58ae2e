/* SPDX-License-Identifier: Apache-2.0
 * Judges a machine: a line for each check, and the verdict about the one thing that has to be mended first.
 */
#ifndef CUWHY_DOCTOR_H
#define CUWHY_DOCTOR_H

#include "judge/verdict.h"

struct machine;
struct casefile;
struct pool;

enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_UNKNOWN };

struct doctor_check {
	const char *id, *label;
	enum doctor_status status;
	const char *text;		/* the evidence, in one sentence */
	const char *cause;		/* WARN and FAIL */
	const char *command;		/* may be NULL */
};

struct doctor;

struct doctor *doctor_judge(const struct machine *m);
void doctor_free(struct doctor *d);

/* The verdict alone, with the facts as its case; the caller owns it, and the doctor is done for. */
struct verdict *doctor_take_verdict(struct doctor *d);

const struct verdict *doctor_verdict(const struct doctor *d);
const struct casefile *doctor_facts(const struct doctor *d);
size_t doctor_checks(const struct doctor *d, const struct doctor_check **list);

/* The answer in one line. */
const char *doctor_title(const struct doctor *d);

/* 0 nothing wrong, 1 something found, 2 could not judge. */
int doctor_exit(const struct doctor *d);

#endif
