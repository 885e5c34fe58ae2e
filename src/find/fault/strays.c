/* SPDX-License-Identifier: Apache-2.0
 * Executes the threads of a launch and keeps those that leave the memory that is mapped (see strays.h).
 */
#include "find/fault/strays.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/demangle.h"
#include "formats/image.h"
#include "find/fault/sass_line.h"

#define STEPS_THREAD 20000u /* of one thread: a loop over memory that is longer says nothing new */
#define MODULES_MAX  16384  /* as in culprit.c */
#define STEPS_START  32u    /* what beginning a thread costs */

struct chase {
	struct strays *s;
	const struct culprit *k;
	const struct stray_launch *l;
	struct sass_runner *runner;
	unsigned *steps;
	stray_fn *where;
	void *arg;
	uint64_t only;	/* the instruction that counts, 0 = all */
	uint64_t n_blocks, n_threads;
	uint32_t block[3], thread[3];
	bool counted;	/* this thread is among the lanes already */
};

static void keep_lane(struct chase *c, const struct sass_access *a)
{
	struct strays *s = c->s;
	struct culprit_lane *l;

	if (c->counted)
		return;
	c->counted = true;
	if (s->n_lanes++ >= CULPRIT_LANES_MAX)
		return;
	if (!s->lanes)
		s->lanes = xcalloc(CULPRIT_LANES_MAX, sizeof(*s->lanes));
	l = &s->lanes[s->n_kept++];
	*l = (struct culprit_lane){.pc = a->pc, .address = a->address, .address_known = true};
	memcpy(l->block, c->block, sizeof(l->block));
	memcpy(l->thread, c->thread, sizeof(l->thread));
}

/* One that is certain is better than any that are not, one outside of everything better than one that may be. */
static bool is_better(const struct strays *s, enum stray how, bool sure)
{
	return how > s->best || (how == s->best && sure && !s->sure);
}

static void see_access(void *arg, const struct sass_access *a)
{
	struct chase *c = arg;
	struct strays *s = c->s;
	enum stray how;

	if (c->only && a->pc != c->only)
		return;
	if (!a->known) {
		s->complete = false;
		return;
	}
	how = c->where(c->arg, a);
	if (how == STRAY_INSIDE)
		return;
	if (is_better(s, how, a->sure)) {
		s->best = how;
		s->sure = a->sure;
		s->pc = a->pc;
		s->insn = a->insn;
		s->n_lanes = s->n_kept = 0;
		c->counted = false;
	}
	if (how == s->best && a->sure == s->sure && a->pc == s->pc)
		keep_lane(c, a);
}

static void place_of(uint32_t to[3], uint64_t i, const uint32_t dim[3])
{
	to[0] = (uint32_t)(i % dim[0]);
	to[1] = (uint32_t)(i / dim[0] % dim[1]);
	to[2] = (uint32_t)(i / dim[0] / dim[1]);
}

/* False when there is no time left. */
static bool run_one(struct chase *c, uint64_t block, uint64_t thread)
{
	unsigned used, most;

	if (*c->steps <= STEPS_START) {
		c->s->complete = false;
		return false;
	}
	*c->steps -= STEPS_START;
	most = *c->steps < STEPS_THREAD ? *c->steps : STEPS_THREAD;
	place_of(c->block, block, c->l->grid);
	place_of(c->thread, thread, c->l->block);
	c->counted = false;
	if (sass_runner_trace(c->runner, c->block, c->thread, most, see_access, c, &used) != SASS_END_LEFT)
		c->s->complete = false;
	*c->steps -= used < *c->steps ? used : *c->steps;
	return true;
}

