/* SPDX-License-Identifier: Apache-2.0
 * How the memory of a program grows with a size (see growth.h).
 */
#include "find/memory/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/map.h"
#include "base/mem.h"
#include "find/memory/replay.h"
#include "read/recording/trace.h"

#define UNIT	  CW_EVENT_UNIT
#define HASH_SEED 14695981039346656037ull
#define MOST	  ((double)(1ull << 46))	/* bytes of one request, whatever the curve says */

const char *growth_doubt_text(enum growth_doubt doubt)
{
	static const char *const text[] = {
#define X(name, words) words,
		GROWTH_DOUBTS(X)
#undef X
	};

	return text[doubt];
}

/* a + b x + c x². */
struct curve {
	double a, b, c;
};

static double curve_at(const struct curve *k, double x)
{
	return k->a + (k->b + k->c * x) * x;
}

static double curve_misses_by(const struct curve *k, const double *x, const double *y, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(curve_at(k, x[i]) - y[i]));
	return most;
}

static struct curve line_through(const double *x, const double *y, size_t n)
{
	double sx = 0, sy = 0, above = 0, below = 0, b;

	for (size_t i = 0; i < n; i++) {
		sx += x[i] / (double)n;
		sy += y[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		above += (x[i] - sx) * (y[i] - sy);
		below += (x[i] - sx) * (x[i] - sx);
	}
	b = below > 0 ? above / below : 0;
	return (struct curve){.a = sy - b * sx, .b = b};
}

/* Two sizes, and nothing at size 0. */
static struct curve parabola_from_zero(const double *x, const double *y)
{
	double c = (y[1] / x[1] - y[0] / x[0]) / (x[1] - x[0]);

	return (struct curve){.b = y[0] / x[0] - c * x[0], .c = c};
}

/* Least squares, in sizes relative to the largest: their fourth powers would lose the small ones. */
static struct curve parabola_through(const double *x, const double *y, size_t n)
{
	double m[3][4] = {{0}}, unit = x[n - 1];

	for (size_t i = 0; i < n; i++) {
		double p[3] = {1, x[i] / unit, x[i] / unit * (x[i] / unit)};

		for (int r = 0; r < 3; r++) {
			for (int c = 0; c < 3; c++)
				m[r][c] += p[r] * p[c];
			m[r][3] += p[r] * y[i];
		}
	}
	for (int k = 0; k < 3; k++)	/* the matrix is positive: no pivots are needed */
		for (int r = 0; r < 3; r++)
			if (r != k)
				for (int c = 3; c >= k; c--)
					m[r][c] -= m[k][c] * m[r][k] / m[k][k];
	return (struct curve){m[0][3] / m[0][0], m[1][3] / m[1][1] / unit, m[2][3] / m[2][2] / unit / unit};
}

/* How much an error of 1 at the recorded sizes may become at another. */
static double error_grows(const double *x, size_t n, double at)
{
	double range = x[n - 1] - x[0];

	return fmax(1, (fabs(at - x[0]) + fabs(at - x[n - 1])) / range);
}

static bool is_constant(const double *y, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (y[i] != y[0])
			return false;
	return true;
}

static bool begins_below_zero(const struct curve *k)
{
	return k->a < -(double)UNIT || k->b < 0 || k->c < 0;
}

struct growth_point growth_point(const double *x, const double *y, size_t n, double at)
{
	struct curve line, parabola, *best = &line;
	double off;
	struct growth_point p = {.bytes = y[n - 1]};

