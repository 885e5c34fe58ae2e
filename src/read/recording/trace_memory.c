/* SPDX-License-Identifier: Apache-2.0
 * Memory over the whole run, as a recording has it: sites, timelines, epochs and histories, and autograd's nodes.
 */
#include "read/recording/trace_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/recording/trace_check.h"

struct timeline {		/* the samples that are in order; built on first use */
	struct cw_sample *sample;
	size_t n;
};

struct epochs {			/* those of a device, checked on first use */
	const struct cw_epochs *chunk;	/* NULL = none that can be used */
	const struct cw_epoch *list;
	size_t n;
	uint32_t scale;
	bool read;
};

struct run_memory {
	struct cw_site *sites;		/* all of them in one list, copied on first use */
	size_t n_sites;
	struct timeline timeline[CW_MAX_DEVICES];
	struct epochs epochs[CW_MAX_DEVICES];
	const struct cw_history **histories;	/* by site; built on first use */
	const uint32_t *marks;
	size_t n_marks;
	struct trace_node *nodes;
	size_t n_nodes;
};

static struct run_memory *memory_of(struct trace *t)
{
	struct run_memory **m = trace_run_memory(t);

	if (!*m)
		*m = xcalloc(1, sizeof(**m));
	return *m;
}

const struct cw_memory_now *trace_memory(const struct trace *t, int device)
{
	return device >= 0 && device < CW_MAX_DEVICES ? &trace_header(t)->memory[device] : NULL;
}

static size_t site_count(const struct trace *t)
{
	size_t len, n = 0;

	for (size_t i = 0; trace_nth_chunk(t, CW_CHUNK_SITES, i, &len); i++)
		n += len / sizeof(struct cw_site);
	return n;
}

static void check_site(struct trace *t, struct cw_site *s)
{
	uint64_t card = memory_is_on_card(s->kind) ? trace_card(t, s->device) : UINT64_MAX;

	if (!trace_possible(t, s->live <= card && s->peak <= card && s->at_peak <= card))
		s->live = s->live_count = s->peak = s->at_peak = 0;
}

/* The table grows by a second chunk, which goes on where the first one ends. */
static void read_sites(struct trace *t, struct run_memory *m)
{
	size_t i, len, n, at = 0;
	const void *chunk;

	m->sites = xcalloc(site_count(t) + 1, sizeof(*m->sites));
	for (i = 0; (chunk = trace_nth_chunk(t, CW_CHUNK_SITES, i, &len)) != NULL; i++) {
		n = len / sizeof(*m->sites);
		memcpy(m->sites + at, chunk, n * sizeof(*m->sites));
		at += n;
	}
	memset(m->sites, 0, sizeof(*m->sites));
	for (i = 0; i < at; i++) {
		if (!m->sites[i].kind)
			continue;
		if (m->sites[i].device < -1 || m->sites[i].device >= CW_MAX_DEVICES)
			m->sites[i].device = -1;
		check_site(t, &m->sites[i]);
		m->n_sites = i + 1;
	}
}

size_t trace_sites(struct trace *t, const struct cw_site **sites)
{
	struct run_memory *m = memory_of(t);

	if (!m->sites)
		read_sites(t, m);
	*sites = m->sites;
	return m->n_sites;
}

/* Behind the ring's slots. */
uint32_t trace_freed_site(const struct trace *t, const struct cw_freed *f)
{
	const struct cw_ring *r;
	size_t len;

	for (size_t i = 0; trace_header(t)->minor >= 13 && (r = trace_nth_chunk(t, CW_CHUNK_FREED, i, &len)) != NULL;
	     i++) {
		const char *first = (const char *)(r + 1), *at = (const char *)f;
		uint64_t slots = len > sizeof(*r) ? (len - sizeof(*r)) / (sizeof(*f) + sizeof(uint32_t)) : 0;

		if (slots >= r->n_slots && r->slot_size == sizeof(*f) && at >= first &&
		    at < first + r->n_slots * sizeof(*f))
			return ((const uint32_t *)(const void *)(first +
								 r->n_slots * sizeof(*f)))[(at - first) / sizeof(*f)];
	}
	return 0;
}