static bool run_block(struct chase *c, uint64_t block)
{
	/* from both ends: who leaves memory is mostly there */
	for (uint64_t i = 0; i < c->n_threads; i++)
		if (!run_one(c, block, i % 2 ? i / 2 : c->n_threads - 1 - i / 2))
			return false;
	return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The last block and the first, then the others, evenly: where time does not suffice for all, any part of the grid has had some. */
static void run_grid(struct chase *c)
{
	uint64_t n = c->n_blocks, stride = n * 5 / 8 + 1, at = 0;

	if (!run_block(c, n - 1) || n == 1 || !run_block(c, 0))
		return;
	while (common_divisor(stride, n) != 1)
		stride++;
	for (uint64_t i = 0; i < n; i++, at = (at + stride) % n)
		if (at && at != n - 1 && !run_block(c, at))
			return;
}

static int by_place(const void *a, const void *b)
{
	const struct culprit_lane *x = a, *y = b;

	for (int i = 2; i >= 0; i--)
		if (x->block[i] != y->block[i])
			return x->block[i] < y->block[i] ? -1 : 1;
	for (int i = 2; i >= 0; i--)
		if (x->thread[i] != y->thread[i])
			return x->thread[i] < y->thread[i] ? -1 : 1;
	return 0;
}

static bool read_memory(void *arg, uint64_t address, void *to, size_t n)
{
	return dump_memory(arg, address, to, n);
}

/* How many there are; 0 when that cannot be: CUDA's limits are far lower. */
static uint64_t product(const uint32_t dim[3])
{
	uint64_t plane = (uint64_t)dim[0] * dim[1];

	return dim[2] && plane > UINT64_MAX / 8 / dim[2] ? 0 : plane * dim[2];
}

/* Where parameters begin in constant bank 0; the code says so itself, except in dumps that we made. */
static uint64_t params_offset(const struct culprit *k, struct bytes image, const char *kernel)
{
	uint32_t offset;

	if (k->grid_known && k->params_offset)
		return k->params_offset;
	if (image_params_offset(image, kernel, &offset))
		return offset;
	return k->arch < 90 ? 0x160 : k->arch < 100 ? 0x210 : 0x380;
}

/* In the module with the instruction; in all of them, if that is not known. */
static bool find_named(struct strays *s, const struct culprit *k, const char *name, struct image_function *f)
{
	struct dump_row row;
	size_t cursor = 0, n = 0;

	s->image = k->image;
	if (k->image.data || !k->dump)
		return k->image.data && image_named(k->image, name, f);
	while (n++ < MODULES_MAX && dump_next(k->dump, DUMP_MODULE, &cursor, &row)) {
		s->image = dump_child_bytes(&row, DUMP_IMAGE);
		if (s->image.data && image_named(s->image, name, f))
			return true;
	}
	return false;
}

static bool find_kernel(struct strays *s, const struct culprit *k, const char *name)
{
	struct image_function f;

	s->image = k->image;
	if (name ? !find_named(s, k, name, &f)
		 : !k->image.data || (k->grid_known ? !image_entry(k->image, k->entry, &f)
						    : !k->pc_known || !image_kernel(k->image, k->pc, &f)))
		return false;
	s->entry = f.start;
	s->params_offset = params_offset(k, s->image, f.name);
	return true;
}

bool strays_find(struct strays *s, const struct culprit *k, const struct stray_launch *l, unsigned *steps,
		 stray_fn *where, void *arg)
{
	struct chase c = {.s = s, .k = k, .l = l, .steps = steps, .where = where, .arg = arg};
	struct sass_thread t = {
		.arch = k->arch, .params = l->params, .memory = k->dump ? read_memory : NULL, .arg = k->dump};

	*s = (struct strays){.complete = true};
	c.n_blocks = product(l->grid);
	c.n_threads = product(l->block);
	if (!c.n_blocks || !c.n_threads || !find_kernel(s, k, l->kernel))
		return false;
	t.image = s->image;
	t.entry = s->entry;
	t.params_offset = s->params_offset;
	memcpy(t.block_dim, l->block, sizeof(t.block_dim));
	memcpy(t.grid_dim, l->grid, sizeof(t.grid_dim));
	c.only = k->pc_exact && k->decoded ? k->pc : 0;
	c.runner = sass_runner_open(&t);
	if (!c.runner)
		return false;
	run_grid(&c);
	sass_runner_close(c.runner);
	xsort(s->lanes, s->n_kept, sizeof(*s->lanes), by_place);
	return true;
}

void strays_free(struct strays *s)
{
	free(s->lanes);
	s->lanes = NULL;
	s->n_kept = s->n_lanes = 0;
}

/* The number in memory that an address was computed from. */
static void find_values(struct culprit *c)
{
	struct sass_thread t = {
		.image = c->image, .arch = c->arch, .entry = c->entry, .params = c->params, .params_offset = c->params_offset,
				.memory = read_memory,
				.arg = c->dump};
	struct values_thread threads[VALUES_MAX];
	size_t n = c->n_kept < VALUES_MAX ? c->n_kept : VALUES_MAX;

	memcpy(t.block_dim, c->block, sizeof(t.block_dim));
	memcpy(t.grid_dim, c->grid, sizeof(t.grid_dim));
	for (size_t i = 0; i < n; i++) {
		memcpy(threads[i].block, c->lanes[i].block, sizeof(threads[i].block));
		memcpy(threads[i].thread, c->lanes[i].thread, sizeof(threads[i].thread));
		threads[i].address = c->lanes[i].address;
	}
	values_find(&c->values, &t, c->pc, true, threads, n);
}

struct culprit *culprit_with_strays(const struct culprit *k, const struct stray_launch *l, struct strays *s)
{
	struct culprit *c = xcalloc(1, sizeof(*c));
	struct sass_line *line;

	*c = *k;
	c->borrows = true;
	c->grid_known = c->address_computed = true;
	c->address_doubtful = c->address_recomputed = c->address_unchecked = false;
	c->lanes = s->lanes;
	c->n_lanes = s->n_lanes;
	c->n_kept = s->n_kept;
	s->lanes = NULL;
	c->entry = s->entry;
	c->params = l->params;
	c->params_offset = s->params_offset;
	memcpy(c->grid, l->grid, sizeof(c->grid));
	memcpy(c->block, l->block, sizeof(c->block));
	c->pc = s->pc;
	c->pc_known = c->pc_exact = c->decoded = true;
	c->kernel_offset = s->pc - s->entry;
	c->insn = s->insn;
	c->space = SASS_GLOBAL;
	c->address_known = true;
	c->address_min = c->address_max = c->lanes[0].address;
	c->image = s->image;
	if (l->kernel) {
		c->kernel = xstrdup(l->kernel);
		c->kernel_text = demangle(l->kernel);
		c->kernel_text = c->kernel_text ? c->kernel_text : xstrdup(l->kernel);
		c->names = true;
	}
	line = sass_line_open(c->image, k->arch, s->pc);
	c->origin = line ? sass_line_origin(line, &c->insn, c->params_offset) : 0;
	sass_line_close(line);
	if (c->dump)
		find_values(c);
	culprit_find_view(c);
	return c;
}
