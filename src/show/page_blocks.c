/* SPDX-License-Identifier: Apache-2.0
 * The life of every PyTorch block on a page (see page_blocks.h).
 */
#include "show/page_blocks.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "case/line.h"
#include "find/failure/place.h"
#include "find/memory/playback.h"
#include "read/recording/trace.h"
#include "find/memory/snap_analyze.h"

#define UNIT		512u	/* the allocator's smallest block */
#define TIMES_MAX	1024	/* even */
#define BINS		(1u << 16)

static bool life_same(const void *list, uint32_t i, const void *addr)
{
	return ((const struct life *)list)[i].addr == *(const uint64_t *)addr;
}

void lives_init(struct lives *l, size_t most)
{
	*l = (struct lives){.most = most, .failed = LIFE_OPEN, .stride = 1};
	l->us = xcalloc(TIMES_MAX, sizeof(*l->us));
	page_words_init(&l->lines);
}

void lives_release(struct lives *l)
{
	page_words_release(&l->lines);
	map_release(&l->live);
	free(l->list);
	free(l->us);
}

static double area_of(const struct life *f, uint32_t end)
{
	uint32_t died = f->died == LIFE_OPEN ? end + 1 : f->died;

	return (double)f->size * (double)(died > f->born ? died - f->born : 1);
}

/* A number that grows with the area; the bits of a float do. */
static uint32_t bin_of(const struct life *f, uint32_t end)
{
	float area = (float)area_of(f, end);
	uint32_t bits;

	memcpy(&bits, &area, sizeof(bits));
	return bits >> 16;
}

/* Keeps `keep` of those whose life has ended (with `all`: of all of them), the largest areas. */
static void drop_least(struct lives *l, size_t keep, bool all)
{
	size_t *bin = xcalloc(BINS, sizeof(*bin)), ended = 0, drop, n = 0;
	uint32_t at = 0;

	for (size_t i = 0; i < l->n; i++)
		if (all || l->list[i].died != LIFE_OPEN) {
			bin[bin_of(&l->list[i], l->events)]++;
			ended++;
		}
	drop = ended > keep ? ended - keep : 0;
	while (drop && drop >= bin[at])
		drop -= bin[at++];
	for (size_t i = 0; i < l->n; i++) {
		const struct life *f = &l->list[i];
		uint32_t b = bin_of(f, l->events);

		if (ended > keep && (all || f->died != LIFE_OPEN) && (b < at || (b == at && drop && drop--))) {
			l->left_out++;
			l->area_left_out += area_of(f, l->events);
		} else {
			l->list[n++] = *f;
		}
	}
	l->n = n;
	free(bin);
}

static void find_live_again(struct lives *l)
{
	map_release(&l->live);
	l->live = (struct map){0};
	for (uint32_t i = 0; i < l->n; i++)
		if (l->list[i].died == LIFE_OPEN)
			map_put(&l->live, map_hash(l->list[i].addr), life_same, l->list, &l->list[i].addr, i);
}

static struct life *life_add(struct lives *l, const struct life *what)
{
	if (l->n >= 2 * l->most && l->n - l->live.n > l->most) {
		drop_least(l, l->most / 2, false);
		find_live_again(l);
	}
	if (l->n >= MAP_NONE - 1)
		return NULL;
	l->list = xgrow(l->list, l->n, &l->cap, sizeof(*l->list));
	l->list[l->n] = *what;
	return &l->list[l->n++];
}

void lives_event(struct lives *l, uint64_t us)
{
	if (l->events == LIFE_OPEN - 1)
		return;
	if (l->events % l->stride == 0) {
		if (l->n_us == TIMES_MAX) {
			for (size_t i = 0; i < TIMES_MAX / 2; i++)
				l->us[i] = l->us[2 * i];
			l->n_us = TIMES_MAX / 2;
			l->stride *= 2;
		}
		if (l->events % l->stride == 0)
			l->us[l->n_us++] = us;
	}
	l->events++;
}

static void life_end(struct lives *l, uint32_t i)
{
	struct life *f = &l->list[i];

	f->died = l->events > f->born ? l->events : f->born + 1;
}

void lives_made(struct lives *l, const struct life *what)
{
	uint32_t old = map_take(&l->live, map_hash(what->addr), life_same, l->list, &what->addr);
	struct life *f;

	if (old != MAP_NONE)
		life_end(l, old);
	if (!what->size)
		return;
	f = life_add(l, what);
	if (!f)
		return;
	f->born = l->events;
	f->died = LIFE_OPEN;
	map_put(&l->live, map_hash(f->addr), life_same, l->list, &f->addr, (uint32_t)(f - l->list));
}

void lives_freed(struct lives *l, const struct life *what)
{
	uint32_t i = map_take(&l->live, map_hash(what->addr), life_same, l->list, &what->addr);
	struct life *f;

	if (i != MAP_NONE) {
		life_end(l, i);
	} else if (what->size && (f = life_add(l, what)) != NULL) {
		f->born = 0;
		life_end(l, (uint32_t)(f - l->list));
	}
}

