/* SPDX-License-Identifier: Apache-2.0
 * Whose failure ended the program? What the recording knows about it: what would have caught an exception at the failed call, what the
 * program did on the GPU afterwards, which exception ended it, and how the process ended.
 */
#ifndef CUWHY_ENDING_H
#define CUWHY_ENDING_H

#include <stdbool.h>
#include <stdint.h>

struct cw_failure;
struct incident;
struct pool;
struct process_end;
struct trace;

enum fate {
	FATE_ENDED,		/* nothing but this ended the program */
	FATE_UNKNOWN,		/* this or a reason of the program's own */
	FATE_SURVIVED,		/* the program went on, and ended for a reason of its own */
};

struct ending {
	enum fate fate;
	const char *why;	/* of FATE_UNKNOWN: what speaks against it */
};

/* Of an incident in a process that ended badly, without an exception that reached the top. */
struct ending ending_of(const struct incident *i, struct trace *t, const struct process_end *end, struct pool *pool);

/* Of an incident that has no words in common with the exception that ended the program, nor its line: did a function that made
 * the failed call raise it, when the call had returned, and nothing on the GPU went well in between? Or the function that had
 * caught it, after its last attempt? In words; NULL = no. */
const char *ending_raised_behind(const struct incident *i, struct trace *t, const struct cw_failure *exception);

/* The program caught the failure, and used the GPU afterwards. */
bool ending_is_over(const struct incident *i, struct trace *t);

/* A test runner caught it: it decides how a test ended, whatever the next test does. */
bool ending_of_test(const struct incident *i, const struct trace *t);

/* When the program used the GPU with success for the last time: CLOCK_MONOTONIC, 0 = not known. */
uint64_t ending_last_use(struct trace *t);

/* When the incident was seen last. */
uint64_t ending_last_seen(const struct incident *i);

#endif
