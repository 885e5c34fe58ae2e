/* SPDX-License-Identifier: Apache-2.0
 * A moment of a recorded process (see memory_time.h).
 */
#include "cmd/memory_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "input/recording/recording.h"
#include "case/ledger.h"
#include "input/recording/trace_memory.h"
#include "base/banned.h"

#define MAX_TRACE	((size_t)16 << 30)
#define SECOND_NS	1000000000u
#define LONGEST		1e9	/* seconds: 30 years */

bool time_parse(const char *text, uint64_t *ns)
{
	static const struct { const char *unit; double seconds; } units[] = {
		{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
	size_t digits = strspn(text, "0123456789."), i;
	double n;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	n = strtod(text, &end);
	if (end != text + digits)
		return false;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].unit) == 0 && n * units[i].seconds <= LONGEST) {
			*ns = (uint64_t)(n * units[i].seconds * SECOND_NS);
			return true;
		}
	return false;
}

/* --- the memory trace ------------------------------------------------------------------------- */

int memory_trace_read(struct buf *b, const struct trace *t, const char *part, struct err *e)
{
	const char *name = trace_header(t)->memory_trace_path, *slash = strrchr(part, '/');
	char *dir, *path;
	int rc;

	buf_init(b, MAX_TRACE);
	if (!name[0])
		return 1;
	if (strchr(name, '/') || name[0] == '.')	/* anybody may have written it: it stays inside the folder */
		return err_set(e, -EINVAL, "the memory trace is not beside the recording");
	dir = slash ? xasprintf("%.*s", (int)(slash - part), part) : xstrdup(".");
	path = fs_join(*dir ? dir : "/", name);
	rc = fs_read(path, b, e);
	free(path);
	free(dir);
	return rc;
}

static void play_back(struct moment_at *m, struct trace *t, const char *part)
{
	struct err e = {0};
	int rc = memory_trace_read(&m->bytes, t, part, &e);

	if (rc == 0)
		rc = playback_begin(&m->playback, t, m->bytes.data, m->bytes.len, &e);
	if (rc < 0)
		fprintf(stderr, "cuwhy: done without the memory trace: %s\n", e.msg);
	m->traced = rc == 0;
	if (m->traced)
		playback_until(&m->playback, m->ticks);
}

/* --- the moment ------------------------------------------------------------------------------- */

static uint64_t later(uint64_t ns, uint64_t mono_ns, uint64_t start)
{
	return mono_ns > start && mono_ns - start > ns ? mono_ns - start : ns;
}

/* When it was seen last: by `cuwhy run`, by itself, or in one of its samples. */
static uint64_t end_of(struct trace *t, const struct recorded_process *p)
{
	const struct cw_header *h = trace_header(t);
	uint64_t ns = trace_ns(t, h->clock1.ticks);
	const struct cw_sample *s;
	size_t n;

	ns = later(ns, h->exit_mono_ns, h->clock0.mono_ns);
	ns = later(ns, p->end.ended_ns, h->clock0.mono_ns);
	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		trace_timeline(t, d, &s, &n);
		if (n && trace_ns(t, s[n - 1].ticks) > ns)
			ns = trace_ns(t, s[n - 1].ticks);
	}
	return ns;
}

int moment_at_open(struct moment_at *m, struct trace *t, const struct recorded_process *p, uint64_t ns, struct err *e)
{
	uint64_t end = end_of(t, p);

	*m = (struct moment_at){.ticks = trace_ticks(t, ns), .seconds = (double)ns / SECOND_NS};
	if (ns > end) {
		err_set(e, -ERANGE, "nothing is known of process %" PRIu32 " at %.3g s: it ended %.3g s after its start",
			trace_header(t)->pid, m->seconds, (double)end / SECOND_NS);
		return err_hint(e, "--at end tells what it had last");
	}
	play_back(m, t, p->part);
	return 0;
}

void moment_at_close(struct moment_at *m)
{
	if (m->traced)
		playback_release(&m->playback);
	buf_release(&m->bytes);
}

/* A sample holds the largest values up to the next one. */
static void tell_sample(const struct ledger *l, struct trace *t)
{
	const struct cw_sample *s;
	size_t n, i = 0;

	trace_timeline(t, l->device, &s, &n);
	while (i < n && s[i].ticks <= l->ticks)
		i++;
	if (i == 0)
		printf("  no memory of the device had been asked for by then\n");
	else if (i < n)
		printf("  these are the largest figures between %.3f s and %.3f s after the start\n",
		       (double)trace_ns(t, s[i - 1].ticks) / SECOND_NS, (double)trace_ns(t, s[i].ticks) / SECOND_NS);
	else
		printf("  these are the largest figures from %.3f s after the start on\n",
		       (double)trace_ns(t, s[i - 1].ticks) / SECOND_NS);
	printf("  lines are not known at that time: only 'cuwhy run --memory-trace' keeps every event\n");
}

void moment_at_tell(const struct ledger *l, struct trace *t)
{
	if (l->sampled)
		tell_sample(l, t);
	if (l->missing)
		printf("  %" PRIu64 " events before that time are missing in the memory trace: the figures are not exact\n",
		       l->missing);
}
