/* SPDX-License-Identifier: Apache-2.0
 * The compute mode of each GPU, as nvidia-smi shows it: as a table, or with -q.
 */
#ifndef CUWHY_TEXT_COMPUTE_MODE_H
#define CUWHY_TEXT_COMPUTE_MODE_H

#define COMPUTE_MODES_MAX 64

/* All zero is none. */
struct compute_modes {
	const char *mode[COMPUTE_MODES_MAX];	/* "default", "exclusive-process", …; NULL: not shown */
	int n;			/* one more than the highest GPU with a mode */
	int row;		/* one more than the GPU whose rows follow; 0: not known */
	int listed;		/* sections of -q so far */
};

void compute_modes_line(struct compute_modes *m, const char *s);

/* Of GPU `device`; of all of them if it is -1. "": it is not shown, or they differ. */
const char *compute_mode_of(const struct compute_modes *m, int device);

#endif
