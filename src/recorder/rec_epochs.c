/* SPDX-License-Identifier: Apache-2.0
 * What each site held over time: a value for each epoch of the run (struct cw_epochs in format.h).
 *
 * Nothing loops over all sites when an epoch begins or its moment is found: that only raises a number, and each site
 * catches up before its next change. Sites that hold nothing, or never change again, need no history at all.
 */
#include "rec_site.h"

#define EPOCH_SAMPLES	4u		/* initial length of an epoch, in timeline samples */
#define FIRST		256u		/* histories in the first chunk; each next chunk has twice as many */
#define CHUNKS		5u		/* 4 MiB in all */

static struct {
	struct cw_epochs *of[CW_MAX_DEVICES];
	struct cw_history *chunk[CHUNKS];
	uint32_t n;
	uint32_t without;		/* bit n: there was no memory for device n's epochs */
	bool full;
	uint16_t number[SITES_MAX];	/* of each site's history, from 1; 0 = none */
} epochs;
static struct spin epochs_lock;
LOCK_LISTED(epochs_lock, epochs_lock);

void epochs_start(void)
{
	epochs.n = epochs.without = 0;
	epochs.full = false;
	for (uint32_t i = 0; i < CHUNKS; i++)
		epochs.chunk[i] = NULL;
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		epochs.of[i] = NULL;
	for (uint32_t i = 0; i < SITES_MAX; i++)	/* after fork: do not touch pages that were never used */
		if (epochs.number[i])
			epochs.number[i] = 0;
}

static uint32_t scale_of(const struct cw_epochs *e)
{
	return (uint32_t)(e->now >> 32);
}

static uint32_t count_of(const struct cw_epochs *e)
{
	return (uint32_t)e->now;
}

static struct cw_epoch *table_of(struct cw_epochs *e, uint32_t scale)
{
	return e->epoch[scale & 1];
}

static void set_now(struct cw_epochs *e, uint32_t scale, uint32_t n)
{
	shared_set(&e->now, (uint64_t)scale << 32 | n);
}

/* Without PyTorch, the driver's figure decides which moment had more. */
static bool has_more(uint64_t allocated, uint64_t driver, const struct cw_epoch *than)
{
	return allocated > than->allocated || (!allocated && !than->allocated && driver > than->driver);
}

/* Fill the other table, then switch to it with one store: a kill leaves either the old epochs or the new. */
static void keep_half(struct cw_epochs *e)
{
	uint32_t scale = scale_of(e);
	const struct cw_epoch *from = table_of(e, scale);
	struct cw_epoch *to = table_of(e, scale + 1);
	uint64_t second = 0;

	for (uint32_t i = 0; i < CW_EPOCHS / 2; i++) {
		bool later = has_more(from[2 * i + 1].allocated, from[2 * i + 1].driver, &from[2 * i]);

		to[i] = from[2 * i + later];
		to[i].begin = from[2 * i].begin;
		second |= (uint64_t)later << i;
	}
	e->second[scale] = second;
	e->every *= 2;
	set_now(e, scale + 1, CW_EPOCHS / 2);
}

/* The generation is raised before the epoch can be found, so sites already compare with it. */
static void set_moment(struct cw_epochs *e, struct cw_epoch *p, const struct cw_sample *now)
{
	p->at = now->ticks;
	p->allocated = now->allocated;
	p->reserved = now->reserved;
	p->driver = now->driver;
	p->flags = rec_self && rec_self->node_depth ? CW_EPOCH_BACKWARD : 0;
	shared_set(&p->generation, site_moment(e->device));
}

static void begin_epoch(struct cw_epochs *e, const struct cw_sample *now)
{
	struct cw_epoch *p;

	if (count_of(e) == CW_EPOCHS)
		keep_half(e);
	p = &table_of(e, scale_of(e))[count_of(e)];
	p->begin = now->ticks;
	set_moment(e, p, now);
	set_now(e, scale_of(e), count_of(e) + 1);
}

static bool may_begin(const struct cw_epochs *e, const struct cw_epoch *last, const struct cw_sample *now)
{
	return (int64_t)(now->ticks - last->begin) >= (int64_t)e->every &&
	       (count_of(e) < CW_EPOCHS || scale_of(e) < CW_EPOCH_SCALES - 1);
}

static void epochs_note(struct cw_epochs *e, const struct cw_sample *now, bool sample_begins)
{
	struct cw_epoch *last = &table_of(e, scale_of(e))[count_of(e) ? count_of(e) - 1 : 0];

	if (!count_of(e) || (sample_begins && may_begin(e, last, now)))
		begin_epoch(e, now);
	else if (has_more(now->allocated, now->driver, last))
		set_moment(e, last, now);
}