uint64_t trace_site_at_peak(const struct trace *t, const struct cw_site *s)
{
	const struct cw_memory_now *m = trace_memory(t, s->device);

	return m && m->peak_generation == s->peak_generation ? s->at_peak : s->live;
}

static const struct cw_timeline *timeline_chunk(const struct trace *t, int device, size_t *len)
{
	const struct cw_timeline *l;

	for (size_t i = 0; (l = trace_nth_chunk(t, CW_CHUNK_TIMELINE, i, len)) != NULL; i++)
		if (*len >= sizeof(*l) && l->device == device)
			return l;
	return NULL;
}

/* A writer that was killed while it merged neighbors leaves some samples out of order: they are in a merged one. */
static void read_timeline(struct trace *t, struct timeline *out, const struct cw_timeline *l, size_t len)
{
	const struct cw_sample *s = (const struct cw_sample *)(l + 1);
	size_t i, n = (len - sizeof(*l)) / sizeof(*s);
	uint64_t card = trace_card(t, l->device);

	n = l->n < n ? l->n : n;
	out->sample = xcalloc(n + 1, sizeof(*out->sample));
	for (i = 0; i < n; i++)
		if (s[i].ticks && (!out->n || s[i].ticks > out->sample[out->n - 1].ticks) &&
		    trace_possible(t, s[i].allocated <= card && s[i].reserved <= card && s[i].driver <= CARD_MAX))
			out->sample[out->n++] = s[i];
}

const struct cw_timeline *trace_timeline(struct trace *t, int device, const struct cw_sample **samples, size_t *n)
{
	size_t len;
	const struct cw_timeline *l = device >= 0 && device < CW_MAX_DEVICES ? timeline_chunk(t, device, &len) : NULL;
	struct timeline *own = l ? &memory_of(t)->timeline[device] : NULL;

	*samples = NULL;
	*n = 0;
	if (!own)
		return NULL;
	if (!own->sample)
		read_timeline(t, own, l, len);
	*samples = own->sample;
	*n = own->n;
	return l;
}

static void add_nodes(struct run_memory *m, const struct cw_ring *r)
{
	const struct cw_node *node = (const struct cw_node *)(r + 1);
	uint64_t n = r->head < r->n_slots ? r->head : r->n_slots, seq;

	m->nodes = xrealloc(m->nodes, m->n_nodes + (size_t)n + 1, sizeof(*m->nodes));
	for (seq = r->head - n; seq < r->head; seq++) {
		const struct cw_node *s = &node[seq & (r->n_slots - 1)];

		if (s->seq_low == (uint32_t)seq && (seq || s->stack))	/* 0 may be a slot never written */
			m->nodes[m->n_nodes++] = (struct trace_node){seq, r->tid, s->stack & ~CW_NODE_BITS,
								     s->stack & CW_NODE_HAS_RUN,
								     s->stack & CW_NODE_RELEASED};
	}
}

size_t trace_nodes(struct trace *t, const struct trace_node **nodes)
{
	struct run_memory *m = memory_of(t);
	const struct cw_ring *r;

	if (!m->nodes) {
		m->nodes = xcalloc(1, sizeof(*m->nodes));
		for (size_t i = 0; (r = trace_ring(t, CW_CHUNK_NODES, sizeof(struct cw_node), i)) != NULL; i++)
			add_nodes(m, r);
	}
	*nodes = m->nodes;
	return m->n_nodes;
}

static const struct cw_epochs *epochs_chunk(const struct trace *t, int device)
{
	const struct cw_epochs *e;
	size_t len;

	for (size_t i = 0; (e = trace_nth_chunk(t, CW_CHUNK_EPOCHS, i, &len)) != NULL; i++)
		if (len >= sizeof(*e) && e->device == device)
			return e;
	return NULL;
}

