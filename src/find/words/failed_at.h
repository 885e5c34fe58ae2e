/* SPDX-License-Identifier: Apache-2.0
 * When a program failed: the step and the epoch in the lines before an error, as progress bars and training loops print them.
 */
#ifndef CUWHY_TEXT_FAILED_AT_H
#define CUWHY_TEXT_FAILED_AT_H

#include <stddef.h>

enum failed_first { FAILED_UNKNOWN, FAILED_FIRST, FAILED_LATER };

struct failed_at {
	double step, epoch;	/* of the last line that has one; -1 = none has */
	enum failed_first first;	/* no line shows more than the first step */
	const char *line;	/* the last one with a step or an epoch, inside `before`; NULL */
	size_t len;
};

struct failed_at failed_at(const char *before);

#endif
