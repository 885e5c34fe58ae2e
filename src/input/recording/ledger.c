/* SPDX-License-Identifier: Apache-2.0
 * Adds up the memory of a device at one moment (see ledger.h).
 *
 * Every figure has one source: the card's total and what is free come from cuMemGetInfo, PyTorch's sums from its own
 * allocator, the rest from the table of the driver's allocations. What they leave is a part of its own, so that the
 * parts always add up to the total.
 */
#include "case/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "input/recording/history.h"
#include "input/recording/ledger_priv.h"
#include "input/recording/trace_memory.h"

const struct cw_failure *ledger_oom(const struct trace *t, int device)
{
	const struct cw_failure *const *f;
	const struct cw_failure *driver = NULL;
	size_t n = trace_failures(t, &f);

	for (size_t i = n; i > 0; i--) {
		if (device >= 0 && f[i - 1]->device != device)
			continue;
		if (f[i - 1]->source == CW_SRC_TORCH_OOM)
			return f[i - 1];
		if (!driver && f[i - 1]->source == CW_SRC_DRIVER && f[i - 1]->code == 2 && f[i - 1]->request_bytes &&
		    !failure_is_host(f[i - 1]))
			driver = f[i - 1];
	}
	return driver;
}

/* ---- sums --------------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const struct lines *l, enum ledger_part part)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].part == part)
			sum += l->list[i].bytes;
	return sum;
}

/* A figure from elsewhere is larger than the sum of the lines: the difference has no line. */
static uint64_t settle(struct lines *l, enum ledger_part part, uint64_t known)
{
	uint64_t sum = sum_of(l, part);

	if (known > sum)
		lines_add(l, &(struct ledger_line){ .part = part, .kind = KIND_OTHER, .bytes = known - sum });
	return known > sum ? known : sum;
}

/* Takes at most what is left of the card: figures of different moments must not make it larger than it is. */
static void take(struct ledger *l, enum ledger_part part, uint64_t bytes, uint64_t *left)
{
	if (l->total_known && bytes > *left)
		bytes = *left;
	l->part[part] = bytes;
	*left -= l->total_known ? bytes : 0;
}

static void add_processes(struct lines *to, const struct ledger_seen *seen)
{
	for (size_t i = 0; i < seen->n; i++)
		lines_add(to, &(struct ledger_line){ .part = PART_PROCESSES, .pid = seen->holder[i].pid,
						     .command = seen->holder[i].command,
						     .bytes = seen->holder[i].bytes, .count = 1 });
}

/* What this process did not ask for: known in parts when NVML was asked, else as one sum. */
static void divide_outside(struct ledger *l, struct lines *lines, const struct ledger_seen *seen, uint64_t *left)
{
	if (!l->free_known) {
		take(l, PART_UNMEASURED, *left, left);
	} else if (!seen || !seen->known) {
		take(l, PART_OUTSIDE, *left, left);
	} else {
		if (seen->own > l->driver)
			take(l, PART_CONTEXT, seen->own - l->driver, left);
		add_processes(lines, seen);
		take(l, PART_PROCESSES, sum_of(lines, PART_PROCESSES), left);
		take(l, seen->own ? PART_REST : PART_OUTSIDE, *left, left);
	}
}

static void divide(struct ledger *l, struct lines *lines, uint64_t free_bytes, const struct ledger_seen *seen)
{
	uint64_t left = l->total, cache = l->reserved > l->allocated ? l->reserved - l->allocated : 0;
	uint64_t whole = l->segments.free_whole < cache ? l->segments.free_whole : cache;

	if (l->free_known)
		take(l, PART_FREE, free_bytes, &left);
	take(l, PART_TENSORS, l->allocated, &left);
	take(l, PART_CACHE_USED, cache - whole, &left);
	take(l, PART_CACHE_FREE, whole, &left);
	take(l, PART_LIBRARIES, sum_of(lines, PART_LIBRARIES), &left);
	if (l->total_known)
		divide_outside(l, lines, seen, &left);
}

static void add_kinds(struct ledger *l)
{
	uint64_t left = l->part[PART_TENSORS];

	for (size_t i = 0; i < l->n; i++) {
		uint64_t bytes = l->line[i].bytes < left ? l->line[i].bytes : left;

		if (l->line[i].part != PART_TENSORS)
			continue;
		l->kind[l->line[i].kind] += bytes;
		left -= bytes;
	}
}

/* ---- the moment ----------------------------------------------------------------------------------------------- */

/* The sample that holds the moment tells what was reserved around it. */
static void from_timeline(struct ledger *l, struct trace *t, uint64_t ticks)
{
	const struct cw_sample *s;
	size_t n;

	trace_timeline(t, l->device, &s, &n);
	for (size_t i = 0; i < n && s[i].ticks <= ticks; i++) {
		if (l->at == LEDGER_TIME)
			l->allocated = s[i].allocated;
		l->reserved = s[i].reserved;
		l->driver = s[i].driver;
	}
}

