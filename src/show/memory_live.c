/* SPDX-License-Identifier: Apache-2.0
 * See memory_live.h.
 */
#include "show/memory_live.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"
#include "read/recording/live.h"
#include "read/recording/trace_memory.h"
#include "read/recording/usage_json.h"
#include "probe/usage.h"
#include "base/format.h"
#include "show/memory.h"

#define MARGIN		44	/* of a history line, for its words */
#define COLUMNS_MAX	120

void usage_history_add(struct usage_history *h, const struct gpu_usage *u)
{
	size_t keep = h->n < HISTORY_SECONDS ? h->n : HISTORY_SECONDS - 1;

	for (size_t g = 0; g < HISTORY_GPUS; g++) {
		if (h->n == HISTORY_SECONDS)
			memmove(h->used[g], h->used[g] + 1, keep * sizeof(h->used[g][0]));
		h->used[g][keep] = g < u->n && u->gpu[g].card.used != USAGE_UNKNOWN ? u->gpu[g].card.used : 0;
	}
	h->n = keep + 1;
}

static uint64_t largest_of(const uint64_t *v, size_t n)
{
	uint64_t top = 0;

	for (size_t i = 0; i < n; i++)
		top = v[i] > top ? v[i] : top;
	return top;
}

/* One character for each column, for the largest value in it: any terminal can show these. */
static void curve_print(FILE *out, const uint64_t *v, size_t n, size_t columns, uint64_t of)
{
	static const char levels[] = "_.:-=+*#";
	size_t shown = n < columns ? n : columns;

	for (size_t c = 0; c < shown; c++) {
		size_t from = n * c / shown, to = n * (c + 1) / shown;
		uint64_t top = largest_of(v + from, to - from);

		putc(of ? levels[(size_t)((double)top / (double)of * (sizeof(levels) - 2) + 0.5)] : '_', out);
	}
}

static size_t curve_columns(int width)
{
	int columns = width - MARGIN;

	return columns < 10 ? 10 : columns > COLUMNS_MAX ? COLUMNS_MAX : (size_t)columns;
}

static void print_gpu_history(FILE *out, const struct memory_frame *f, int width)
{
	size_t columns = curve_columns(width), n = f->history->n < columns ? f->history->n : columns;
	char size[32];

	for (size_t g = 0; f->history->n > 1 && g < f->usage->n && g < HISTORY_GPUS; g++) {
		const uint64_t *v = f->history->used[g] + f->history->n - n;
		uint64_t total = f->usage->gpu[g].card.total;

		fprintf(out, "  GPU %zu, %3zu s  ", g, n);
		curve_print(out, v, n, columns, total == USAGE_UNKNOWN ? largest_of(v, n) : total);
		fprintf(out, "  most %s\n", format_bytes(size, sizeof(size), (double)largest_of(v, n)));
	}
}

/* Since its start: the recording has it. */
static void print_run_history(FILE *out, struct trace *t, int device, int width)
{
	const struct cw_sample *s;
	uint64_t *v, last;
	size_t n;

	trace_timeline(t, device, &s, &n);
	if (n < 2)
		return;
	v = xcalloc(n, sizeof(*v));
	for (size_t i = 0; i < n; i++)
		v[i] = s[i].allocated;
	last = trace_ns(t, s[n - 1].ticks) - trace_ns(t, s[0].ticks);
	fprintf(out, "    tensors, %.0f s  ", (double)last / 1e9);
	curve_print(out, v, n, curve_columns(width), largest_of(v, n));
	putc('\n', out);
	free(v);
}

static void print_live_device(FILE *out, struct trace *t, int device, size_t top, int width)
{
	struct pool pool = {0};
	struct ledger l;
	char a[32], b[32], c[32];

	ledger_build(&l, t, device, LEDGER_END, NULL, NULL, &pool);
	ledger_own(&l, trace_header(t)->cwd, &pool);
	fprintf(out, "  device %d%s%s: tensors %s, reserved %s, most in tensors %s\n", device,
		l.device_name[0] ? ", " : "", l.device_name, format_bytes(a, sizeof(a), (double)l.allocated),
		format_bytes(b, sizeof(b), (double)l.reserved), format_bytes(c, sizeof(c), (double)l.peak_allocated));
	for (size_t i = 0; i < l.n && i < top; i++) {
		const struct ledger_line *x = &l.line[i];

		fprintf(out, "    %10s  %s  (%s)\n", format_bytes(a, sizeof(a), (double)x->bytes),
			ledger_line_name(x, &pool),
			x->part == PART_TENSORS ? ledger_kind_text(x->kind) : ledger_part_text(x->part));
	}
	if (l.n > top)
		fprintf(out, "    %zu more\n", l.n - top);
	print_run_history(out, t, device, width);
	pool_release(&pool);
}

static bool device_in_use(const struct trace *t, int device)
{
	const struct cw_memory_now *m = trace_memory(t, device);

	return m && (m->peak_allocated || m->driver_peak);
}

static void print_live(FILE *out, const struct live *p, size_t top, int width)
{
	const struct cw_header *h = trace_header(p->trace);
	char *command = private_shown(h->cmdline[0] ? h->cmdline : h->exe);

	str_make_line(command);
	fprintf(out, "\nrecorded: process %d", (int)p->pid);
	if (h->rank != CW_UNKNOWN)
		fprintf(out, ", rank %u", h->rank);
	fprintf(out, ": %s%s\n", command, h->sim ? "  (simulated GPU)" : "");
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		if (device_in_use(p->trace, d))
			print_live_device(out, p->trace, d, top, width);
	free(command);
}

void memory_frame_print(FILE *out, const struct memory_frame *f, size_t top, int width)
{
	if (f->usage->n)
		usage_print(out, f->usage, width);
	else
		fprintf(out, "the driver answers for no GPU of this machine%s%s\n", f->usage->why[0] ? ": " : "",
			f->usage->why);
	print_gpu_history(out, f, width);
	for (size_t i = 0; i < f->n_live; i++)
		print_live(out, &f->live[i], top, width);
}

static json_t *live_json(const struct live *p)
{
	const struct cw_header *h = trace_header(p->trace);
	json_t *devices = json_array();

	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		struct pool pool = {0};
		struct ledger l;

		if (!device_in_use(p->trace, d))
			continue;
		ledger_build(&l, p->trace, d, LEDGER_END, NULL, NULL, &pool);
		ledger_own(&l, h->cwd, &pool);
		json_array_append_new(devices, ledger_json(&l));
		pool_release(&pool);
	}
	return JSON_OF(J_INT("pid", p->pid), J_INT_OR_NULL("rank", h->rank != CW_UNKNOWN, h->rank),
		       J_TEXT("command", h->cmdline[0] ? h->cmdline : h->exe), J_BOOL("simulated", h->sim),
		       J_VALUE("devices", devices));
}

json_t *memory_frame_json(const struct memory_frame *f)
{
	json_t *o = usage_to_json(f->usage), *recorded = json_array();

	for (size_t i = 0; i < f->n_live; i++)
		json_array_append_new(recorded, live_json(&f->live[i]));
	JSON_ADD(o, J_VALUE("recorded", recorded));
	return o;
}
