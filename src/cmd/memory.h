/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy memory`.
 */
#ifndef CUWHY_MEMORY_H
#define CUWHY_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "write/report_ledger.h"

struct text_style;
struct verdict;
struct err;

struct memory_options {
	bool json;
	const char *by;		/* "line", "function", "stream", "pool"; NULL = line */
	const char *at;		/* "peak", "oom", "end"; NULL = oom where there is one, else peak */
	int width;		/* of the terminal */
};

struct memory_asked {		/* of a recording */
	bool json;
	const char *at_word;	/* as it was given; NULL = not */
	enum ledger_by by;
	bool at_given;
	enum ledger_at at;
	uint64_t time_ns;	/* LEDGER_TIME: since the start of a process */
	uint64_t top;
	int width;
};

/* Prints who held what in a recording; an exit status. */
int memory_of_recording(const char *path, const struct memory_asked *a);

/* Prints who holds what; an exit status. */
int memory_of_snapshot(const char *path, const struct memory_options *o);

#endif
