/* SPDX-License-Identifier: Apache-2.0
 * What the rest of a turn would ask for whose batch is another (see turn_sizes.h).
 */
#include "find/memory/turn_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ALIKE 0.02		/* part of a size by which it may miss a ratio: a batch and one more token */

static uint32_t units_of(const struct step *s)
{
	return step_units(step_asked(s));
}

void turn_sizes_add(struct turn_sizes *s, const struct step *before, const struct step *now)
{
	s->list = xgrow(s->list, s->n, &s->cap, sizeof(*s->list));
	s->list[s->n++] = (struct turn_pair){before->stack, units_of(before), units_of(now)};
}

static double ratio_of(const struct turn_pair *p)
{
	return (double)p->now / p->before;
}

/* Sizes are rounded up to units. */
static bool has_ratio(const struct turn_pair *p, double ratio)
{
	return fabs(p->now - ratio * p->before) <= ALIKE * p->now + ratio + 1;
}

static int by_size_and_line(const void *x, const void *y)
{
	const struct turn_pair *a = x, *b = y;

	if (a->before != b->before)
		return a->before < b->before ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static int by_line_and_size(const void *x, const void *y)
{
	const struct turn_pair *a = x, *b = y;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return (a->before > b->before) - (a->before < b->before);
}

static int by_line(const void *x, const void *y)
{
	const struct turn_pair *a = x, *b = y;

	return (a->stack > b->stack) - (a->stack < b->stack);
}

/* Of pairs that are alike, that which became the largest. */
static size_t without_repeats(struct turn_pair *list, size_t n, int (*order)(const void *, const void *))
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!kept || order(&list[kept - 1], &list[i]) != 0)
			list[kept++] = list[i];
		else if (list[i].now > list[kept - 1].now)
			list[kept - 1].now = list[i].now;
	}
	return kept;
}

static void learn_lines(struct turn_sizes *s)
{
	size_t n = 0;

	s->line = xcalloc(s->n + 1, sizeof(*s->line));
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].now != s->list[i].before)
			s->line[n++] = s->list[i];
	xsort(s->line, n, sizeof(*s->line), by_line_and_size);
	for (size_t i = n; i-- > 0;) {		/* the largest of a line comes first */
		struct turn_pair *last = s->n_lines ? &s->line[n - s->n_lines] : NULL;

		if (!last || last->stack != s->line[i].stack)
			s->line[n - ++s->n_lines] = s->line[i];
		else if (last->now && !has_ratio(&s->line[i], ratio_of(last)))
			last->now = 0;
	}
	memmove(s->line, s->line + (n - s->n_lines), s->n_lines * sizeof(*s->line));
}

static void learn_ratio(struct turn_sizes *s)
{
	uint32_t most = 0;

	s->ratio = 1;
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].now != s->list[i].before && s->list[i].now > most) {
			most = s->list[i].now;
			s->ratio = ratio_of(&s->list[i]);
		}
	s->one_ratio = true;
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].now != s->list[i].before)
			s->one_ratio &= has_ratio(&s->list[i], s->ratio);
}

void turn_sizes_learn(struct turn_sizes *s, const struct replay *r)
{
	s->fixed = steps_that_stay(r);
	xsort(s->list, s->n, sizeof(*s->list), by_size_and_line);
	s->n = without_repeats(s->list, s->n, by_size_and_line);
	learn_lines(s);
	learn_ratio(s);
}

static uint32_t scaled(uint32_t units, double ratio)
{
	double now = ceil(units * ratio);

	return now < 1 ? 1 : now > UINT32_MAX ? UINT32_MAX : (uint32_t)now;
}

/* What a request of that size became: at that line, else at any. */
static struct turn_size became(const struct turn_sizes *s, uint32_t units, uint32_t stack)
{
	size_t low = 0, high = s->n;
	uint32_t most = 0, least = UINT32_MAX;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->list[middle].before < units)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->n && s->list[low].before == units; low++) {
		if (s->list[low].stack == stack)
			return (struct turn_size){.units = s->list[low].now};
		most = s->list[low].now > most ? s->list[low].now : most;
		least = s->list[low].now < least ? s->list[low].now : least;
	}
	return (struct turn_size){.units = most, .unsure = most ? most - least : 0};
}

struct turn_size turn_sizes_of(const struct turn_sizes *s, const struct replay *r, size_t at)
{
	const struct step *before = &r->step[at];
	struct turn_pair key = {.stack = before->stack};
	uint32_t units = units_of(before);
	struct turn_size now = became(s, units, before->stack);
	const struct turn_pair *line = s->n_lines ? bsearch(&key, s->line, s->n_lines, sizeof(*s->line), by_line) : NULL;

	if (step_stays(before))
		return (struct turn_size){.units = units};
	if (now.units)
		return now;
	if (step_like_workspace(r, at) || (before->purpose == KIND_BACKWARD && step_sizes_have(&s->fixed, units)))
		return (struct turn_size){.units = units};	/* or a gradient of a parameter, before it is added to another */
	if (line)
		return (struct turn_size){.units = line->now ? scaled(units, ratio_of(line)) : 0};
	if (!s->one_ratio)
		return now;
	now.units = scaled(units, s->ratio);
	now.guessed = now.units > units ? now.units - units : units - now.units;
	return now;
}

void turn_sizes_release(struct turn_sizes *s)
{
	free(s->list);
	free(s->line);
	free(s->fixed.list);
	*s = (struct turn_sizes){.n = 0};
}