static void set_total(struct ledger *l, const struct trace *t, const struct cw_failure *f)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_memory_now *now = trace_memory(t, l->device);

	l->device_name = l->device >= 0 && l->device < CW_MAX_DEVICES ? h->device[l->device].name : "";
	l->total = f && f->memory_known ? f->total_bytes : 0;
	l->free_known = l->total > 0;
	if (!l->total && l->device_name[0])
		l->total = h->device[l->device].total_bytes;
	l->total_known = l->total > 0;
	if (now) {
		l->peak_allocated = now->peak_allocated;
		l->peak_reserved = now->peak_reserved;
	}
	l->pinned_peak = h->pinned_peak_bytes;
}

static void set_sums(struct ledger *l, struct trace *t, const struct cw_failure *f, const struct moment *m)
{
	const struct cw_memory_now *now = trace_memory(t, l->device);

	l->driver = pieces_driver_sum(m);
	if (l->at == LEDGER_END && now) {
		l->allocated = now->allocated;
		l->reserved = now->reserved;
	} else if (l->at == LEDGER_PEAK && now) {
		l->allocated = now->peak_allocated;
		from_timeline(l, t, now->peak_ticks);
	} else if (f && f->source == CW_SRC_TORCH_OOM) {
		l->allocated = f->torch_allocated;
		l->reserved = f->torch_reserved;
	}
	if (f && f->live_device_bytes)
		l->driver = f->live_device_bytes;
}

static void keep_lines(struct ledger *l, struct lines *lines, struct pool *pool)
{
	l->n = lines->n;
	l->line = pool_alloc(pool, (lines->n + 1) * sizeof(*l->line));
	if (lines->n)
		memcpy(l->line, lines->list, lines->n * sizeof(*l->line));
	free(lines->list);
}

/* What has no line: PyTorch's sum and the driver's are exact, the tables may have lost some. */
static void settle_lines(struct ledger *l, struct lines *lines)
{
	uint64_t held;

	l->lines_complete = sum_of(lines, PART_TENSORS) >= l->allocated;
	l->allocated = settle(lines, PART_TENSORS, l->allocated);
	held = l->segments.free_used + l->segments.free_whole + l->allocated;
	if (!l->reserved && l->segments.n)
		l->reserved = held;
	if (l->reserved < l->allocated)
		l->reserved = l->allocated;
	if (l->at != LEDGER_PEAK)
		settle(lines, PART_LIBRARIES, l->driver > l->reserved ? l->driver - l->reserved : 0);
	else if (l->driver > l->reserved)
		lines_add(lines, &(struct ledger_line){ .part = PART_LIBRARIES, .bytes = l->driver - l->reserved });
}

void ledger_build(struct ledger *l, struct trace *t, int device, enum ledger_at at, const struct cw_failure *f,
		  const struct ledger_seen *seen, struct pool *pool)
{
	uint64_t when = at == LEDGER_OOM && f ? f->ticks : UINT64_MAX;
	struct lines lines = { 0 };
	struct moment m;
	struct kinds k;

	*l = (struct ledger){ .at = at, .device = device, .ticks = when };
	moment_init(&m, t, when, device);
	kinds_init(&k, t, &m, ledger_in_backward(t, at == LEDGER_OOM ? f : NULL), pool);
	set_total(l, t, f);
	set_sums(l, t, f, &m);
	if (at == LEDGER_PEAK) {
		l->ticks = trace_memory(t, device) ? trace_memory(t, device)->peak_ticks : 0;
		lines_at_peak(&lines, &k, &m);
	} else {
		segments_find(&l->segments, &m, &k, l->reserved, pool);
		pieces_add_tensors(&lines, &m, &k);
		pieces_add_libraries(&lines, &m, &k, pool);
	}
	settle_lines(l, &lines);
	divide(l, &lines, f ? f->free_bytes : 0, seen);
	lines_join(&lines);
	keep_lines(l, &lines, pool);
	add_kinds(l);
	pieces_count_made(l, &k);
	l->pinned = at == LEDGER_PEAK ? 0 : pieces_host_sum(&m);
	moment_free(&m);
}

/* What PyTorch had reserved is the sum of its segments; the timeline only helps to find those that nobody names. */
static void read_history(struct ledger *l, struct lines *lines, struct kinds *k, struct moment *m, struct pool *pool)
{
	segments_find(&l->segments, m, k, l->reserved, pool);
	pieces_add_tensors(lines, m, k);
	pieces_add_libraries(lines, m, k, pool);
	l->driver = pieces_driver_sum(m);
	l->allocated = sum_of(lines, PART_TENSORS);
	l->reserved = 0;
	l->pinned = pieces_host_sum(m);
}

void ledger_build_at(struct ledger *l, struct trace *t, int device, uint64_t ticks, const struct history *h,
		     struct pool *pool)
{
	struct lines lines = { 0 };
	struct moment m;
	struct kinds k;

	*l = (struct ledger){ .at = LEDGER_TIME, .device = device, .ticks = ticks, .sampled = !h };
	set_total(l, t, NULL);
	from_timeline(l, t, ticks);
	if (h) {
		moment_from(&m, h, device);
		kinds_from(&k, t, h, device, pool);
		read_history(l, &lines, &k, &m, pool);
		l->missing = h->lost;
		moment_free(&m);
	}
	settle_lines(l, &lines);
	divide(l, &lines, 0, NULL);
	lines_join(&lines);
	keep_lines(l, &lines, pool);
	if (h)
		add_kinds(l);
	else
		l->n = 0;	/* sums alone */
}
