/* SPDX-License-Identifier: Apache-2.0
 * The inside of the doctor's answer: made by doctor.c, printed by doctor_print.c.
 */
#ifndef CUWHY_DOCTOR_PRIV_H
#define CUWHY_DOCTOR_PRIV_H

#include "base/pool.h"
#include "report/doctor.h"

struct doctor {
	struct pool pool;
	struct facts *facts;		/* of the GPU that is worst off */
	struct doctor_check *check;
	size_t n_checks;
	bool blind;			/* an essential check could not be made */
	struct verdict *verdict;
};

const char *doctor_check_at(size_t i);	/* ids of all checks; NULL behind the last */

#endif