void lives_start(struct lives *l)
{
	for (size_t i = 0; i < l->n; i++)
		l->list[i].born = 0;
	l->events = 0;
	l->n_us = 0;
	l->stride = 1;
}

struct arena {
	uint64_t from, to;	/* addresses */
	uint64_t at;		/* units below it */
};

struct arenas {
	struct arena *list;
	size_t n;
	uint64_t units;
};

static int by_address(const void *a, const void *b)
{
	const struct arena *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static uint64_t units_of(uint64_t bytes)
{
	return bytes / UNIT + (bytes % UNIT != 0);
}

static uint64_t end_of(const struct life *f)
{
	return f->addr + f->size < f->addr ? UINT64_MAX : f->addr + f->size;
}

static void arenas_make(struct arenas *a, const struct life *list, size_t n)
{
	size_t kept = 0;

	*a = (struct arenas){.list = xcalloc(n + 1, sizeof(*a->list))};
	for (size_t i = 0; i < n; i++)
		a->list[i] = (struct arena){.from = list[i].addr, .to = end_of(&list[i])};
	xsort(a->list, n, sizeof(*a->list), by_address);
	for (size_t i = 0; i < n; i++) {
		struct arena *last = kept ? &a->list[kept - 1] : NULL;

		if (last && a->list[i].from <= last->to)
			last->to = a->list[i].to > last->to ? a->list[i].to : last->to;
		else
			a->list[kept++] = a->list[i];
	}
	a->n = kept;
	for (size_t i = 0; i < kept; i++) {
		a->list[i].at = a->units;
		a->units += units_of(a->list[i].to - a->list[i].from);
	}
}

static uint64_t arenas_place(const struct arenas *a, uint64_t addr)
{
	size_t low = 0, high = a->n;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (a->list[middle].from <= addr)
			low = middle;
		else
			high = middle;
	}
	return a->list[low].at + (addr - a->list[low].from) / UNIT;
}

static void put_number(struct buf *b, uint64_t n)
{
	unsigned char bytes[10];
	size_t len = 0;

	for (; n > 127; n >>= 7)
		bytes[len++] = (unsigned char)(n | 128);
	bytes[len++] = (unsigned char)n;
	buf_add(b, bytes, len);
}

static void put_difference(struct buf *b, uint64_t now, uint64_t before)
{
	put_number(b, now >= before ? (now - before) << 1 : (before - now - 1) << 1 | 1);
}

static void put_columns(struct buf *b, const struct life *list, size_t n, const struct arenas *a)
{
	uint64_t before = 0;

	for (size_t i = 0; i < n; i++)
		put_number(b, list[i].born - (i ? list[i - 1].born : 0));
	for (size_t i = 0; i < n; i++)
		put_number(b, list[i].died == LIFE_OPEN ? 0 : list[i].died - list[i].born);
	for (size_t i = 0; i < n; i++) {
		uint64_t place = arenas_place(a, list[i].addr);

		put_difference(b, place, before);
		before = place;
	}
	for (size_t i = 0; i < n; i++)
		put_number(b, units_of(list[i].size));
	for (size_t i = 0; i < n; i++)
		put_number(b, (uint64_t)(list[i].line + 1));
}

static void put_base64(struct buf *out, const unsigned char *bytes, size_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
				 (i + 2 < n ? bytes[i + 2] : 0);
		char four[4] = {digit[three >> 18], digit[three >> 12 & 63], i + 1 < n ? digit[three >> 6 & 63] : '=',
				i + 2 < n ? digit[three & 63] : '='};

		buf_add(out, four, 4);
	}
	buf_add(out, "\n", 1);
}

static bool put_island(struct buf *out, const struct buf *columns)
{
	uLongf len = compressBound(columns->len);
	unsigned char *small = xcalloc(len + 1, 1);
	bool done = compress2(small, &len, (const Bytef *)columns->data, columns->len, Z_DEFAULT_COMPRESSION) == Z_OK;

	if (done)
		put_base64(out, small, len);
	free(small);
	return done;
}

static int by_birth(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	if (x->born != y->born)
		return x->born < y->born ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static json_t *times_json(const struct lives *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->n_us; i++)
		json_array_append_new(list, json_bytes(l->us[i]));
	return list;
}

static double all_areas(const struct lives *l)
{
	double sum = 0;

	for (size_t i = 0; i < l->n; i++)
		sum += area_of(&l->list[i], l->events);
	return sum;
}

static size_t only_device(const struct lives *l, int device, struct lives *out)
{
	*out = (struct lives){.events = l->events, .list = xcalloc(l->n + 1, sizeof(*out->list))};
	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].device == device)
			out->list[out->n++] = l->list[i];
	return out->n;
}

