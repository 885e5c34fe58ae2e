/* SPDX-License-Identifier: Apache-2.0
 * Which library crashed, as a log says it: the kernel's line about a segmentation fault, the frames that Python's faulthandler,
 * Open MPI or a debugger prints.
 */
#ifndef CUWHY_TEXT_CRASH_H
#define CUWHY_TEXT_CRASH_H

#include <stdbool.h>

struct text_crash {
	bool python;		/* faulthandler is printing: its first frame is the innermost one */
	bool by_file;		/* the name is from a native frame, which says more than a Python one */
	char library[80];	/* a library's file or a Python package; "" when nothing names one */
};

/* The next line, without its prefix. */
void crash_line(struct text_crash *c, const char *s);

#endif
