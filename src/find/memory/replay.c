/* SPDX-License-Identifier: Apache-2.0
 * Plays a memory trace back to the model of PyTorch's allocator (see replay.h).
 *
 * The events become steps first (replay_steps.h): a what-if has addresses of its own. Where PyTorch chooses by address, both
 * orders in which a driver may give them out are played, and both ends of the sizes that were not recorded; what all of them
 * agree on is exact.
 */
#include "find/memory/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/card.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "find/memory/replay_steps.h"
#include "read/recording/trace_memory.h"

#define MIB	   ((uint64_t)1 << 20)
#define PAGE	   (2 * MIB)		/* the driver's: an allocation takes whole ones */
#define UNSPLIT	   MIB			/* a large block may be this much larger than its request */
#define TINY	   2			/* units: counters that a kernel has beside its workspace */
#define NEWEST	   99			/* of an unknown release: taken for the newest one */

const char *replay_doubt_text(enum replay_doubt doubt)
{
	static const char *const text[] = {
#define X(name, words) words,
		REPLAY_DOUBTS(X)
#undef X
	};

	return text[doubt];
}

/* Of a block whose request was not recorded: the least that it can have been. Smaller blocks fit exactly. */
static uint64_t step_least(const struct step *s)
{
	uint64_t size = step_size(s);

	return size <= MIB + STEP_UNIT ? size : size - UNSPLIT > MIB + STEP_UNIT ? size - UNSPLIT : MIB + STEP_UNIT;
}

struct playing {
	const struct replay *r;
	struct allocator *a;
	struct allocator_block **block;		/* by number; NULL: not allocated */
	uint8_t pool;				/* of the capture in progress, 0: none */
};

static struct allocator_pool_id pool_id(uint8_t number)
{
	return (struct allocator_pool_id){number, 0};
}

static void playing_begin(struct playing *p, const struct replay *r, const struct allocator_settings *settings,
			  const struct allocator_driver *driver, uint64_t total)
{
	*p = (struct playing){.r = r, .a = allocator_new(r->facts.release, settings, driver, total)};
	p->block = xcalloc((size_t)r->blocks + 1, sizeof(*p->block));
}

static void playing_end(struct playing *p)
{
	allocator_free(p->a);
	free(p->block);
}

/* What was there at the start, where it was. */
static void playing_adopt(struct playing *p)
{
	const struct start *s = &p->r->start;
	struct allocator_held *held = xcalloc(s->n_held + 1, sizeof(*held));

	if (s->n_held)
		memcpy(held, s->held, s->n_held * sizeof(*held));
	for (size_t i = 0; i < s->n; i++) {
		const struct start_segment *g = &s->segment[i];

		if (g->expandable && !g->n_ranges)
			continue;
		allocator_adopt(p->a,
				&(struct allocator_segment){.addr = g->addr,
							    .size = g->size,
							    .stream = p->r->streams.name[g->stream],
							    .pool = pool_id(g->pool),
							    .small = (g->expandable ? g->page : g->size) == PAGE,
							    .mapped = g->expandable ? s->range + g->range : NULL,
							    .n_mapped = g->n_ranges},
				held + g->block, g->n_blocks);
	}
	for (size_t i = 0; i < s->n_held; i++)
		p->block[s->number[i]] = held[i].block;
	free(held);
}

/* Once it has begun, a capture's pool stays in use: graphs are seldom dropped. */
static void play_pool(struct playing *p, uint8_t pool)
{
	if (p->pool)
		allocator_pool_end(p->a, pool_id(p->pool));
	if (pool)
		allocator_pool_begin(p->a, pool_id(pool));
	allocator_set_captured(p->a, pool != 0);
	p->pool = pool;
}

static void play_free(struct playing *p, const struct step *s)
{
	struct allocator_block *b = p->block[s->block];

	if (!b)
		return;
	if (s->kind == STEP_FREE_LATER)
		allocator_record_stream(p->a, b, UINT64_MAX);
	allocator_delete(p->a, b);
	p->block[s->block] = NULL;
}

