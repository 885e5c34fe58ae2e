/* SPDX-License-Identifier: Apache-2.0
 * Opens the recording of one process and gives safe access to what is in it.
 *
 * Nothing in a recording is trusted: every accessor checks its argument against the size of the
 * data and answers NULL (or an empty string) for what is not there. A recording cut short by a
 * kill, a full disk or a bad copy opens as far as it goes; trace_open fails only when there is no
 * usable header. All pointers returned belong to the trace and live as long as it.
 */
#ifndef CUWHY_TRACE_H
#define CUWHY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuwhy/api.h"
#include "cuwhy/format.h"

struct err;
struct trace;

/* From a file, or from malloc'ed bytes, which the trace then owns. */
struct trace *trace_open(const char *path, struct err *e);
struct trace *trace_from_bytes(void *bytes, size_t len, struct err *e);
void trace_free(struct trace *t);

/* What is wrong with it. Figures that cannot be true are left out by whatever returns them, and counted here. */
struct trace_damage {
	uint64_t missing, whole;	/* bytes at its end, of so many */
	bool failures_cut;		/* there were failures, and (some of) them are among the missing bytes */
	bool changed;			/* bytes differ from those that `cuwhy run` stored */
	bool intact;			/* they do not */
	uint64_t impossible;		/* figures that cannot be true, so far; 0 if it is intact: then the program itself had such ones */
};
const struct trace_damage *trace_damage(const struct trace *t);
bool trace_is_damaged(const struct trace *t);

/* A copy, padded with "unknown" where the writer was older: always complete. */
const struct cw_header *trace_header(const struct trace *t);

/* The lines of code of the program: what was kept with a recording that was opened, or its files, if it was not. */
struct source_book *trace_sources(const struct trace *t);

/* The first chunk of a kind, as long as it is; NULL (and 0) when there is none. And what lies at an offset of the recording,
 * if all of it is in a chunk of that kind; else NULL. */
const void *trace_chunk(const struct trace *t, enum cw_chunk_kind kind, size_t *len);
const void *trace_in_chunk(const struct trace *t, enum cw_chunk_kind kind, uint32_t off, size_t len);

/* The chunk that begins at an offset; and the i-th ring of a kind, whose slots have this size and are all there. */
const void *trace_chunk_at(const struct trace *t, enum cw_chunk_kind kind, uint64_t off, size_t *len);
const struct cw_ring *trace_ring(const struct trace *t, enum cw_chunk_kind kind, uint32_t slot_size, size_t i);

/* The i-th chunk of a kind, in the order in which they were made; NULL (and len = 0) when there are not as many. */
const void *trace_nth_chunk(const struct trace *t, enum cw_chunk_kind kind, size_t i, size_t *len);

/* Strings and stacks by offset. "" and NULL where there is none. */
const char *trace_string(const struct trace *t, uint32_t off);
const struct cw_stack *trace_stack(const struct trace *t, uint32_t off);

/* The message of a failure, in full if the recording has it. */
const char *trace_failure_text(const struct trace *t, const struct cw_failure *f);
const struct cw_function *trace_function(const struct trace *t, uint32_t index);

/* Demangled when it is a C++ name; "" when unknown. */
const char *trace_function_name(struct trace *t, uint32_t index);

/* Failures in the order they were noticed. */
size_t trace_failures(const struct trace *t, const struct cw_failure *const **list);

/* Launches (of all threads, captured ones too) and other calls, oldest first. Built on first use. */
size_t trace_launches(struct trace *t, const struct cw_launch *const **list);
size_t trace_calls(struct trace *t, const struct cw_call *const **list);

/* What tells streams apart: the default stream of a thread has the same number in each. */
#define STREAM_PER_THREAD 2u	/* CU_STREAM_PER_THREAD */
static inline uint64_t stream_of(uint64_t stream, uint32_t tid)
{
	return stream == STREAM_PER_THREAD ? stream | (uint64_t)tid << 32 : stream;
}

/* Live allocations, by address. */
size_t trace_allocations(struct trace *t, const struct cw_allocation *const **list);

/* Live blocks of PyTorch's allocator, by address. */
size_t trace_blocks(struct trace *t, const struct cw_allocation *const **list);

/* What was freed, to PyTorch's allocator or to the driver, oldest first. */
size_t trace_freed(struct trace *t, const struct cw_freed *const **list);
static inline uint32_t freed_stack(const struct cw_freed *f)
{
	return f->free_stack & ~CW_FREED_AFTER;
}

/* The process's own memory at the first fatal error; its length, 0 when it was not kept. */
size_t trace_ranges(const struct trace *t, const struct cw_range **list);

/* Where each parameter of a function is in the parameter block; NULL when not known. */
const struct cw_layout *trace_layout(const struct trace *t, const struct cw_function *f);

/* Nanoseconds since the start of the recording. */
uint64_t trace_ns(const struct trace *t, uint64_t ticks);

/* And back. */
uint64_t trace_ticks(const struct trace *t, uint64_t ns);

/* Of a row of kb/cuda_api.def: its name and the description of its arguments, "" when unknown; how many these are;
 * whether it does any of `what` (DOES_…). */
const char *api_name(uint32_t api);
const char *api_args(uint32_t api);
uint32_t api_n_args(uint32_t api);
bool api_does(uint32_t api, uint32_t what);

/* A reason (CW_REASON_...) in words. */
const char *reason_text(uint32_t reason);

#endif
