/* SPDX-License-Identifier: Apache-2.0
 * Reads sites, timelines, totals of memory and autograd nodes from a recording, believing none of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/recording/trace_memory.h"
#include "input/recording/trace_priv.h"
#include "base/banned.h"

const struct cw_memory_now *trace_memory(const struct trace *t, int device)
{
	return device >= 0 && device < CW_MAX_DEVICES ? &t->header.memory[device] : NULL;
}

/* --- sites ----------------------------------------------------------------------------------- */

static size_t site_count(const struct trace *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == CW_CHUNK_SITES)
			n += t->chunk[i].len / sizeof(struct cw_site);
	return n;
}

/* The table grows by a second chunk, which goes on where the first one ends. */
static void read_sites(struct trace *t)
{
	size_t i, n, at = 0;

	t->sites = xcalloc(site_count(t) + 1, sizeof(*t->sites));
	for (i = 0; i < t->n_chunks; i++) {
		if (t->chunk[i].kind != CW_CHUNK_SITES)
			continue;
		n = t->chunk[i].len / sizeof(*t->sites);
		memcpy(t->sites + at, t->data + t->chunk[i].off, n * sizeof(*t->sites));
		at += n;
	}
	memset(t->sites, 0, sizeof(*t->sites));
	for (i = 0; i < at; i++) {
		if (!t->sites[i].kind)
			continue;
		if (t->sites[i].device < -1 || t->sites[i].device >= CW_MAX_DEVICES)
			t->sites[i].device = -1;
		t->n_sites = i + 1;
	}
}

size_t trace_sites(struct trace *t, const struct cw_site **sites)
{
	if (!t->sites)
		read_sites(t);
	*sites = t->sites;
	return t->n_sites;
}

uint64_t trace_site_at_peak(const struct trace *t, const struct cw_site *s)
{
	const struct cw_memory_now *m = trace_memory(t, s->device);

	return m && m->peak_generation == s->peak_generation ? s->at_peak : s->live;
}

/* --- timelines ------------------------------------------------------------------------------- */

static const struct chunk *timeline_chunk(const struct trace *t, int device)
{
	const struct cw_timeline *l;
	size_t i;

	for (i = 0; i < t->n_chunks; i++) {
		if (t->chunk[i].kind != CW_CHUNK_TIMELINE || t->chunk[i].len < sizeof(*l))
			continue;
		l = (const struct cw_timeline *)(t->data + t->chunk[i].off);
		if (l->device == device)
			return &t->chunk[i];
	}
	return NULL;
}

/* A writer that was killed while it merged neighbours leaves some samples out of order: they are in a merged one. */
static void read_timeline(struct trace *t, struct timeline *out, const struct chunk *c)
{
	const struct cw_timeline *l = (const struct cw_timeline *)(t->data + c->off);
	const struct cw_sample *s = (const struct cw_sample *)(l + 1);
	size_t i, n = (c->len - sizeof(*l)) / sizeof(*s);

	n = l->n < n ? l->n : n;
	out->sample = xcalloc(n + 1, sizeof(*out->sample));
	for (i = 0; i < n; i++)
		if (s[i].ticks && (!out->n || s[i].ticks > out->sample[out->n - 1].ticks))
			out->sample[out->n++] = s[i];
}

const struct cw_timeline *trace_timeline(struct trace *t, int device, const struct cw_sample **samples, size_t *n)
{
	const struct chunk *c = device >= 0 && device < CW_MAX_DEVICES ? timeline_chunk(t, device) : NULL;
	struct timeline *l = c ? &t->timeline[device] : NULL;

	*samples = NULL;
	*n = 0;
	if (!l)
		return NULL;
	if (!l->sample)
		read_timeline(t, l, c);
	*samples = l->sample;
	*n = l->n;
	return (const struct cw_timeline *)(t->data + c->off);
}

/* --- autograd nodes -------------------------------------------------------------------------- */

static void add_nodes(struct trace *t, const struct chunk *c)
{
	const struct cw_ring *r = (const struct cw_ring *)(t->data + c->off);
	const struct cw_node *node = (const struct cw_node *)(r + 1);
	uint64_t n, seq;

	if (c->len < sizeof(*r) || r->slot_size != sizeof(*node) || !r->n_slots || (r->n_slots & (r->n_slots - 1)) ||
	    r->n_slots > (c->len - sizeof(*r)) / sizeof(*node))
		return;
	n = r->head < r->n_slots ? r->head : r->n_slots;
	t->nodes = xrealloc(t->nodes, t->n_nodes + (size_t)n + 1, sizeof(*t->nodes));
	for (seq = r->head - n; seq < r->head; seq++) {
		const struct cw_node *s = &node[seq & (r->n_slots - 1)];

		if (s->seq_low == (uint32_t)seq && (seq || s->stack))	/* 0 may be a slot never written */
			t->nodes[t->n_nodes++] = (struct trace_node){ seq, r->tid, s->stack & ~CW_NODE_HAS_RUN,
								      s->stack & CW_NODE_HAS_RUN };
	}
}

size_t trace_nodes(struct trace *t, const struct trace_node **nodes)
{
	size_t i;

	if (!t->nodes) {
		t->nodes = xcalloc(1, sizeof(*t->nodes));
		for (i = 0; i < t->n_chunks; i++)
			if (t->chunk[i].kind == CW_CHUNK_NODES)
				add_nodes(t, &t->chunk[i]);
	}
	*nodes = t->nodes;
	return t->n_nodes;
}

void trace_free_memory(struct trace *t)
{
	size_t i;

	free(t->sites);
	free(t->histories);
	free(t->nodes);
	for (i = 0; i < CW_MAX_DEVICES; i++)
		free(t->timeline[i].sample);
}