static struct allocator_block *play_alloc(struct playing *p, const struct step *s, uint64_t size)
{
	return allocator_alloc(p->a, size, p->r->streams.name[s->stream], pool_id(s->pool));
}

struct again {
	struct playing playing;
	size_t at, end;			/* the driver's acts that this step must call for */
	bool differs;
};

static const struct act *again_next(struct again *g, enum act_kind kind)
{
	const struct act *act = g->at < g->end ? &g->playing.r->act[g->at] : NULL;

	if (!act || act->kind != kind)
		return NULL;
	g->at++;
	return act;
}

static uint64_t again_alloc(void *of, uint64_t size, uint64_t stream)
{
	struct again *g = of;
	const struct act *act = again_next(g, ACT_REFUSED);

	(void)stream;
	if (act)
		return 0;
	act = again_next(g, ACT_SEGMENT);
	if (!act || act->size != size)
		g->differs = true;
	return act ? act->addr : 0;
}

/* Expandable segments are mapped and unmapped in several parts. */
static void again_free(void *of, uint64_t addr, uint64_t size)
{
	struct again *g = of;

	for (uint64_t done = 0; done < size && !g->differs;) {
		const struct act *act = again_next(g, ACT_GONE);

		g->differs |= !act || act->addr < addr || act->addr - addr >= size || !act->size;
		done += act ? act->size : size;
	}
}

static uint64_t again_reserve(void *of, uint64_t size, uint64_t page, uint64_t stream)
{
	struct again *g = of;
	const struct act *act = again_next(g, ACT_RESERVED);

	(void)page;
	(void)stream;
	if (!act || act->size != size)
		g->differs = true;
	return act ? act->addr : PAGE;
}

static void again_unreserve(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	(void)addr;
	(void)size;
}

static bool again_map(void *of, uint64_t addr, uint64_t size)
{
	struct again *g = of;

	if (again_next(g, ACT_REFUSED))
		return false;
	for (uint64_t done = 0; done < size && !g->differs;) {
		const struct act *act = again_next(g, ACT_SEGMENT);

		g->differs |= !act || act->addr != addr + done || !act->size;
		done += act ? act->size : size;
	}
	return true;
}

static void again_ask(struct again *g, const struct step *s)
{
	struct playing *p = &g->playing;
	struct allocator_block *b = play_alloc(p, s, step_asked(s));

	if (s->kind == STEP_OOM) {
		g->differs |= b != NULL;
		return;
	}
	p->block[s->block] = b;
	g->differs |= !b || allocator_block_addr(b) != s->addr || allocator_block_size(b) != step_size(s);
}

static void again_step(struct again *g, const struct step *s)
{
	struct playing *p = &g->playing;

	switch ((enum step_kind)s->kind) {
	case STEP_ALLOC:
	case STEP_OOM:
		again_ask(g, s);
		break;
	case STEP_FREE:
	case STEP_FREE_LATER:
		play_free(p, s);
		break;
	case STEP_EMPTY:
		allocator_empty_cache(p->a, pool_id(0));
		break;
	case STEP_POOL:
		play_pool(p, s->pool);
		return;
	case STEP_OUTSIDE:
		return;
	}
	g->differs |= g->at != g->end;
}

/* How many steps came out the same. */
static uint64_t play_again(const struct replay *r)
{
	struct again g = {.at = 0};
	struct allocator_driver driver = {
		.of = &g,
		.alloc = again_alloc,
		.free = again_free,
		.reserve = again_reserve,
		.unreserve = again_unreserve,
		.map = again_map,
		.unmap = again_free,
	};
	size_t i;

	playing_begin(&g.playing, r, &r->facts.settings, &driver, r->facts.total);
	playing_adopt(&g.playing);
	g.at = r->start.acts;
	for (i = r->start.steps; i < r->n && !g.differs; i++) {
		g.end = r->step[i].acts > g.at ? r->step[i].acts : g.at;
		again_step(&g, &r->step[i]);
	}
	playing_end(&g.playing);
	return i - g.differs;
}