	if (is_constant(y, n))
		return p;
	line = line_through(x, y, n);
	off = curve_misses_by(&line, x, y, n);
	if (n > 2 && off > UNIT && y[n - 1] == y[n - 2]) {	/* a library's workspace, which has reached its largest size */
		p.doubts = 1u << GROWTH_BENT;
		return p;
	}
	if (n == 2 && line.a < -2.0 * UNIT && line.b > 0) {
		parabola = parabola_from_zero(x, y);
		best = &parabola;
	} else if (n > 2 && off > UNIT) {
		double parabola_off;

		parabola = parabola_through(x, y, n);
		parabola_off = curve_misses_by(&parabola, x, y, n);
		if (parabola_off <= UNIT && !begins_below_zero(&parabola)) {
			best = &parabola;
			off = parabola_off;
			p.doubts = n == 3 ? 1u << GROWTH_CURVE : 0;
		} else {
			p.doubts = 1u << GROWTH_BENT;
		}
	}
	p.bytes = curve_at(best, at);
	p.error = (off + UNIT) * error_grows(x, n, at);
	return p;
}

struct line {
	uint32_t stack;
	uint64_t key;
};

/* The lines of a recording; stacks are few, requests are many. */
struct lines {
	struct line *list;
	size_t n, cap;
	struct map map;
};

static bool same_stack(const void *list, uint32_t i, const void *stack)
{
	return ((const struct line *)list)[i].stack == *(const uint32_t *)stack;
}

/* The numbers of stacks and strings differ between recordings, their text does not. */
static uint64_t stack_key(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	uint64_t key = HASH_SEED;

	for (uint32_t i = 0; s && i < s->n; i++) {
		const char *file = trace_string(t, s->frame[i].file);

		key = map_hash_bytes(key ^ s->frame[i].line, file, strlen(file));
	}
	return key;
}

static uint64_t line_key(struct lines *l, const struct trace *t, uint32_t stack)
{
	uint32_t n = (uint32_t)l->n, i = map_put(&l->map, map_hash(stack), same_stack, l->list, &stack, n);

	if (i == n) {
		l->list = xgrow(l->list, l->n, &l->cap, sizeof(*l->list));
		l->list[l->n++] = (struct line){stack, stack_key(t, stack)};
	}
	return l->list[i].key;
}

struct asked {
	uint64_t key;			/* the line */
	bool brief;			/* a workspace: of these, libraries need more or fewer */
	double bytes;
};

static size_t asked_list(struct asked **list, const struct growth_recording *r)
{
	struct replay_request *request;
	size_t n = replay_requests(r->replay, &request);
	struct lines lines = {0};

	*list = xcalloc(n + 1, sizeof(**list));
	for (size_t i = 0; i < n; i++)
		(*list)[i] = (struct asked){line_key(&lines, r->trace, request[i].stack) + request[i].brief,
					    request[i].brief, (double)request[i].bytes};
	free(request);
	free(lines.list);
	map_release(&lines.map);
	return n;
}

/* Two recordings, the first of them of the largest size. */
struct pairing {
	const struct asked *own, *other;
	double most;			/* by how much a request may have grown */
};

/* The same line, and it has not shrunk. */
static bool is_counterpart(const void *of, size_t i, size_t k)
{
	const struct pairing *p = of;
	const struct asked *own = &p->own[i], *other = &p->other[k];

	return own->key == other->key && own->bytes + UNIT >= other->bytes &&
	       own->bytes <= (other->bytes + UNIT) * p->most;
}

static bool same_kind(const void *list, uint32_t i, const void *kind)
{
	const struct asked *a = &((const struct asked *)list)[i], *b = kind;

	return a->key == b->key && a->bytes == b->bytes;
}

static uint64_t kind_hash(const struct asked *a)
{
	return map_hash(a->key ^ (uint64_t)a->bytes);
}

/* As others of the same line and size; else a workspace stays as it is, and all else grows like the size. */
static void pair_others(struct growth *g, size_t at, const struct asked *own, const size_t *match)
{
	struct map paired = {0};

	for (uint32_t i = 0; i < g->n; i++)
		if (match[i])
			map_put(&paired, kind_hash(&own[i]), same_kind, own, &own[i], i);
	for (size_t i = 0; i < g->n; i++) {
		uint32_t like = match[i] ? MAP_NONE : map_find(&paired, kind_hash(&own[i]), same_kind, own, &own[i]);
		double *bytes = &g->bytes[i * g->n_sizes + at];

		if (like != MAP_NONE)
			*bytes = g->bytes[like * g->n_sizes + at];
		else if (!match[i])
			*bytes = own[i].brief ? own[i].bytes : own[i].bytes * g->size[at] / g->size[g->n_sizes - 1];
		g->apart += !match[i];
	}
	map_release(&paired);
}

static size_t matches(const size_t *match, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += match[i] != 0;
	return found;
}

/* Quadratic growth is tried only where linear growth matches badly: with a batch, it would match requests that do not belong
 * together. */
static size_t *pair_up(const struct growth *g, const struct asked *own, const struct asked *other, size_t n, double ratio)
{
	size_t *line = xcalloc(g->n + 1, sizeof(*line)), *square, found;
	struct pairing p = {own, other, ratio};

	align(line, g->n, n, is_counterpart, &p);
	found = matches(line, g->n);
	if (found == g->n || found == n)
		return line;
	square = xcalloc(g->n + 1, sizeof(*square));
	p.most = ratio * ratio;
	align(square, g->n, n, is_counterpart, &p);
	if (matches(square, g->n) > found) {
		free(line);
		return square;
	}
	free(square);
	return line;
}

static void pair(struct growth *g, size_t at, const struct asked *own, const struct growth_recording *recording)
{
	struct asked *other;
	size_t n = asked_list(&other, recording);
	size_t *match = pair_up(g, own, other, n, g->size[g->n_sizes - 1] / g->size[at]);

	for (size_t i = 0; i < g->n; i++)
		if (match[i])
			g->bytes[i * g->n_sizes + at] = other[match[i] - 1].bytes;
	g->apart += n - matches(match, g->n);
	pair_others(g, at, own, match);
	free(match);
	free(other);
}

void growth_init(struct growth *g, const struct growth_recording *list, size_t n)
{
	struct asked *own;

	*g = (struct growth){.largest = list[n - 1].replay, .n_sizes = n};
	for (size_t i = 0; i < n; i++)
		g->size[i] = list[i].size;
	g->n = asked_list(&own, &list[n - 1]);
	g->bytes = xcalloc(g->n * n + 1, sizeof(*g->bytes));
	for (size_t i = 0; i < g->n; i++)
		g->bytes[i * n + n - 1] = own[i].bytes;
	for (size_t i = 0; i + 1 < n; i++)
		pair(g, i, own, &list[i]);
	free(own);
	for (size_t i = 0; i < g->n; i++)
		g->doubts |= growth_point(g->size, g->bytes + i * n, n, g->size[n - 1]).doubts;
	g->doubts |= (n == 2 ? 1u << GROWTH_TWO : 0) | (g->apart ? 1u << GROWTH_APART : 0);
}

void growth_release(struct growth *g)
{
	free(g->bytes);
	free(g->alone);
	*g = (struct growth){.n = 0};
}

/* Recorded sizes are rounded up already. What may grow is taken to stay, unless that is too much. */
static double asked_alone(const struct growth *g, size_t i, double size, int lean)
{
	bool grows = g->alone[i] == GROWTH_GROWS || (g->alone[i] == GROWTH_MAY && lean < 0);

	return grows ? ceil(g->bytes[i] * size / g->size[0]) : g->bytes[i];
}

static double asked_at(const struct growth *g, size_t i, double size, int lean)
{
	struct growth_point p;

	if (g->alone)
		return asked_alone(g, i, size, lean);
	p = growth_point(g->size, g->bytes + i * g->n_sizes, g->n_sizes, size);
	return p.bytes + lean * p.error;
}

struct replay *growth_at(const struct growth *g, double size, int lean)
{
	uint64_t *bytes = xcalloc(g->n + 1, sizeof(*bytes));
	struct replay *out;

	for (size_t i = 0; i < g->n; i++) {
		double asked = asked_at(g, i, size, lean);

		bytes[i] = asked < 1 ? 1 : asked > MOST ? (uint64_t)MOST : (uint64_t)round(asked);
	}
	out = replay_resized(g->largest, bytes);
	free(bytes);
	return out;
}
