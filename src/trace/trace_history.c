/* SPDX-License-Identifier: Apache-2.0
 * Reads what sites held over time (struct cw_epochs in format.h) from a recording, believing none of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/trace_memory.h"
#include "trace/trace_priv.h"
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

/* The n-th thing of a list that goes on from chunk to chunk. */
static const void *nth(const struct trace *t, uint32_t kind, size_t size, size_t n)
{
	size_t i, here;

	for (i = 0; i < t->n_chunks; i++) {
		if (t->chunk[i].kind != kind)
			continue;
		here = t->chunk[i].len / size;
		if (n < here)
			return t->data + t->chunk[i].off + n * size;
		n -= here;
	}
	return NULL;
}

/* A copy in which its epochs are those of the newest scale. */
static bool read_history(const struct trace *t, const struct epochs *e, uint32_t number, uint32_t site, struct cw_history *out)
{
	const struct cw_history *h = nth(t, CW_CHUNK_HISTORIES, sizeof(*h), number - 1);
	uint32_t i, scale;

	if (!h || h->site != site || h->scale > e->scale)
		return false;
	*out = *h;
	for (scale = out->scale; scale < e->scale; scale++) {
		for (i = 0; i < CW_EPOCHS / 2; i++)
			out->held[i] = out->held[2 * i + (e->chunk->second[scale] >> i & 1)];
		memset(out->held + CW_EPOCHS / 2, 0, sizeof(out->held) / 2);
	}
	return true;
}

bool trace_site_held(struct trace *t, size_t site, uint64_t *held)
{
	const struct cw_site_mark *m = nth(t, CW_CHUNK_SITE_MARKS, sizeof(*m), site);
	const struct cw_epoch *list;
	const struct cw_site *s;
	const struct epochs *e;
	struct cw_history h = {0};
	size_t i, n;

	if (site >= trace_sites(t, &s) || !s[site].kind || !m || !trace_epochs(t, s[site].device, &list, &n))
		return false;
	e = &t->epochs[s[site].device];
	if (m->history && !read_history(t, e, m->history, (uint32_t)site, &h))
		return false;
	for (i = 0; i < n; i++)
		held[i] = list[i].generation > m->generation ? s[site].live : (uint64_t)h.held[i] * CW_HISTORY_UNIT;
	return true;
}
