/* SPDX-License-Identifier: Apache-2.0
 * The inside of the doctor's answer: made by doctor.c, printed by doctor_print.c.
 */
#ifndef CUWHY_DOCTOR_PRIV_H
#define CUWHY_DOCTOR_PRIV_H

#include "base/pool.h"
#include "judge/doctor.h"

struct doctor {
	struct pool pool;
	struct casefile *facts;		/* of the GPU that is worst off */
	struct doctor_check *check;
	size_t n_checks;
	bool blind;			/* an essential check could not be made */
	struct verdict *verdict;
};

/* Where a check stands among all, from the hardware up; behind the last when there is no such. */
int doctor_check_place(const char *id);

/* From the word that it has in JSON; false: there is no such word. */
bool check_status(const char *word, enum doctor_status *status);

#endif