/* One of the ways in which it can have happened. */
struct way {
	bool ascending;			/* the driver gives out addresses from the lowest up */
	bool least;			/* requests were as small as they can have been */
	bool anew;			/* what was there when the events begin had been allocated with the settings in question, one
					 * after the other */
};

struct what_if {
	struct playing playing;
	struct card card;
	uint64_t room;			/* of the card, for PyTorch */
	struct replay_answer *answer;
	const struct replay_question *q;
	bool over;
};

static void fail_at(struct what_if *w, size_t i, uint64_t request)
{
	const struct step *s = &w->playing.r->step[i];

	w->answer->fits = false;
	w->answer->failure =
		(struct replay_failure){.step = i + 1, .request = request, .free = w->card.free, .stack = s->stack};
	w->over = true;
}

static uint64_t room_beside(const struct replay_question *q, uint64_t outside)
{
	uint64_t more = q->outside_more > 0 ? (uint64_t)q->outside_more : 0;
	uint64_t less = q->outside_more < 0 ? (uint64_t)-q->outside_more : 0;
	uint64_t used = outside + more > less ? outside + more - less : 0;

	return q->total > used ? q->total - used : 0;
}

/* Others do not wait until PyTorch releases its cache. */
static void play_outside(struct what_if *w, size_t i)
{
	uint64_t room = room_beside(w->q, step_size(&w->playing.r->step[i])), taken = w->room - w->card.free;

	if (taken > room) {
		fail_at(w, i, 0);
		return;
	}
	w->room = room;
	w->card.free = room - taken;
}

