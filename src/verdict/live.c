/* SPDX-License-Identifier: Apache-2.0
 * A running process: its GPUs from NVML, its recorder's memory through the same window as its stacks, its verdict (see live.h).
 */
#include "verdict/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/input_live.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"
#include "verdict/verdict.h"
#include "probe/usage.h"

#define RECORDING_MAX	(512u << 20)
#define RECORDING_PATH	"/memfd:cuwhy (deleted)"

static void add_gpu(struct live_source *s, const struct gpu_state *g, const struct gpu_holder *h)
{
	struct live *l = &s->told;
	struct live_gpu *list = pool_alloc(&s->pool, (l->n_gpus + 1) * sizeof(*list));

	if (l->n_gpus)
		memcpy(list, l->gpu, l->n_gpus * sizeof(*list));
	list[l->n_gpus++] = (struct live_gpu){g->card.index, pool_strdup(&s->pool, g->card.name), h->bytes,
					      g->details.utilization >= 0 ? (int)g->details.utilization : -1};
	l->gpu = list;
}

void live_add_gpus(struct live_source *s, const struct gpu_usage *u)
{
	for (size_t i = 0; i < u->n; i++)
		for (size_t k = 0; k < u->gpu[i].n; k++)
			if (u->gpu[i].holder[k].pid == s->told.pid)
				add_gpu(s, &u->gpu[i], &u->gpu[i].holder[k]);
}

/* The recording is one range of addresses, filled with memfds from its start on. It is being written: what is half there is skipped by
 * its reader. */
static void *recording_bytes(struct process_look *l, size_t *len)
{
	const struct target *t = &l->target;
	uint64_t base = 0, end = 0;
	char *bytes;

	for (size_t i = 0; i < t->n_maps; i++) {
		if (strcmp(t->map[i].path, RECORDING_PATH) != 0)
			continue;
		if (!base)
			base = t->map[i].start;
		end = t->map[i].end;
	}
	if (!base || end - base > RECORDING_MAX)
		return NULL;
	*len = (size_t)(end - base);
	bytes = xcalloc(1, *len);
	remote_forget(&l->remote);
	for (size_t i = 0; i < t->n_maps; i++)
		if (!strcmp(t->map[i].path, RECORDING_PATH))
			for (uint64_t at = t->map[i].start; at < t->map[i].end; at += REMOTE_PAGE)
				remote_read(&l->remote, at, bytes + (at - base), REMOTE_PAGE);
	return bytes;
}

static uint64_t count_launches(const struct trace *t)
{
	const struct cw_ring *r;
	uint64_t n = 0;

	for (size_t i = 0; (r = trace_ring(t, CW_CHUNK_LAUNCHES, sizeof(struct cw_launch), i)); i++)
		n += r->head;
	return n;
}

void live_add_recorder(struct live_source *s)
{
	const struct cw_launch *const *launches;
	struct live *l = &s->told;
	struct place at = {0};
	struct trace *t;
	size_t len = 0, n;
	void *bytes = recording_bytes(&s->look, &len);

	t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;
	if (!t)
		return;
	l->recorded = true;
	l->launches = count_launches(t);
	n = trace_launches(t, &launches);
	if (n) {
		const char *name = trace_function_name(t, launches[n - 1]->func);

		l->last_kernel = name[0] ? pool_strdup(&s->pool, name) : NULL;
		if (place_of_stack(t, launches[n - 1]->stack, &at))
			l->last_line = pool_printf(&s->pool, "%s:%u", file_shown(at.file, trace_header(t)->cwd), at.line);
	}
	trace_free(t);
}

struct verdict *verdict_of_live(struct live_source *s)
{
	struct verdict *v = verdict_new(s->told.stuck ? "unknown" : "none");

	v->pid = s->told.pid;
	v->command = pool_strdup(&v->pool, s->told.command);
	live_observe(s, &v->c);
	if (s->told.stuck)
		verdict_judge(v);
	return v;
}
