/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain --pid`: looks at processes that run.
 */
#ifndef CUWHY_EXPLAIN_PID_H
#define CUWHY_EXPLAIN_PID_H

#include <stdbool.h>

struct text_style;

struct explain_pid {
	const char *pids;	/* "12;13", may be NULL */
	char **more;		/* operands */
	int n_more;
	const char *look;	/* "2s"; NULL = the default */
	bool all, no_stop, json;
};

int explain_pids(const struct explain_pid *o, const struct text_style *style);

#endif
