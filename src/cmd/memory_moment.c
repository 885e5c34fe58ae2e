/* SPDX-License-Identifier: Apache-2.0
 * See memory_moment.h.
 */
#include "cmd/memory_moment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "read/recording/recording.h"
#include "read/recording/trace_memory.h"

#define SECOND_NS	1000000000u

int memory_when_parse(struct memory_when *w, const char *text, struct err *e)
{
	static const struct { const char *word; enum ledger_at at; } words[] = {
		{"end", LEDGER_END}, {"peak", LEDGER_PEAK}, {"oom", LEDGER_OOM}};

	*w = (struct memory_when){.given = text != NULL, .at = LEDGER_PEAK};
	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i].word) == 0) {
			w->at = words[i].at;
			return 0;
		}
	if (!text)
		return 0;
	w->at = LEDGER_TIME;
	if (str_time(text, &w->time_ns))
		return 0;
	err_set(e, -EINVAL, "--at takes oom, peak, end or a time, not '%s'", text);
	return err_hint(e, "a time since the start: for example 12.5s, 90s or 5m");
}

int memory_when_no_oom(const char *path, struct err *e)
{
	err_set(e, -ENOENT, "GPU memory did not run out in '%s'", path);
	return err_hint(e, "--at peak shows when the most was in use");
}

static void moment_play_back(struct memory_moment *m)
{
	struct err e = {0};
	int rc = memory_trace_read(&m->bytes, m->trace, m->process->part, &e);

	if (rc == 0)
		rc = playback_begin(&m->playback, m->trace, m->bytes.data, m->bytes.len, &e);
	if (rc < 0)
		fprintf(stderr, "cuwhy: the memory trace was not used: %s\n", e.msg);
	m->traced = rc == 0;
	if (m->traced)
		playback_until(&m->playback, m->ticks);
}

static uint64_t later_of(uint64_t ns, uint64_t mono_ns, uint64_t start)
{
	return mono_ns > start && mono_ns - start > ns ? mono_ns - start : ns;
}

/* When it was seen last: by `cuwhy run`, by itself, or in one of its samples. */
static uint64_t last_seen(struct trace *t, const struct recorded_process *p)
{
	const struct cw_header *h = trace_header(t);
	uint64_t ns = trace_ns(t, h->clock1.ticks);
	const struct cw_sample *s;
	size_t n;

	ns = later_of(ns, h->exit_mono_ns, h->clock0.mono_ns);
	ns = later_of(ns, p->end.ended_ns, h->clock0.mono_ns);
	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		trace_timeline(t, d, &s, &n);
		if (n && trace_ns(t, s[n - 1].ticks) > ns)
			ns = trace_ns(t, s[n - 1].ticks);
	}
	return ns;
}

int memory_moment_open(struct memory_moment *m, struct trace *t, const struct recorded_process *p,
		       const struct memory_when *w, struct err *e)
{
	uint64_t end;

	*m = (struct memory_moment){.when = *w, .trace = t, .process = p};
	if (w->at != LEDGER_TIME)
		return 0;
	m->ticks = trace_ticks(t, w->time_ns);
	end = last_seen(t, p);
	if (w->time_ns > end) {
		err_set(e, -ERANGE, "nothing is known of process %" PRIu32 " at %.3g s: it ended %.3g s after its start",
			trace_header(t)->pid, (double)w->time_ns / SECOND_NS, (double)end / SECOND_NS);
		return err_hint(e, "--at end shows what it held last");
	}
	moment_play_back(m);
	return 0;
}

void memory_moment_close(struct memory_moment *m)
{
	if (m->traced)
		playback_release(&m->playback);
	buf_release(&m->bytes);
	*m = (struct memory_moment){0};
}

bool memory_device_used(struct trace *t, int device)
{
	const struct cw_memory_now *m = trace_memory(t, device);
	const struct cw_allocation *const *a;
	size_t n = trace_allocations(t, &a);

	if (m && (m->peak_allocated || m->driver_peak || m->n_oom))
		return true;
	for (size_t i = 0; i < n; i++)
		if (a[i]->device == device && a[i]->kind != CW_MEM_RESERVED)
			return true;
	return ledger_oom(t, device) != NULL;
}

bool memory_moment_ledger(struct ledger *l, const struct memory_moment *m, int device, struct pool *pool)
{
	const struct cw_header *h = trace_header(m->trace);
	const struct cw_failure *f = ledger_oom(m->trace, device);
	enum ledger_at at = m->when.given ? m->when.at : ledger_moment(m->trace, device);
	struct ledger_seen seen;

	if (at == LEDGER_TIME) {
		ledger_build_at(l, m->trace, device, m->ticks, m->traced ? &m->playback : NULL, pool);
		return true;
	}
	if (at == LEDGER_OOM && !f)
		return false;
	ledger_seen_from(&seen, at == LEDGER_OOM ? m->process->end.usage : NULL, &h->device[device], h->pid, pool);
	ledger_build(l, m->trace, device, at, at == LEDGER_OOM ? f : NULL, &seen, pool);
	return true;
}