static struct cw_epochs *epochs_new(int device, uint64_t every)
{
	struct cw_epochs *e = epochs.without & 1u << device ? NULL : chunk_new(CW_CHUNK_EPOCHS, sizeof(*e), 0);

	if (!e) {
		epochs.without |= 1u << device;
		return NULL;
	}
	e->device = device;
	e->n_max = CW_EPOCHS;
	e->every = every;
	epochs.of[device] = e;
	return e;
}

/* Called when the timeline changes, under its lock: the largest value in an epoch is the largest in some sample. */
void epochs_moment(int device, const struct cw_sample *now, uint64_t sample_every, bool sample_begins)
{
	struct cw_epochs *e;

	if (!spin_try(&epochs_lock))
		return;
	e = epochs.of[device] ? epochs.of[device] : epochs_new(device, sample_every * EPOCH_SAMPLES);
	if (e)
		epochs_note(e, now, sample_begins);
	spin_done(&epochs_lock);
}

/* Number n, from 0, is in the chunk whose first number is the largest of 0, 256, 768, ... that is not above n. */
static struct cw_history *history_at(uint32_t n, uint32_t *chunk)
{
	*chunk = 31u - (uint32_t)__builtin_clz(n / FIRST + 1);
	return *chunk < CHUNKS && epochs.chunk[*chunk] ? &epochs.chunk[*chunk][n - FIRST * ((1u << *chunk) - 1)] : NULL;
}

static struct cw_history *history_new(uint32_t site, uint32_t scale)
{
	uint32_t chunk;
	struct cw_history *h = history_at(epochs.n, &chunk);

	if (!h && !epochs.full && chunk < CHUNKS) {
		epochs.chunk[chunk] = chunk_new(CW_CHUNK_HISTORIES, (FIRST << chunk) * (uint32_t)sizeof(*h), 0);
		h = history_at(epochs.n, &chunk);
	}
	if (!h) {
		epochs.full = true;
		return NULL;
	}
	h->scale = scale;
	shared_set(&h->site, site);
	epochs.number[site] = (uint16_t)++epochs.n;
	return h;
}

static struct cw_history *history_of(uint32_t site)
{
	uint32_t chunk;

	return epochs.number[site] ? history_at(epochs.number[site] - 1u, &chunk) : NULL;
}

/* Convert a history from its own scale to the next one. */
static void follow_half(struct cw_history *h, uint64_t second)
{
	for (uint32_t i = 0; i < CW_EPOCHS / 2; i++)
		h->held[i] = h->held[2 * i + (second >> i & 1)];
	for (uint32_t i = CW_EPOCHS / 2; i < CW_EPOCHS; i++)
		h->held[i] = 0;
}

/* A kill in between leaves a history that is marked bad. */
static bool follow(struct cw_history *h, const struct cw_epochs *e)
{
	uint32_t scale = h->scale, now = scale_of(e);

	if (likely(scale == now))
		return true;
	if (scale > now)
		return false;
	shared_set(&h->scale, CW_HISTORY_BAD);
	atomic_signal_fence(memory_order_seq_cst);
	for (; scale < now; scale++)
		follow_half(h, e->second[scale]);
	shared_set(&h->scale, now);
	return true;
}

/* The site has held what it holds now at every moment since its mark. */
static void history_fill(struct cw_history *h, struct cw_epochs *e, uint32_t since, uint64_t live)
{
	uint64_t units = (live + CW_HISTORY_UNIT - 1) / CW_HISTORY_UNIT;
	const struct cw_epoch *table = table_of(e, scale_of(e));

	for (uint32_t i = count_of(e); i > 0 && table[i - 1].generation > since; i--)
		h->held[i - 1] = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

/* Called with the lock held. */
static void keep(const struct cw_site *s, struct cw_epochs *e, uint32_t number, uint32_t since)
{
	struct cw_history *h = history_of(number);

	if (!h)
		h = history_new(number, scale_of(e));
	if (!h)
		e->lost++;
	else if (follow(h, e))
		history_fill(h, e, since, s->live);
}

/* A site that held nothing and has no history needs none. */
void epochs_keep(const struct cw_site *s, uint32_t number, uint32_t since)
{
	if (!s->live && !epochs.number[number])
		return;
	if (spin_try(&epochs_lock)) {
		if (epochs.of[s->device])
			keep(s, epochs.of[s->device], number, since);
		spin_done(&epochs_lock);
	} else if (history_of(number)) {
		shared_set(&history_of(number)->scale, CW_HISTORY_BAD);
	}
}
