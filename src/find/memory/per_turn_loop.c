/* SPDX-License-Identifier: Apache-2.0
 * In which turn of which loop a program ran out of memory, and since which one it leaves something behind.
 *
 * Requests come again and again in equal distances (replay_turn.h), but that distance need not be a turn of a Python loop: turns may
 * differ in pairs, or one may hold several equal parts. What is left behind tells: each of its blocks was asked for by one of the
 * requests, in a turn of the loop that works with the model.
 */
#include "find/memory/per_turn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/failure/place.h"
#include "find/memory/loop_path.h"
#include "find/memory/replay_steps.h"
#include "read/recording/trace.h"

/* A block that was left behind. */
struct kept {
	uint64_t addr, size;
	size_t request;			/* so many came before it; 0: it is older than they are */
	struct path path;
};

struct counting {
	const struct per_turn_known *known;
	struct loops loops;
	struct path now;
	bool one_run;			/* of the loop has left all of it: the loops around it have not turned since */
	uint32_t each;			/* turns in a run of the loop, where another one runs it; 0: not known */
	struct kept *kept;
	size_t n;
};

static bool is_left(const struct leftovers *x, size_t block)
{
	return x->known && (x->graphs.bytes > x->tensors.bytes ? x->graphs.gone[block] : x->tensors.gone[block]);
}

static struct path path_from(const struct counting *c, const struct turn *turn, size_t n)
{
	struct path p;

	path_of_turns(&p, c->known->trace, &c->loops, turn, n, c->loops.any_model ? LOOP_AROUND_MODEL : 0);
	return p;
}

/* Of the same loops as the failure; of that, outer ones may not be known. */
static bool is_here(const struct path *p, const struct path *now)
{
	if (!now->n || p->n < now->n)
		return false;
	for (uint32_t i = 1; i <= now->n; i++)
		if (p->step[p->n - i].loop != now->step[now->n - i].loop)
			return false;
	return true;
}

/* The failure is in the newest turn of the outer loops, too. */
static void complete_now(struct counting *c, const struct path *newest)
{
	uint32_t more = newest->n - c->now.n;

	memmove(c->now.step + more, c->now.step, c->now.n * sizeof(c->now.step[0]));
	memcpy(c->now.step, newest->step, more * sizeof(c->now.step[0]));
	c->now.n = newest->n;
}

static int by_addr(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_request(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->request < y->request ? -1 : x->request > y->request;
}

static void find_kept(struct counting *c)
{
	const struct moment *m = c->known->m;
	struct turn turn[CW_LOOP_TURNS];

	struct path newest = {.n = 0};
	uint64_t ticks = 0;
	size_t same = 0;

	c->kept = xcalloc(m->torch.n + 1, sizeof(*c->kept));
	for (size_t i = 0; i < m->torch.n; i++) {
		const struct piece *b = &m->torch.list[i];
		struct kept *k = &c->kept[c->n];

		if (!is_left(c->known->left, i))
			continue;
		*k = (struct kept){.addr = b->addr,
				   .size = b->size,
				   .path = path_from(c, turn, turns_of_piece(c->known->trace, b, turn))};
		if (!is_here(&k->path, &c->now))
			continue;
		newest = !newest.n || b->ticks >= ticks ? k->path : newest;
		ticks = b->ticks >= ticks ? b->ticks : ticks;
		c->n++;
	}
	if (newest.n > c->now.n)
		complete_now(c, &newest);
	for (size_t i = 0; i < c->n; i++)
		if (c->kept[i].path.n == c->now.n && is_here(&c->kept[i].path, &c->now))
			c->kept[same++] = c->kept[i];
	c->n = same;
	xsort(c->kept, c->n, sizeof(*c->kept), by_addr);
}

/* Returns how many requests there are. */
static size_t find_requests(struct counting *c, const struct replay *r)
{
	size_t requests = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct step *s = &r->step[i];
		struct kept key = {.addr = s->addr}, *k;

		if (s->kind != STEP_ALLOC)
			continue;
		requests++;
		k = c->n ? bsearch(&key, c->kept, c->n, sizeof(*c->kept), by_addr) : NULL;
		if (k)
			k->request = requests;
	}
	xsort(c->kept, c->n, sizeof(*c->kept), by_request);
	return requests;
}

static uint32_t last_turn(const struct path *p)
{
	return p->step[p->n - 1].turn;
}

/* The loops around it are in this turn. */
static bool is_run(const struct path *p, const struct path *of, uint32_t earlier)
{
	for (uint32_t i = 0; i + 1 < p->n; i++)
		if (p->step[i].turn + (i + 2 == p->n ? earlier : 0) != of->step[i].turn)
			return false;
	return true;
}

static void find_each(struct counting *c)
{
	c->one_run = c->n > 0;
	for (size_t i = 0; i < c->n; i++)
		c->one_run &= is_run(&c->kept[i].path, &c->now, 0);
	for (size_t i = 0; c->now.n == 2 && i < c->n; i++)
		if (is_run(&c->kept[i].path, &c->now, 1) && last_turn(&c->kept[i].path) > c->each)
			c->each = last_turn(&c->kept[i].path);
}

