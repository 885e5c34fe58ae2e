/* SPDX-License-Identifier: Apache-2.0
 * The largest size that fits a card, from recordings of several sizes: what the program would ask for at another size
 * (growth.h), played back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "find/memory/largest.h"
#include "fit/fit.h"

#define FAR  4			/* times the largest recorded size: beyond, libraries may do something else */
#define MOST 64			/* times it: nothing larger is tried */

static int parse_sizes(struct fit_sizes *s, const char *text, struct err *e)
{
	char *copy = xstrdup(text), *rest = NULL;
	int rc = 0;

	for (char *word = strtok_r(copy, ", ", &rest); rc == 0 && word; word = strtok_r(NULL, ", ", &rest)) {
		uint64_t size;

		if (s->n == GROWTH_SIZES_MAX)
			rc = err_set(e, -EINVAL, "--sizes takes at most %d numbers", GROWTH_SIZES_MAX);
		else if (!str_u64(word, &size) || !size || size > UINT32_MAX)
			rc = err_set(e, -EINVAL, "--sizes takes numbers from 1 on, not '%s'", word);
		else
			s->list[s->n++].size = size;
	}
	free(copy);
	return rc;
}

static int check_sizes(const struct fit_sizes *s, char *const *paths, struct err *e)
{
	size_t n = 0;

	while (paths[n])
		n++;
	if (n != s->n) {
		err_set(e, -EINVAL, "--sizes has %zu number%s, and there %s %zu recording%s", s->n,
			s->n == 1 ? "" : "s", n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
		return err_hint(e, "for example: cuwhy fit --sizes 8,16 out8/ out16/");
	}
	if (n < 2)
		return err_set(e, -EINVAL, "--sizes needs two recordings or more");
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (s->list[i].size == s->list[k].size)
				return err_set(e, -EINVAL, "--sizes has %" PRIu64 " twice", s->list[i].size);
	return 0;
}

static int by_size(const void *x, const void *y)
{
	const struct fit_sized *a = x, *b = y;

	return (a->size > b->size) - (a->size < b->size);
}

/* Ranks of one run are told apart by their GPUs. */
static int by_device(const void *x, const void *y)
{
	const struct replayed *a = x, *b = y;

	return (a->device > b->device) - (a->device < b->device);
}

static int open_one(struct fit_sized *one, const char *path, struct err *e)
{
	int rc = replays_open(&one->all, path, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < one->all.n; i++)
		if (replay_facts(one->all.list[i].replay)->ran_out) {
			err_set(e, -EINVAL,
				"the program ran out of memory in '%s': what it would have needed is not known", path);
			return err_hint(e, "record a smaller size, or a dry run on a larger card: "
					   "cuwhy run --gpu sim:h200,memory=4T --memory-trace ...");
		}
	return 0;
}

/* The n-th process and GPU, in all of the recordings. */
static void compare(struct fit_sizes *s, size_t nth)
{
	struct growth_recording list[GROWTH_SIZES_MAX];

	for (size_t i = 0; i < s->n; i++) {
		const struct replayed *one = &s->list[i].all.list[nth];

		list[i] = (struct growth_recording){(double)s->list[i].size, one->replay, one->trace};
	}
	growth_init(&s->growth[nth], list, s->n);
	s->n_growths = nth + 1;
}

static int compare_all(struct fit_sizes *s, struct err *e)
{
	size_t n = s->list[0].all.n;

	xsort(s->list, s->n, sizeof(*s->list), by_size);
	for (size_t i = 0; i < s->n; i++) {
		const struct replays *all = &s->list[i].all;

		if (all->n != n)
			return err_set(e, -EINVAL,
				       "the recordings differ: %zu and %zu processes with PyTorch's memory on a GPU", n,
				       all->n);
		xsort(all->list, n, sizeof(*all->list), by_device);
	}
	s->most = MOST * s->list[s->n - 1].size;
	s->growth = xcalloc(n + 1, sizeof(*s->growth));
	for (size_t i = 0; i < n; i++)
		compare(s, i);
	return 0;
}

int fit_sizes_open(struct fit_sizes *s, const char *sizes, char *const *paths, struct err *e)
{
	int rc;

	*s = (struct fit_sizes){.n = 0};
	rc = parse_sizes(s, sizes, e);
	if (rc == 0)
		rc = check_sizes(s, paths, e);
	for (size_t i = 0; rc == 0 && i < s->n; i++)
		rc = open_one(&s->list[i], paths[i], e);
	return rc ? rc : compare_all(s, e);
}

static void release_growth(struct fit_sizes *s)
{
	for (size_t i = 0; i < s->n_growths; i++)
		growth_release(&s->growth[i]);
	free(s->growth);
}

void fit_sizes_close(struct fit_sizes *s)
{
	release_growth(s);
	for (size_t i = 0; i < s->n; i++)
		replays_close(&s->list[i].all);
	*s = (struct fit_sizes){.n = 0};
}

/* On that card. The parts are the caller's: free. */
static struct largest parts_on(const struct fit_sizes *s, const struct card_model *card, uint64_t most)
{
	const struct fit_sized *last = &s->list[s->n - 1];
	struct largest l = {.part = xcalloc(s->n_growths + 1, sizeof(*l.part)), .n = s->n_growths, .most = most};

	for (size_t i = 0; i < l.n; i++) {
		l.part[i] = (struct largest_part){&s->growth[i], replay_same(last->all.list[i].replay)};
		what_if_on_card(&l.part[i].q, &last->all.list[i], card);
	}
	return l;
}

static bool is_apart(const struct fit_sizes *s)
{
	unsigned doubts = 0;

	for (size_t i = 0; i < s->n_growths; i++)
		doubts |= s->growth[i].doubts;
	return doubts & 1u << GROWTH_APART;
}

/* Of a batch of 1, libraries may do something else than of a large one: such recordings are left out, the smallest first. */
static int compare_alike(struct fit_sizes *s, const struct fit_sized *list, size_t n)
{
	int rc;

	for (;; n--) {
		*s = (struct fit_sizes){.n = n};
		memcpy(s->list, list, n * sizeof(*list));
		rc = compare_all(s, &(struct err){0});
		if (rc || n <= 2 || !is_apart(s))
			return rc;
		release_growth(s);
		list++;
	}
}

uint64_t fit_sizes_guess(const struct fit_sized *list, size_t n, const struct card_model *card, uint64_t most)
{
	struct fit_sized sorted[GROWTH_SIZES_MAX];
	size_t old = n > GROWTH_SIZES_MAX ? n - GROWTH_SIZES_MAX : 0;
	struct fit_sizes s;
	struct largest l;
	uint64_t guess = 0;

	memcpy(sorted, list + old, (n - old) * sizeof(*list));
	xsort(sorted, n - old, sizeof(*sorted), by_size);
	if (compare_alike(&s, sorted, n - old) == 0) {
		l = parts_on(&s, card, most);
		for (size_t i = 0; i < l.n; i++)
			l.part[i].q.fall_back = true;	/* a dry run confirms it */
		guess = largest_find(&l, 0);
		free(l.part);
	}
	release_growth(&s);
	return guess;
}

void fit_sizes_largest(const struct fit_sizes *s, const struct card_model *card, struct fit_sizes_answer *a)
{
	struct largest l = parts_on(s, card, s->most);

	*a = (struct fit_sizes_answer){.largest = largest_find(&l, 0)};
	a->doubts = l.doubts;
	a->low = !a->largest || largest_fits(&l, a->largest, 1) ? a->largest : largest_find(&l, 1);
	a->high = a->largest == s->most || !largest_fits(&l, a->largest + 1, -1) ? a->largest : largest_find(&l, -1);
	for (size_t i = 0; i < s->n_growths; i++) {
		a->growth_doubts |= s->growth[i].doubts;
		for (size_t k = 0; k < s->n; k++)
			a->doubts |= replay_facts(s->list[k].all.list[i].replay)->doubts;
	}
	if (a->largest > FAR * s->list[s->n - 1].size)
		a->growth_doubts |= 1u << GROWTH_FAR;
	a->exact = !a->doubts && !a->growth_doubts && a->low == a->high;
	free(l.part);
}
