/* SPDX-License-Identifier: Apache-2.0
 * The memory of a recorded process: its devices, and what it pinned of the host's (see memory.h).
 */
#include <inttypes.h>

#include "base/json.h"
#include "find/memory/over_time.h"
#include "read/recording/ram_json.h"
#include "read/recording/trace_memory.h"
#include "base/format.h"
#include "show/memory.h"

#define SECOND_NS	1000000000u

/* A sample holds the largest values up to the next one. */
static void tell_sample(FILE *out, const struct ledger *l, struct trace *t)
{
	const struct cw_sample *s;
	size_t n, i = 0;

	trace_timeline(t, l->device, &s, &n);
	while (i < n && s[i].ticks <= l->ticks)
		i++;
	if (i == 0)
		fputs("  no device memory had been requested by then\n", out);
	else if (i < n)
		fprintf(out, "  these are the largest figures between %.3f s and %.3f s after the start\n",
			(double)trace_ns(t, s[i - 1].ticks) / SECOND_NS, (double)trace_ns(t, s[i].ticks) / SECOND_NS);
	else
		fprintf(out, "  these are the largest figures from %.3f s after the start on\n",
			(double)trace_ns(t, s[i - 1].ticks) / SECOND_NS);
	fputs("  lines are not known at that time: only 'cuwhy run --memory-trace' keeps every event\n", out);
}

/* What of the answer is not exact, in words; after the tables. */
static void tell_inexact(FILE *out, const struct ledger *l, struct trace *t)
{
	if (l->sampled)
		tell_sample(out, l, t);
	if (l->missing)
		fprintf(out, "  %" PRIu64 " events before that time are missing in the memory trace: the figures are not exact\n",
			l->missing);
}

const char *memory_moment_words(const struct ledger *l, const struct trace *t, struct pool *pool)
{
	double seconds = l->ticks == UINT64_MAX ? 0 : (double)trace_ns(t, l->ticks) / 1e9;

	if (l->of_epoch)
		return pool_printf(pool, "%.3f s after the start, when most was in use around that time", seconds);
	switch (l->at) {
	case LEDGER_OOM: return pool_printf(pool, "when memory ran out, %.1f s after the start", seconds);
	case LEDGER_TIME: return pool_printf(pool, "%.3f s after the start", seconds);
	case LEDGER_PEAK: return pool_printf(pool, "when tensors used the most, %.1f s after the start", seconds);
	default: return "at the end";
	}
}

void memory_device_print(FILE *out, struct trace *t, const struct ledger *l, const struct memory_table *how)
{
	const struct cw_sample *s;
	struct pool pool = {0};
	size_t n;

	fprintf(out, "device %d%s%s, process %u, %s\n", l->device, l->device_name[0] ? ", " : "", l->device_name,
		trace_header(t)->pid, memory_moment_words(l, t, &pool));
	ledger_print(out, l, how->by, how->top, how->width);
	if (l->at == LEDGER_TIME)
		tell_inexact(out, l, t);
	else if (!l->lines_complete)
		fputs("  some tensors have no line: they were freed since, and are in no table any more\n", out);
	ledger_print_segments(out, l, 8);
	trace_timeline(t, l->device, &s, &n);
	if (n > 1) {
		putc('\n', out);
		timeline_print(out, s, n,
			       (struct seconds_span){(double)trace_ns(t, s[0].ticks) / 1e9,
						     (double)trace_ns(t, s[n - 1].ticks) / 1e9},
			       l->total_known ? l->total : 0, how->width);
	}
	putc('\n', out);
	pool_release(&pool);
}

static json_t *memory_samples_json(struct trace *t, int device)
{
	const struct cw_sample *s;
	json_t *list = json_array();
	size_t n;

	trace_timeline(t, device, &s, &n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("[f,I,I,I]", (double)trace_ns(t, s[i].ticks) / 1e9,
						      (json_int_t)s[i].allocated, (json_int_t)s[i].reserved,
						      (json_int_t)s[i].driver));
	return list;
}

json_t *memory_device_json(struct trace *t, const struct ledger *l, uint64_t time_ns)
{
	struct pool pool = {0};
	struct over_time kinds;
	json_t *o = ledger_json(l);

	over_time_build(&kinds, t, l->device, l, &pool);
	JSON_ADD(o, J_IF(l->at == LEDGER_TIME, J_VALUE("seconds", json_real((double)time_ns / 1e9))),
		 J_INT("pid", trace_header(t)->pid), J_VALUE("timeline", memory_samples_json(t, l->device)),
		 J_VALUE("kinds_over_time", over_time_json(&kinds, t)));
	pool_release(&pool);
	return o;
}

bool memory_host_used(const struct memory_host *h)
{
	return h->pinned || h->peak || h->ram;
}

static const char *limit_text(char *to, size_t size, uint64_t v)
{
	if (v == RAM_UNKNOWN || v == RAM_UNLIMITED)
		return v == RAM_UNKNOWN ? "not known" : "no limit";
	return format_bytes(to, size, (double)v);
}

static void print_host_limits(FILE *out, const struct ram_state *r)
{
	char a[32], b[32];

	fprintf(out, "    RAM                     %s available of %s, when memory ran out\n",
		limit_text(a, sizeof(a), r->available), limit_text(b, sizeof(b), r->total));
	if (r->group_limit >= RAM_UNLIMITED)
		fprintf(out, "    container (cgroup)      %s\n", limit_text(a, sizeof(a), r->group_limit));
	else
		fprintf(out, "    container (cgroup)      %s in use of %s\n", limit_text(a, sizeof(a), r->group_used),
			limit_text(b, sizeof(b), r->group_limit));
	fprintf(out, "    lock limit (ulimit -l)  %s\n", limit_text(a, sizeof(a), r->lock_limit));
	if (r->wsl)
		fprintf(out, "    WSL                     half of the RAM may be pinned: %s\n",
			limit_text(a, sizeof(a), r->total < RAM_UNLIMITED ? r->total / 2 : r->total));
}

void memory_host_print(FILE *out, const struct memory_host *h)
{
	char a[32], b[32];

	fprintf(out, "pinned host memory of process %" PRIu32 ": %s, at most %s\n", h->pid,
		limit_text(a, sizeof(a), h->pinned), limit_text(b, sizeof(b), h->peak));
	if (h->ram)
		print_host_limits(out, h->ram);
	putc('\n', out);
}

json_t *memory_host_json(const struct memory_host *h)
{
	return JSON_OF(J_INT("pid", h->pid), J_BYTES("pinned", h->pinned), J_BYTES("peak", h->peak),
		       J_VALUE("ram", h->ram ? ram_to_json(h->ram) : json_null()));
}