/* Where cuDNN's workspace does not fit, PyTorch takes an algorithm that needs less: it is no error. */
static bool may_fall_back(const struct replay *r, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(r->trace, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		if (str_ends(trace_string(r->trace, s->frame[i].file), "torch/nn/modules/conv.py"))
			return true;
	return false;
}

/* Freed before anything else was asked for. */
static bool is_brief(const struct replay *r, size_t step)
{
	size_t i = step + 1;

	while (i < r->n && r->step[i].kind != STEP_ALLOC && r->step[i].kind != STEP_OOM) {
		const struct step *s = &r->step[i++];

		if ((s->kind == STEP_FREE || s->kind == STEP_FREE_LATER) && s->block == r->step[step].block)
			return true;
	}
	return false;
}

static void play_ask(struct what_if *w, size_t i, bool least)
{
	struct playing *p = &w->playing;
	const struct step *s = &p->r->step[i];
	uint64_t size = least ? step_least(s) : step_asked(s);
	struct allocator_block *b = play_alloc(p, s, size);

	if (!b && w->q->fall_back && s->kind == STEP_ALLOC && is_brief(p->r, i) && may_fall_back(p->r, s->stack)) {
		w->answer->doubts |= 1u << REPLAY_FALLBACK;
	} else if (!b) {
		fail_at(w, i, size);
	} else if (s->kind == STEP_OOM) {
		w->answer->doubts |= 1u << REPLAY_BEYOND;
		w->answer->beside = w->card.free < w->answer->beside ? w->card.free : w->answer->beside;
		allocator_delete(p->a, b);
	} else {
		p->block[s->block] = b;
	}
	if (w->card.free < w->answer->spare)
		w->answer->spare = w->card.free;
}

static void what_if_step(struct what_if *w, size_t i, bool least)
{
	struct playing *p = &w->playing;
	const struct step *s = &p->r->step[i];

	switch ((enum step_kind)s->kind) {
	case STEP_ALLOC:
	case STEP_OOM:
		play_ask(w, i, least);
		break;
	case STEP_FREE:
	case STEP_FREE_LATER:
		play_free(p, s);
		break;
	case STEP_EMPTY:
		allocator_empty_cache(p->a, pool_id(0));
		break;
	case STEP_POOL:
		play_pool(p, s->pool);
		break;
	case STEP_OUTSIDE:
		play_outside(w, i);
		break;
	}
}

/* Since `peak`: a step may take memory and free it again. */
static uint64_t most_since(const struct allocator_amount *amount, uint64_t peak)
{
	return amount->peak > peak ? amount->peak : amount->now;
}

static void over_time_add(struct replay_over_time *o, size_t interval, uint64_t allocated, uint64_t reserved)
{
	if (interval >= o->n) {
		o->n = interval + 1;
		o->allocated[interval] = o->reserved[interval] = 0;
	}
	if (allocated > o->allocated[interval])
		o->allocated[interval] = allocated;
	if (reserved > o->reserved[interval])
		o->reserved[interval] = reserved;
}

/* False: the card is too small for it. Others take their part when the steps say so. */
static bool adopt_on_card(struct what_if *w)
{
	const struct start *s = &w->playing.r->start;

	for (size_t i = 0; i < s->n; i++)
		if (!s->segment[i].expandable && !card_adopt(&w->card, s->segment[i].addr, s->segment[i].size))
			return false;
	for (size_t i = 0; i < s->n_ranges; i++) {
		if (s->range[i].size > w->card.free)
			return false;
		w->card.free -= s->range[i].size;
	}
	playing_adopt(&w->playing);
	return true;
}

/* What others had in use then is among the steps that stand for the start. */
static void start_outside(struct what_if *w)
{
	const struct replay *r = w->playing.r;

	for (size_t i = 0; i < r->start.steps && !w->over; i++)
		if (r->step[i].kind == STEP_OUTSIDE)
			play_outside(w, i);
}

/* `o` may be NULL. */
static void play_way(const struct replay *r, const struct replay_question *q, struct way way, struct replay_answer *a,
		     struct replay_over_time *o)
{
	struct what_if w = {.answer = a, .q = q, .room = room_beside(q, 0)};
	size_t from = way.anew ? 0 : r->start.steps;
	const struct allocator_counters *c;
	struct allocator_driver driver;

	*a = (struct replay_answer){.fits = true, .spare = w.room, .beside = w.room};
	card_init(&w.card, w.room, way.ascending);
	driver = card_driver(&w.card);
	playing_begin(&w.playing, r, &q->settings, &driver, q->total);
	if (from)
		start_outside(&w);
	if (from && !w.over && !adopt_on_card(&w))
		fail_at(&w, from - 1, 0);
	c = allocator_counters(w.playing.a);
	if (o)
		o->n = 0;
	for (size_t i = 0; o && i < from; i += r->stride)	/* what was there when the events begin */
		over_time_add(o, i / r->stride, c->allocated.now, c->reserved.now);
	for (size_t i = from; i < r->n && !w.over; i++) {
		uint64_t allocated = c->allocated.peak, reserved = c->reserved.peak;

		what_if_step(&w, i, way.least);
		if (o)
			over_time_add(o, i / r->stride, most_since(&c->allocated, allocated),
				      most_since(&c->reserved, reserved));
	}
	a->peak_allocated = c->allocated.peak;
	a->peak_reserved = c->reserved.peak;
	a->retries = c->retries;
	if (a->retries)
		a->spare = 0;
	playing_end(&w.playing);
	card_release(&w.card);
}

static bool agree(const struct replay_answer *a, const struct replay_answer *b)
{
	return a->fits == b->fits && a->peak_reserved == b->peak_reserved && a->failure.step == b->failure.step;
}

/* The worse of two answers counts. True: that is the other. */
static bool answer_join(struct replay_answer *a, const struct replay_answer *other, enum replay_doubt why)
{
	unsigned doubts = a->doubts | other->doubts | (a->fits == other->fits ? 0 : 1u << why);
	unsigned figures = a->figures | other->figures | (agree(a, other) ? 0 : 1u << why);

	bool worse = a->fits != other->fits ? !other->fits : other->peak_reserved > a->peak_reserved;

	if (worse)
		*a = *other;
	a->doubts = doubts;
	a->figures = figures;
	return worse;
}

/* A doubt only where it decides. */
static void ask_unsure(const struct replay *r, const struct replay_question *q, struct replay_answer *a)
{
	struct replay_question other = *q;
	struct replay_answer at;

	other.outside_more += (int64_t)(a->fits ? q->unsure : 0 - q->unsure);
	play_way(r, &other, (struct way){.ascending = false}, &at, NULL);
	if (at.fits != a->fits)
		a->doubts |= 1u << REPLAY_CARD;
}

/* The card has room for all that PyTorch had reserved when the events begin. */
static bool start_has_room(const struct replay *r, const struct replay_question *q)
{
	uint64_t outside = 0;

	for (size_t i = 0; i < r->start.steps; i++)
		if (r->step[i].kind == STEP_OUTSIDE)
			outside = step_size(&r->step[i]);
	return room_beside(q, outside) >= r->start.reserved;
}

/* All ways are played; `o` has the one that counts.
 *
 * Where the first events are not known, what they left is played both where it was and allocated anew with the settings in
 * question: the truth is between the two. With the same settings it was where it was; on a card that is too small for that, it is
 * not known. */
static void ask_all_ways(const struct replay *r, const struct replay_question *q, struct replay_answer *a,
			 struct replay_over_time *o)
{
	bool has_room = start_has_room(r, q);
	const struct way descending = {.anew = !has_room}, ascending = {.ascending = true, .anew = !has_room},
			 least = {.least = true, .anew = !has_room}, anew = {.anew = true};
	const struct way *worst = NULL;
	struct replay_answer other;

	play_way(r, q, descending, a, o);
	play_way(r, q, ascending, &other, NULL);
	if (answer_join(a, &other, REPLAY_ADDRESSES))
		worst = &ascending;
	if (!r->sizes_known) {
		play_way(r, q, least, &other, NULL);
		if (answer_join(a, &other, REPLAY_SIZES))
			worst = &least;
	}
	if (!has_room && a->fits)
		a->doubts |= 1u << REPLAY_BEFORE;
	if (has_room && r->start.n_held && !allocator_settings_same(&r->facts.settings, &q->settings)) {
		play_way(r, q, anew, &other, NULL);
		if (answer_join(a, &other, REPLAY_BEFORE))
			worst = &anew;
	}
	if (o && worst)
		play_way(r, q, *worst, &other, o);
}

/* The largest demand of the whole run was before the first event that is known. */
static bool peak_unknown(const struct replay *r, const struct replay_question *q)
{
	const struct cw_memory_now *m = trace_memory(r->trace, r->device);

	return r->facts.before && m && m->peak_allocated > r->facts.peak_allocated &&
	       (!allocator_settings_same(&r->facts.settings, &q->settings) ||
		room_beside(q, r->facts.outside) < m->peak_reserved);
}

void replay_ask_over_time(const struct replay *r, const struct replay_question *q, struct replay_answer *a,
			  struct replay_over_time *o)
{
	ask_all_ways(r, q, a, o);
	if (a->fits && peak_unknown(r, q))
		a->doubts |= 1u << REPLAY_BEFORE;
	if (q->unsure)
		ask_unsure(r, q, a);
	if (!a->fits && may_fall_back(r, a->failure.stack))
		a->doubts |= 1u << REPLAY_FALLBACK;
	if (q->settings.unmodeled[0])
		a->doubts |= 1u << REPLAY_UNMODELED;
	a->doubts |= r->facts.doubts;
}

void replay_ask(const struct replay *r, const struct replay_question *q, struct replay_answer *a)
{
	replay_ask_over_time(r, q, a, NULL);
}

int replay_settings(const struct replay *r, const char *words, struct allocator_settings *s, struct err *e)
{
	const char *own = r->facts.conf;
	char *text = xasprintf("%s%s%s", own, *own && *words ? "," : "", words);
	int rc;

	allocator_settings_init(s);
	rc = *text ? allocator_settings_parse(s, r->facts.release, text, e) : 0;
	free(text);
	return rc;
}

static void find_release(struct replay *r, const char *version)
{
	unsigned major = 2, minor = NEWEST;

	if (sscanf(version, "%u.%u", &major, &minor) != 2) {
		major = 2;
		minor = NEWEST;
	}
	r->facts.release = allocator_release_find(major, minor);
	if (r->facts.release && (r->facts.release->minor != minor || !r->facts.release->compared))
		r->facts.doubts |= 1u << REPLAY_RELEASE;
}

static int replay_read(struct replay *r, const void *bytes, size_t len, int device, struct err *e)
{
	const struct cw_header *h = trace_header(r->trace);
	int rc;

	r->facts.total = h->device[device].total_bytes;
	r->facts.conf = h->alloc_conf[0] == CW_NOT_SET[0] ? "" : h->alloc_conf;
	find_release(r, h->torch_version);
	if (!r->facts.release)
		return err_set(e, -ENOTSUP, "the allocator of PyTorch %s cannot be played back: it is too old",
			       h->torch_version);
	rc = replay_settings(r, "", &r->facts.settings, e);
	if (rc == 0)
		rc = steps_read(r, bytes, len, device, e);
	if (rc == 0 && !r->facts.steps && !r->start.n_held)
		rc = err_set(e, -ENODATA, "PyTorch's allocator was not used on GPU %d, or it was not PyTorch's own",
			     device);
	return rc;
}

struct replay *replay_new(struct trace *t, const void *bytes, size_t len, int device, struct err *e)
{
	struct replay *r = xcalloc(1, sizeof(*r));

	r->trace = t;
	r->device = device;
	if (device < 0 || device >= CW_MAX_DEVICES || replay_read(r, bytes, len, device, e)) {
		replay_free(r);
		return NULL;
	}
	if (trace_is_damaged(t))
		r->facts.doubts |= 1u << REPLAY_DAMAGED;
	r->facts.same = play_again(r);
	if (r->facts.same < r->n)
		r->facts.doubts |= 1u << REPLAY_DIFFERS;
	return r;
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	steps_release(r);
	free(r);
}

const struct replay_facts *replay_facts(const struct replay *r)
{
	return &r->facts;
}

bool step_like_workspace(const struct replay *r, size_t step)
{
	if (step_asked(&r->step[step]) % MIB)
		return false;
	for (size_t i = step + 1; i < r->n; i++) {
		const struct step *s = &r->step[i];

		if ((s->kind == STEP_ALLOC || s->kind == STEP_OOM) && s->units > TINY)
			return false;
		if ((s->kind == STEP_FREE || s->kind == STEP_FREE_LATER) && s->block == r->step[step].block)
			return true;
	}
	return false;
}

size_t replay_requests(const struct replay *r, struct replay_request **list)
{
	struct replay_request *out = xcalloc(r->n + 1, sizeof(*out));
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC)
			out[n++] = (struct replay_request){step_asked(&r->step[i]), r->step[i].stack, is_brief(r, i)};
	*list = out;
	return n;
}