/* Times and generations only rise; where they do not, none of it can be used. */
static bool in_order(const struct cw_epoch *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!p[i].generation || p[i].at < p[i].begin)
			return false;
		if (i && (p[i].begin <= p[i - 1].begin || p[i].generation <= p[i - 1].generation))
			return false;
	}
	return true;
}

static bool are_on_card(const struct cw_epoch *p, size_t n, uint64_t card)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].allocated > card || p[i].reserved > card || p[i].driver > CARD_MAX)
			return false;
	return true;
}

static void read_epochs(struct trace *t, struct epochs *out, int device)
{
	const struct cw_epochs *e = epochs_chunk(t, device);
	uint64_t n, scale;

	out->read = true;
	if (!e || e->n_max != CW_EPOCHS)
		return;
	n = e->now & 0xffffffffu;
	scale = e->now >> 32;
	if (!trace_possible(t, n <= CW_EPOCHS && scale < CW_EPOCH_SCALES && in_order(e->epoch[scale & 1], n) &&
				       are_on_card(e->epoch[scale & 1], n, trace_card(t, device))))
		return;
	out->chunk = e;
	out->list = e->epoch[scale & 1];
	out->n = n;
	out->scale = (uint32_t)scale;
}

const struct cw_epochs *trace_epochs(struct trace *t, int device, const struct cw_epoch **list, size_t *n)
{
	struct epochs *e = device >= 0 && device < CW_MAX_DEVICES ? &memory_of(t)->epochs[device] : NULL;

	if (e && !e->read)
		read_epochs(t, e, device);
	*list = e ? e->list : NULL;
	*n = e ? e->n : 0;
	return e ? e->chunk : NULL;
}

static void read_histories(struct trace *t, struct run_memory *m)
{
	const struct cw_history *h;
	const struct cw_site *s;
	size_t len, n = trace_sites(t, &s);

	m->histories = xcalloc(n + 1, sizeof(*m->histories));
	for (size_t i = 0; (h = trace_nth_chunk(t, CW_CHUNK_HISTORIES, i, &len)) != NULL; i++)
		for (size_t k = 0; k < len / sizeof(*h); k++)
			if (h[k].site && h[k].site < m->n_sites)
				m->histories[h[k].site] = &h[k];
	for (size_t i = 0; !m->n_marks && (m->marks = trace_nth_chunk(t, CW_CHUNK_SITE_MARKS, i, &len)) != NULL; i++)
		m->n_marks = len / sizeof(*m->marks);
}

/* A copy in which its epochs are those of the newest scale. */
static bool follow_epochs(struct cw_history *h, const struct epochs *e)
{
	uint32_t i, scale;

	if (h->scale > e->scale)
		return false;
	for (scale = h->scale; scale < e->scale; scale++) {
		for (i = 0; i < CW_EPOCHS / 2; i++)
			h->held[i] = h->held[2 * i + (e->chunk->second[scale] >> i & 1)];
		memset(h->held + CW_EPOCHS / 2, 0, sizeof(h->held) / 2);
	}
	return true;
}

bool trace_site_held(struct trace *t, size_t site, uint64_t *held)
{
	struct run_memory *m = memory_of(t);
	const struct cw_epoch *list;
	const struct cw_site *s;
	struct cw_history h = {0};
	size_t i, n;

	if (!m->histories)
		read_histories(t, m);
	if (site >= trace_sites(t, &s) || !s[site].kind || site >= m->n_marks ||
	    !trace_epochs(t, s[site].device, &list, &n))
		return false;
	if (m->histories[site]) {
		h = *m->histories[site];
		if (!follow_epochs(&h, &m->epochs[s[site].device]))
			return false;
	}
	for (i = 0; i < n; i++)
		held[i] = list[i].generation > m->marks[site] ? s[site].live : (uint64_t)h.held[i] * CW_HISTORY_UNIT;
	return true;
}

void run_memory_free(struct run_memory *m)
{
	if (!m)
		return;
	free(m->sites);
	free(m->histories);
	free(m->nodes);
	for (size_t i = 0; i < CW_MAX_DEVICES; i++)
		free(m->timeline[i].sample);
	free(m);
}
