/* SPDX-License-Identifier: Apache-2.0
 * A recording in the format that chrome://tracing and Perfetto read: launches and driver calls when the program made
 * them, failures, memory over time. Written event by event; nothing is buffered.
 */
#ifndef CUWHY_CHROMETRACE_H
#define CUWHY_CHROMETRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct trace;
struct verdict;

struct chrometrace {
	FILE *out;
	uint64_t events, launches, calls, failures, samples;
};

void chrometrace_begin(struct chrometrace *c, FILE *out, const char *recording);
/* One process; `v` may be NULL. */
void chrometrace_process(struct chrometrace *c, struct trace *t, const struct verdict *v);
void chrometrace_end(struct chrometrace *c);

#endif
