/* SPDX-License-Identifier: Apache-2.0
 * Recordings as an input (see find/input.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cuwhy/format.h"
#include "find/input.h"
#include "find/failure/observe.h"
#include "read/recording/recording.h"
#include "read/recording/trace.h"

static bool recording_sniff(const struct sniffed *s)
{
	return s->folder || str_ends(s->path, PART_SUFFIX) ||
	       (s->n >= sizeof(CW_MAGIC) - 1 && memcmp(s->head, CW_MAGIC, sizeof(CW_MAGIC) - 1) == 0);
}

static void *recording_source_open(const char *path, struct err *e)
{
	struct recording *r = xcalloc(1, sizeof(*r));

	if (recording_read(r, path, e) == 0)
		return r;
	recording_release(r);
	free(r);
	return NULL;
}

/* The incident that ended the process; false: none did. */
static bool observe_process(struct recorded_process *p, struct casefile *c)
{
	struct trace *t = p->part ? trace_open(p->part, NULL) : NULL;
	struct incidents all = {0};
	struct incident *fatal;
	struct scene s;

	if (!t)
		return false;
	if (!p->end_known)
		end_from_header(&p->end, trace_header(t));
	incidents_collect(&all, t, c->pool);
	fatal = incidents_that_ended(&all, t, &p->end, c->pool);
	if (fatal) {
		incident_scene(fatal, t, &s);
		if (fatal->sticky)
			recording_observe_suspects(c, fatal, t, &s);
		recording_observe(c, fatal, t, &s);
	}
	trace_free(t);
	return fatal != NULL;
}

/* For the first process that failed. The judge looks at every process by itself (verdict/process.c). */
static void recording_source_observe(void *it, struct casefile *c)
{
	struct recording *r = it;

	for (size_t i = 0; i < r->n; i++)
		if (observe_process(&r->process[i], c))
			return;
}

static void recording_source_close(void *it)
{
	if (!it)
		return;
	recording_release(it);
	free(it);
}

const struct input input_recording = {
	.name = RECORDING_OBSERVER,
	.what = "a recording",
	.sniff = recording_sniff,
	.open = recording_source_open,
	.observe = recording_source_observe,
	.close = recording_source_close,
};