json_t *lives_json(struct lives *l, int device, size_t island, size_t *left, struct buf *out)
{
	struct arenas a = {0};
	struct lives own;
	struct buf columns;
	json_t *j = json_null();

	if (only_device(l, device, &own) && *left) {
		double area = all_areas(&own) + l->area_left_out;

		drop_least(&own, *left, true);
		xsort(own.list, own.n, sizeof(*own.list), by_birth);
		arenas_make(&a, own.list, own.n);
		buf_init(&columns, SIZE_MAX / 2);
		put_columns(&columns, own.list, own.n, &a);
		if (put_island(out, &columns)) {
			size_t gone = own.left_out + l->left_out;
			double area_gone = own.area_left_out + l->area_left_out;

			j = JSON_OF(J_INT("island", island), J_BYTES("n", own.n), J_BYTES("events", l->events),
				    J_BYTES("height", a.units * UNIT), J_BYTES("raw", columns.len),
				    J_SHARED("lines", l->lines.list), J_VALUE("us", times_json(l)),
				    J_INT("stride", l->stride),
				    J_IF(l->failed != LIFE_OPEN, J_BYTES("failed", l->failed)), J_BYTES("left_out", gone),
				    J_IF(gone && area > 0, J_VALUE("part_left_out", json_real(area_gone / area))));
			*left -= own.n;
		}
		buf_release(&columns);
		free(a.list);
	}
	free(own.list);
	return j;
}

/* `known`: of each of the `n` sites its number in the page's list, plus two; 0 = not looked up yet. */
static int32_t line_of_site(struct lives *l, struct trace *t, const struct piece *p, int32_t *known, size_t n)
{
	struct place at = {0};
	uint32_t stack = p->stack ? p->stack : p->forward_stack;

	if (!p->site || p->site >= n)
		return -1;
	if (!known[p->site])
		known[p->site] = 1 + (stack && place_of_stack(t, stack, &at) ?
					      page_words_place(&l->lines, &at, trace_header(t)->cwd) + 1 : 0);
	return known[p->site] - 2;
}

void lives_of_recording(struct lives *l, struct trace *t, const void *bytes, size_t len)
{
	struct playback play;
	struct playback_step s;
	int32_t *known;

	if (playback_begin(&play, t, bytes, len, NULL))
		return;
	known = xcalloc(play.n_sites + 1, sizeof(*known));
	while (playback_next(&play, &s)) {
		if (s.event.kind == CW_EVENT_MORE && s.event.more == CW_MORE_START) {
			lives_start(l);
		} else if (s.event.kind == CW_EVENT_OOM) {
			l->failed = l->events;
		} else if (s.event.kind == CW_EVENT_MADE && s.came) {
			const struct piece *p = &s.came->piece;

			lives_made(l, &(struct life){.addr = p->addr, .size = p->size, .device = p->device,
						     .line = line_of_site(l, t, p, known, play.n_sites)});
			lives_event(l, trace_ns(t, s.event.ticks) / 1000);
		} else if (s.event.kind == CW_EVENT_FREED && s.went.piece.size) {
			lives_freed(l, &(struct life){.addr = s.went.piece.addr});
			lives_event(l, trace_ns(t, s.event.ticks) / 1000);
		}
	}
	free(known);
	playback_release(&play);
}

struct snap_life {
	struct lives *l;
	const struct snapshot *s;
	const struct snap_lines *lines;
	int32_t *known;		/* of each line: its number in the page's list, plus two */
};

static int32_t line_of_snap_stack(const struct snap_life *v, uint32_t stack)
{
	uint32_t line = v->lines->of_stack[stack];
	const struct snap_line *at = snap_line(v->lines, line);
	struct place p = {.file = at->file ? snap_text(v->s, at->file) : NULL, .line = at->line};

	p.function = at->file ? snap_text(v->s, at->function) : NULL;
	if (!v->known[line])
		v->known[line] = 2 + page_words_place(&v->l->lines, &p, "");
	return v->known[line] - 2;
}

void lives_of_snapshot(struct lives *l, const struct snapshot *s, const struct snap_lines *lines,
		       const struct snap_device *d)
{
	const struct snap_replay *r = &d->replay;
	uint64_t first = r->n ? r->event[0].time_us : 0;
	struct snap_life v = {.l = l, .s = s, .lines = lines, .known = xcalloc(lines->table.n + 1, sizeof(*v.known))};

	for (size_t i = 0; i < r->n_live; i++) {
		const struct snap_block *b = &s->block[r->live[i].block];

		if (r->live[i].born == SNAP_NONE)
			lives_made(l, &(struct life){.addr = b->addr, .size = b->size, .device = d->device,
						     .line = line_of_snap_stack(&v, b->stack)});
	}
	for (size_t i = 0; i < r->n; i++) {
		const struct snap_event *e = &r->event[i];
		struct life what = {.addr = e->addr, .size = replay_bytes(r, i), .device = d->device};

		if (e->action == SNAP_OOM)
			l->failed = l->events;
		if (e->action != SNAP_ALLOC && e->action != r->free_action)
			continue;
		what.line = line_of_snap_stack(&v, e->stack);
		if (e->action == SNAP_ALLOC)
			lives_made(l, &what);
		else
			lives_freed(l, &what);
		lives_event(l, first && e->time_us > first ? e->time_us - first : 0);
	}
	free(v.known);
}