/* How often the loop had turned, in its last run if that alone has left something; 0: not known. */
static uint64_t count_of(const struct counting *c, const struct path *p)
{
	bool first = true;

	if (c->one_run)
		return last_turn(p);
	for (uint32_t i = 0; i + 1 < p->n; i++)
		first &= p->step[i].turn == 1;
	if (first)
		return last_turn(p);
	return c->each ? (uint64_t)(p->step[0].turn - 1) * c->each + last_turn(p) : 0;
}

/* Its turns for each of `left`, between blocks of one run of the loop. */
static double rate_of(const struct counting *c, const struct turns_left *left, size_t requests)
{
	size_t first = left->turns * left->requests < requests ? requests - left->turns * left->requests : 0;
	double turns = 0, between = 0;

	for (size_t i = 1; i < c->n; i++) {
		const struct kept *a = &c->kept[i - 1], *b = &c->kept[i];

		if (a->request <= first || !is_run(&a->path, &b->path, 0))
			continue;
		turns += (double)last_turn(&b->path) - last_turn(&a->path);
		between += (double)(b->request - a->request);
	}
	if (c->n < 2)		/* what one line makes is larger each time, and replaced */
		return 1;
	return between > 0 && turns > 0 ? turns * (double)left->requests / between : 0;
}

/* Equal distances are off where the blocks at their ends are not of the same line. */
#define RATE_SAME 0.1

static double rounded(double rate)
{
	double one = rate >= 1 ? rate : rate > 0 ? 1 / rate : 0, whole = round(one);

	if (!rate || fabs(one - whole) > RATE_SAME * whole)
		return rate;
	return rate >= 1 ? whole : 1 / whole;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Did the lines that leave something do so before what is known begins, in the history of a snapshot? Then turns were counted from there. */
static bool began_before(const struct counting *c)
{
	const struct moment *m = c->known->m;
	uint64_t *lines = xcalloc(m->torch.n + 1, sizeof(*lines));
	size_t n = 0;
	bool before = false;

	for (size_t i = 0; i < m->torch.n; i++)
		if (is_left(c->known->left, i))
			lines[n++] = lines_hash(c->known->trace, m->torch.list[i].stack);
	xsort(lines, n, sizeof(*lines), by_number);
	for (size_t i = 0; n && i < m->torch.n && !before; i++) {
		uint64_t line = m->torch.list[i].ticks ? 0 : lines_hash(c->known->trace, m->torch.list[i].stack);

		before = line && bsearch(&line, lines, n, sizeof(*lines), by_number);
	}
	free(lines);
	return before;
}

static void name_loop(struct per_turn_loop *l, const struct counting *c, const struct turn *turn, size_t n)
{
	const struct loop_turn *last = &c->now.step[c->now.n - 1];

	for (size_t i = 0; i < n; i++)
		if (turn[i].number == last->loop)
			l->place = turn[i].loop;
}

static uint64_t oldest(const struct counting *c)
{
	uint64_t since = 0;

	for (size_t i = 0; i < c->n; i++) {
		uint64_t count = count_of(c, &c->kept[i].path);

		since = count && (!since || count < since) ? count : since;
	}
	return since;
}

/* How often it turned is known of the outermost loop at least. */
static void count_outermost(struct per_turn_loop *l, struct counting *c)
{
	c->now.n = 1;
	for (size_t i = 0; i < c->n; i++)
		c->kept[i].path.n = 1;
	l->turn = count_of(c, &c->now);
	l->rate = 0;
}

static uint64_t bytes_left(const struct counting *c)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->n; i++)
		bytes += c->kept[i].size;
	return bytes;
}

uint64_t per_turn_count(struct per_turn_loop *l, const struct replay *r, const struct turns_left *left,
			const struct per_turn_known *known, uint64_t *turns)
{
	struct counting c = {.known = known};
	struct turn turn[CW_LOOP_TURNS];
	size_t n = turns_at_failure(known->trace, known->failure, turn), requests;
	uint64_t bytes;

	*l = (struct per_turn_loop){.turn = 0};
	loops_find(&c.loops, known->trace, known->m);
	c.now = path_from(&c, turn, n);
	if (c.now.n) {
		find_kept(&c);
		requests = find_requests(&c, r);
		find_each(&c);
		l->rate = rounded(rate_of(&c, left, requests));
		l->part = began_before(&c);
		l->turn = l->part ? 0 : count_of(&c, &c.now);
		if (!l->part && !l->turn)
			count_outermost(l, &c);
		l->since = l->part ? 0 : oldest(&c);
		name_loop(l, &c, turn, n);
		l->exact = c.now.exact && l->turn == last_turn(&c.now);
	}
	bytes = bytes_left(&c);
	*turns = l->since && l->turn > l->since ? l->turn - l->since : 0;
	free(c.kept);
	free(c.loops.is);
	return bytes;
}