/* What was there when the events begin is allocated anew: where it was belongs to the sizes that were recorded, and so do the
 * driver's answers. */
struct replay *replay_of_steps(const struct replay *r, struct step *step, size_t n, uint32_t blocks)
{
	struct replay *out = xcalloc(1, sizeof(*out));

	*out = *r;
	out->act = NULL;
	out->n_acts = out->cap_acts = 0;
	out->start = (struct start){.n = 0};
	out->step = step;
	out->n = out->cap = n;
	out->blocks = blocks;
	if (r->start.n_held)
		out->facts.doubts |= 1u << REPLAY_BEFORE;
	return out;
}

struct replay *replay_resized(const struct replay *r, const uint64_t *bytes)
{
	struct step *step = xcalloc(r->n + 1, sizeof(*step));

	memcpy(step, r->step, r->n * sizeof(*step));
	for (size_t i = 0; i < r->n; i++)
		if (step[i].kind == STEP_ALLOC) {
			step[i].units = step_units(*bytes++);
			step[i].slack = 0;
		}
	return replay_of_steps(r, step, r->n, r->blocks);
}

struct replay_question replay_same(const struct replay *r)
{
	return (struct replay_question){.settings = r->facts.settings, .total = r->facts.total};
}

struct replay_intervals replay_intervals(const struct replay *r)
{
	return (struct replay_intervals){r->began, r->n_intervals, r->stride};
}

uint64_t replay_room(const struct replay *r, const struct replay_question *q)
{
	return room_beside(q, r->facts.outside);
}
