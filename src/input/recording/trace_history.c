/* SPDX-License-Identifier: Apache-2.0
 * Reads what sites held over time (struct cw_epochs in format.h) from a recording, believing none of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/recording/trace_memory.h"
#include "input/recording/trace_priv.h"
#include "base/banned.h"

/* --- epochs ---------------------------------------------------------------------------------- */

static const struct cw_epochs *epochs_chunk(const struct trace *t, int device)
{
	const struct cw_epochs *e;
	size_t i;

	for (i = 0; i < t->n_chunks; i++) {
		if (t->chunk[i].kind != CW_CHUNK_EPOCHS || t->chunk[i].len < sizeof(*e))
			continue;
		e = (const struct cw_epochs *)(t->data + t->chunk[i].off);
		if (e->device == device)
			return e;
	}
	return NULL;
}

/* Times and generations only rise; where they do not, nothing of it can be used. */
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

static void read_epochs(struct trace *t, struct epochs *out, int device)
{
	const struct cw_epochs *e = epochs_chunk(t, device);
	uint64_t n, scale;

	out->read = true;
	if (!e || e->n_max != CW_EPOCHS)
		return;
	n = e->now & 0xffffffffu;
	scale = e->now >> 32;
	if (n > CW_EPOCHS || scale >= CW_EPOCH_SCALES || !in_order(e->epoch[scale & 1], n))
		return;
	out->chunk = e;
	out->list = e->epoch[scale & 1];
	out->n = n;
	out->scale = (uint32_t)scale;
}

const struct cw_epochs *trace_epochs(struct trace *t, int device, const struct cw_epoch **list, size_t *n)
{
	struct epochs *e = device >= 0 && device < CW_MAX_DEVICES ? &t->epochs[device] : NULL;

	if (e && !e->read)
		read_epochs(t, e, device);
	*list = e ? e->list : NULL;
	*n = e ? e->n : 0;
	return e ? e->chunk : NULL;
}

/* --- histories ------------------------------------------------------------------------------- */

static void find_histories(struct trace *t, const struct chunk *c)
{
	const struct cw_history *h = (const struct cw_history *)(t->data + c->off);
	size_t i, n = c->len / sizeof(*h);

	for (i = 0; i < n; i++)
		if (h[i].site && h[i].site < t->n_sites)
			t->histories[h[i].site] = &h[i];
}

static void read_histories(struct trace *t)
{
	const struct cw_site *s;
	size_t i, n = trace_sites(t, &s);

	t->histories = xcalloc(n + 1, sizeof(*t->histories));
	for (i = 0; i < t->n_chunks; i++) {
		if (t->chunk[i].kind == CW_CHUNK_HISTORIES)
			find_histories(t, &t->chunk[i]);
		if (t->chunk[i].kind == CW_CHUNK_SITE_MARKS && !t->n_marks) {
			t->marks = (const uint32_t *)(t->data + t->chunk[i].off);
			t->n_marks = t->chunk[i].len / sizeof(*t->marks);
		}
	}
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
	const struct cw_epoch *list;
	const struct cw_site *s;
	struct cw_history h = {0};
	size_t i, n;

	if (!t->histories)
		read_histories(t);
	if (site >= trace_sites(t, &s) || !s[site].kind || site >= t->n_marks || !trace_epochs(t, s[site].device, &list, &n))
		return false;
	if (t->histories[site]) {
		h = *t->histories[site];
		if (!follow_epochs(&h, &t->epochs[s[site].device]))
			return false;
	}
	for (i = 0; i < n; i++)
		held[i] = list[i].generation > t->marks[site] ? s[site].live : (uint64_t)h.held[i] * CW_HISTORY_UNIT;
	return true;
}
