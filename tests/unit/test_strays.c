/* SPDX-License-Identifier: Apache-2.0
 * Faults whose threads are gone from the dump: kernels executed to their end, which of their threads leave memory, and which launch it
 * was.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "assert_make.h"
#include "formats/image.h"
#include "find/fault/culprit.h"
#include "find/fault/sass_run.h"
#include "find/fault/strays.h"
#include "find/fault/address.h"
#include "find/fault/fault.h"
#include "find/fault/late.h"
#include "trace_builder.h"

#define BASE   0x7f1298000000ull
#define PARAMS 0x210
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define TID	0x0000000000007919, 0x000e220000002100	/* S2R R0, SR_TID.X */
#define CTAID	0x0000000000067919, 0x000e240000002500	/* S2R R6, SR_CTAID.X */
#define NUMBER	0x0000000006067a24, 0x001fc800078e0200	/* IMAD R6, R6, c[0x0][0x0], R0 */
#define POINTER	0x0000840000000000 | 0xff027b82, 0x000ea20000000a00	/* LDC.64 R2, the first parameter */
#define WIDE	0x0000000406027825, 0x000fcc00078e0202	/* IMAD.WIDE R2, R6, 0x4, R2 */
#define LIMIT	0x0000860000000000 | 0xff077b82, 0x000e620000000800	/* LDC R7, the second parameter */
#define COMPARE	0x000000070600720c, 0x000fe40003f06270	/* ISETP.GE.AND P0, PT, R6, R7, PT */
#define LEAVE_P0 0x000000000000094d, 0x000fea0003800000	/* @P0 EXIT */
#define LOAD	0x0000000402067981, 0x000ea2000c1e1900	/* LDG.E R6, desc[UR4][R2.64] */
#define STORE	0x0000000502007986, 0x000fe2000c101904	/* STG.E desc[UR4][R2.64], R5 */
#define LEAVE	0x000000000000794d, 0x000fea0003800000	/* EXIT */

/* data[i] = …, for every thread; only below a limit; at an index that is in memory; if what is in memory is below a limit */
static const uint64_t all[] = {TID, CTAID, NUMBER, POINTER, WIDE, STORE, LEAVE};
static const uint64_t bounded[] = {TID, CTAID, NUMBER, LIMIT, COMPARE, LEAVE_P0, POINTER, WIDE, STORE, LEAVE};
static const uint64_t scattered[] = {TID, CTAID, NUMBER, POINTER, WIDE, LOAD, POINTER, WIDE, STORE, LEAVE};
static const uint64_t asked[] = {TID,	 CTAID, NUMBER, POINTER, WIDE,	  LOAD,	   LIMIT, COMPARE,
				 LEAVE_P0, TID,	  CTAID,	NUMBER,	 POINTER, WIDE, STORE, LEAVE};

struct scene_of {
	struct am image;
	struct culprit k;
	uint64_t params[2];
	struct stray_launch launch;
	struct strays found;
	uint64_t end; /* of the memory that begins at BASE */
	unsigned steps;
};

static struct scene_of *scene(const uint64_t *code, size_t bytes, uint32_t blocks, uint32_t threads)
{
	struct scene_of *s = calloc(1, sizeof(*s));
	struct am_plan p = {.code = code, .n_code = bytes / 8};
	static char name[] = "k";

	s->k = (struct culprit){.fault = FAULT_ILLEGAL_ADDRESS,
				.source = CULPRIT_SM,
				.arch = 90,
				.kernel = name,
				.kernel_text = name,
				.pc_known = true, .pc_exact = true, .decoded = true, .space = SASS_GLOBAL};
	s->k.image = am_make(&s->image, &p);
	s->k.pc = AM_CODE + bytes - 2 * SASS_BYTES;
	assert_true(sass_decode((const uint8_t *)code + bytes - 2 * SASS_BYTES, 90, &s->k.insn));
	s->params[0] = BASE;
	s->launch = (struct stray_launch){
		.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .params = {(uint8_t *)s->params, 16}};
	s->steps = STRAYS_STEPS;
	return s;
}

static enum stray where(void *arg, const struct sass_access *a)
{
	const struct scene_of *s = arg;

	assert_true(a->base == BASE);
	return a->address >= BASE && a->address + a->insn.width <= s->end ? STRAY_INSIDE : STRAY_OUTSIDE;
}

static bool find(struct scene_of *s, uint64_t elements)
{
	strays_free(&s->found);
	s->end = BASE + elements * 4;
	return strays_find(&s->found, &s->k, &s->launch, &s->steps, where, s);
}

static void done(struct scene_of *s)
{
	strays_free(&s->found);
	free(s);
}

static void strays__all_threads_beyond_the_end_are_found_in_order(void **state)
{
	struct scene_of *s = scene(all, sizeof(all), 9, 128);

	(void)state;
	assert_true(find(s, 1000));
	assert_int_equal(s->found.best, STRAY_OUTSIDE);
	assert_true(s->found.sure && s->found.complete);
	assert_int_equal(s->found.n_lanes, 9 * 128 - 1000);
	assert_int_equal(s->found.lanes[0].block[0], 7);
	assert_int_equal(s->found.lanes[0].thread[0], 1000 - 7 * 128);
	assert_true(s->found.lanes[0].address == BASE + 4000);
	assert_true(find(s, 9 * 128));
	assert_int_equal(s->found.best, STRAY_INSIDE);
	assert_true(s->found.complete);
	done(s);
}

static void strays__a_thread_that_leaves_in_time_is_innocent(void **state)
{
	struct scene_of *s = scene(bounded, sizeof(bounded), 9, 128);

	(void)state;
	s->params[1] = 1000;
	assert_true(find(s, 1000));
	assert_int_equal(s->found.best, STRAY_INSIDE);
	assert_true(s->found.complete);
	s->params[1] = 1001; /* i <= n */
	assert_true(find(s, 1000));
	assert_int_equal(s->found.n_lanes, 1);
	assert_true(s->found.sure && s->found.complete);
	done(s);
}

static void strays__an_index_in_memory_is_not_guessed(void **state)
{
	struct scene_of *s = scene(scattered, sizeof(scattered), 1, 32);

	(void)state;
	s->k.dump = NULL;
	assert_true(find(s, 4));
	assert_int_equal(s->found.best, STRAY_INSIDE);
	assert_false(s->found.complete);
	/* but the load before it is known, if the dump does not say which instruction it was */
	s->k.pc_exact = false;
	assert_true(find(s, 4));
	assert_int_equal(s->found.n_lanes, 28);
	assert_int_equal(s->found.insn.kind, SASS_LOAD);
	assert_true(s->found.sure);
	done(s);
}

static void strays__an_access_that_depends_on_memory_is_not_sure(void **state)
{
	struct scene_of *s = scene(asked, sizeof(asked), 1, 32);

	(void)state;
	assert_true(find(s, 4));
	assert_int_equal(s->found.best, STRAY_OUTSIDE);
	assert_int_equal(s->found.n_lanes, 28);
	assert_false(s->found.sure);
	done(s);
}

static void strays__work_is_bounded_and_the_ends_come_first(void **state)
{
	struct scene_of *s = scene(all, sizeof(all), 1u << 20, 1024);

	(void)state;
	assert_true(find(s, (1ull << 30) - 3));
	assert_int_equal(s->found.n_lanes, 3);
	assert_false(s->found.complete);
	assert_true(s->found.sure);
	assert_true(s->steps < 100);
	assert_int_equal(s->found.lanes[2].block[0], (1u << 20) - 1);
	assert_int_equal(s->found.lanes[2].thread[0], 1023);
	done(s);
}

static void strays__what_cannot_be_executed_is_refused(void **state)
{
	struct scene_of *s = scene(all, sizeof(all), 1, 32);

	(void)state;
	s->k.arch = 120;
	assert_false(find(s, 4));
	s->k.arch = 90;
	s->launch.grid[1] = 0;
	assert_false(find(s, 4));
	s->launch.grid[1] = s->launch.grid[2] = s->launch.grid[0] = ~0u;
	assert_false(find(s, 4));
	s->launch.grid[1] = s->launch.grid[2] = s->launch.grid[0] = 1;
	s->k.image = (struct bytes){NULL, 0};
	assert_false(find(s, 4));
	done(s);
}

/* Without its arguments nothing is known. */
static void strays__arguments_that_were_not_recorded_are_not_known(void **state)
{
	struct scene_of *s = scene(all, sizeof(all), 1, 32);

	(void)state;
	s->launch.params.len = 4;
	assert_true(find(s, 4));
	assert_int_equal(s->found.best, STRAY_INSIDE);
	assert_false(s->found.complete);
	done(s);
}

static void culprit__gets_the_threads_that_the_dump_no_longer_has(void **state)
{
	struct scene_of *s = scene(all, sizeof(all), 9, 128);
	struct culprit *c;

	(void)state;
	assert_true(find(s, 1000));
	c = culprit_with_strays(&s->k, &s->launch, &s->found);
	assert_true(c->address_known && c->address_computed && c->grid_known);
	assert_int_equal(c->n_lanes, 152);
	assert_int_equal(c->grid[0], 9);
	assert_int_equal(c->origin, 1);
	assert_string_equal(c->kernel, "k");
	culprit_free(c);
	done(s);
}

#define UNWRAP(...)	{__VA_ARGS__}

static const struct row {
	unsigned arch;
	uint64_t load, address;
	uint32_t tid[2], ctaid[2], ntid, nctaid;
	uint64_t params[7];
	const uint64_t *code;
	size_t n;
} rows[] = {
#define EVAL(arch, load, address, tx, ty, bx, by, nt, nb, params, ...)                                              \
	{arch, load, address, {tx, ty}, {bx, by}, nt, nb, UNWRAP params, (const uint64_t[]){__VA_ARGS__},           \
	 sizeof((const uint64_t[]){__VA_ARGS__}) / 8},
#include "tests/dump/eval_table.def"
};

struct seen {
	uint64_t pc, address;
	bool there, known, differs;
};

static void see(void *arg, const struct sass_access *a)
{
	struct seen *s = arg;

	if (a->pc != s->pc)
		return;
	s->there = true;
	s->known = s->known || a->known;
	s->differs = s->differs || (a->known && a->address != s->address);
}

static void runner__kernels_of_every_architecture_access_what_they_must(void **state)
{
	struct am *m = malloc(sizeof(*m));
	size_t known = 0, tried = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *r = &rows[i];
		struct am_plan p = {.code = r->code, .n_code = r->n};
		struct sass_thread t = {.image = am_make(m, &p), .arch = r->arch, .entry = AM_CODE,
					.params = {(const uint8_t *)r->params, 52},
					.params_offset = r->arch < 90 ? 0x160 : r->arch < 100 ? 0x210 : 0x380,
					.block_dim = {r->ntid, 1, 1}, .grid_dim = {r->nctaid, 1, 1}};
		struct seen s = {.pc = AM_CODE + r->load, .address = r->address};
		uint32_t block[3] = {r->ctaid[0], r->ctaid[1]}, thread[3] = {r->tid[0], r->tid[1]};
		struct sass_runner *runner = sass_runner_open(&t);
		unsigned used;

		if (!runner) {
			assert_true(r->arch >= 120);
			continue;
		}
		tried++;
		sass_runner_trace(runner, block, thread, 5000, see, &s, &used);
		assert_false(s.differs);
		known += s.known;
		sass_runner_close(runner);
	}
	assert_true(known * 10 >= tried * 9);
	free(m);
}

/* Threads that are still in the dump: executed, they access what their registers say. */
static void try_dump(const char *path, size_t *agree, size_t *unknown)
{
	struct dump *d = dump_open(path, NULL);
	struct culprit *c = culprit_find(d);
	struct sass_thread t = {.image = c->image, .arch = c->arch, .entry = c->entry, .params = c->params,
				.params_offset = c->params_offset};
	struct sass_runner *r = NULL;
	struct image_function f;
	uint32_t offset;
	unsigned used;

	memcpy(t.block_dim, c->block, sizeof(t.block_dim));
	memcpy(t.grid_dim, c->grid, sizeof(t.grid_dim));
	if (c->grid_known && c->decoded && c->address_known && !c->address_doubtful && c->space == SASS_GLOBAL)
		r = sass_runner_open(&t);
	for (size_t i = 0; r && i < c->n_kept && i < 64; i++) {
		struct seen s = {.pc = c->pc, .address = c->lanes[i].address};

		if (!c->lanes[i].address_known)
			continue;
		sass_runner_trace(r, c->lanes[i].block, c->lanes[i].thread, 20000, see, &s, &used);
		assert_false(s.differs);
		*agree += s.known;
		*unknown += !s.known;
	}
	if (r && image_kernel(c->image, c->pc, &f)) {
		assert_true(f.start == c->entry);
		if (image_params_offset(c->image, f.name, &offset))
			assert_int_equal(offset, c->params_offset);
	}
	sass_runner_close(r);
	/* all these kernels access what their first parameter points to */
	if (r && c->fault == FAULT_ILLEGAL_ADDRESS)
		assert_true(c->values.pointer_known && c->values.pointer == 0);
	culprit_free(c);
	dump_free(d);
}

static void runner__real_threads_access_what_their_registers_say(void **state)
{
	static const char folder[] = "tests/dump/real";
	DIR *dir = opendir(folder);
	size_t agree = 0, unknown = 0;
	struct dirent *e;
	char path[512];

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		if (!strstr(e->d_name, ".cudacore"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		try_dump(path, &agree, &unknown);
	}
	closedir(dir);
	print_message("%zu threads agree, %zu are not known\n", agree, unknown);
	assert_true(agree >= 100);
}

#define SLOTS 8

struct stage {
	struct scene_of *s;
	struct tb b;
	struct cw_allocation *blocks, *driver;
	struct cw_ring *freed;
	uint32_t func;
	struct trace *trace;
	struct cw_failure noticed;
	struct fault_launch m;
	struct culprit *late;
};

static void *chunk(struct stage *s, uint32_t kind, size_t size)
{
	return s->b.data + tb_chunk(&s->b, kind, size);
}

static void begin(struct stage *s, const uint64_t *code, size_t bytes, bool guard)
{
	*s = (struct stage){.s = scene(code, bytes, 1, 1)};
	tb_init(&s->b);
	s->blocks = chunk(s, CW_CHUNK_BLOCKS, SLOTS * sizeof(*s->blocks));
	s->driver = chunk(s, CW_CHUNK_ALLOCATIONS, SLOTS * sizeof(*s->driver));
	s->freed = chunk(s, CW_CHUNK_FREED, sizeof(*s->freed) + SLOTS * sizeof(struct cw_freed));
	*s->freed = (struct cw_ring){.slot_size = sizeof(struct cw_freed), .n_slots = SLOTS};
	if (guard)
		chunk(s, CW_CHUNK_GUARD, sizeof(struct cw_guard));
	s->func = tb_function(&s->b, "k");
}

static uint32_t at_line(struct stage *s, unsigned line)
{
	char frame[32];

	snprintf(frame, sizeof(frame), "train.py:%u:step", line);
	return tb_stack(&s->b, frame, NULL);
}

static void block(struct stage *s, uint64_t addr, uint64_t size, unsigned line)
{
	struct cw_allocation *a = s->blocks;

	while (a->addr)
		a++;
	*a = (struct cw_allocation){
		.addr = addr, .size = size, .ticks = s->b.ticks += 100, .kind = CW_MEM_TORCH, .stack = at_line(s, line)};
}

static void allocation(struct stage *s, uint64_t addr, uint64_t size, unsigned line)
{
	*s->driver = (struct cw_allocation){
		.addr = addr, .size = size, .ticks = s->b.ticks += 100, .kind = CW_MEM_DEVICE, .stack = at_line(s, line)};
}

static void freed(struct stage *s, uint64_t addr, uint64_t size, unsigned made, unsigned line)
{
	struct cw_freed *f = (struct cw_freed *)(s->freed + 1) + s->freed->head;

	*f = (struct cw_freed){ .seq = ++s->freed->head, .addr = addr, .size = size, .made_ticks = 10, .ticks = s->b.ticks += 100,
			       .kind = CW_MEM_TORCH,
			       .stack = at_line(s, made),
			       .free_stack = at_line(s, line)};
}

static struct cw_launch *launch(struct stage *s, uint64_t pointer, uint64_t limit, uint32_t threads, unsigned line)
{
	struct cw_launch *l = tb_launch(&s->b, 1, at_line(s, line));

	l->func = s->func;
	l->block[0] = threads;
	l->n_param = 16;
	l->flags = CW_LAUNCH_ON(0);
	memcpy(l->params, &pointer, 8);
	memcpy(l->params + 8, &limit, 8);
	return l;
}

static const struct address *judge(struct stage *s, struct address *a)
{
	s->noticed = *tb_fail(&s->b, CW_SRC_DRIVER, 700, at_line(s, 99));
	s->trace = tb_trace(&s->b);
	fault_find_launch(&s->m, s->trace, &s->s->k, &s->noticed);
	s->late = late_find(s->trace, &s->s->k, &s->noticed, &s->m);
	address_find(a, s->trace, s->late ? s->late : &s->s->k, &s->noticed, &s->m);
	return a;
}

static void end(struct stage *s)
{
	culprit_free(s->late);
	trace_free(s->trace);
	done(s->s);
}

/* The end of a guarded block is the end of its page. */
#define GUARDED(size) (BASE - (size))

static void late__one_element_past_a_guarded_block_is_proven(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	block(&s, GUARDED(4000), 4000, 10);
	block(&s, BASE + (8 << 20), 4000, 11);
	launch(&s, GUARDED(4000), 0, 1001, 20);
	judge(&s, &a);
	assert_non_null(s.late);
	assert_false(s.late->address_perhaps);
	assert_int_equal(s.late->n_lanes, 1);
	assert_string_equal(a.in, "near");
	assert_true(a.past && a.distance == 0 && a.traced);
	assert_int_equal(a.block.made.line, 10);
	assert_int_equal(s.m.n, 1);
	assert_int_equal(s.m.at[0].where.line, 20);
	end(&s);
}

static void late__what_was_freed_is_named_with_both_lines(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	launch(&s, GUARDED(4000), 0, 32, 19); /* as long as it was there */
	freed(&s, GUARDED(4000), 4000, 10, 12);
	launch(&s, GUARDED(4000), 0, 32, 20);
	judge(&s, &a);
	assert_non_null(s.late);
	assert_string_equal(a.in, "freed");
	assert_int_equal(a.block.made.line, 10);
	assert_int_equal(a.block.freed.line, 12);
	assert_int_equal(s.m.n, 1);
	assert_int_equal(s.m.at[0].where.line, 20);
	end(&s);
}

/* Of several launches, the one that leaves its memory; in a stream the first that does. */
static void late__the_launch_that_leaves_its_memory_is_the_one(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, bounded, sizeof(bounded), true);
	block(&s, GUARDED(4000), 4000, 10);
	launch(&s, GUARDED(4000), 1000, 1024, 20);
	launch(&s, GUARDED(4000), 1001, 1024, 21);
	launch(&s, GUARDED(4000), 1002, 1024, 22);
	launch(&s, GUARDED(4000), 999, 1024, 23);
	judge(&s, &a);
	assert_non_null(s.late);
	assert_false(s.late->address_perhaps);
	assert_int_equal(s.m.n, 1);
	assert_int_equal(s.m.at[0].where.line, 21);
	assert_string_equal(a.in, "near");
	end(&s);
}

static void late__two_streams_leave_two_lines(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	block(&s, GUARDED(4000), 4000, 10);
	launch(&s, GUARDED(4000), 0, 1024, 20);
	launch(&s, GUARDED(4000), 0, 1024, 21)->stream = 7;
	judge(&s, &a);
	assert_non_null(s.late);
	assert_int_equal(s.m.n, 2);
	end(&s);
}

/* Another line whose launch cannot be computed may have done the same. */
static void late__an_unknown_launch_beside_it_leaves_a_doubt(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	block(&s, GUARDED(4000), 4000, 10);
	launch(&s, GUARDED(4000), 0, 1024, 20);
	launch(&s, GUARDED(4000), 0, 1024, 21)->n_param = 0;
	judge(&s, &a);
	assert_non_null(s.late);
	assert_true(s.late->address_perhaps);
	assert_int_equal(s.m.n, 1);
	assert_int_equal(s.m.at[0].where.line, 20);
	end(&s);
}

/* Without guard mode, pages that nothing is in are proof only if no other thread can have done it. */
static void late__outside_guard_mode_every_thread_must_be_known(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), false);
	allocation(&s, BASE, 2 << 20, 10);
	launch(&s, BASE, 0, 1024, 20)->grid[0] = 513;
	judge(&s, &a);
	assert_non_null(s.late);
	assert_true(s.late->address_perhaps); /* 525,312 threads are too many */
	assert_string_equal(a.in, "near");
	end(&s);
	begin(&s, all, sizeof(all), false);
	allocation(&s, BASE, 2 << 20, 10);
	launch(&s, BASE + (2 << 20) - 4, 0, 2, 20);
	judge(&s, &a);
	assert_non_null(s.late);
	assert_false(s.late->address_perhaps);
	assert_int_equal(a.segment.made.line, 10);
	end(&s);
}

/* It may be mapped: what it begins in is, and pages are large. */
static void late__the_rest_of_a_page_is_no_proof(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), false);
	allocation(&s, BASE, 4096, 10);
	launch(&s, BASE, 0, 1, 19)->grid[0] = 1025;
	judge(&s, &a);
	assert_null(s.late);
	assert_string_equal(a.in, "");
	end(&s);
}

/* Where nothing can be computed, guard mode still knows what the arguments point to. */
static void late__arguments_alone_name_what_was_freed(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	s.s->k.arch = 120;
	block(&s, BASE + (64 << 20) - 4000, 4000, 9);
	freed(&s, GUARDED(4000), 4000, 10, 12);
	launch(&s, GUARDED(4000), 0, 32, 20);
	launch(&s, BASE + (64 << 20) - 4000, 0, 32, 21);
	judge(&s, &a);
	assert_null(s.late);
	assert_string_equal(a.in, "freed");
	assert_int_equal(a.block.freed.line, 12);
	assert_int_equal(s.m.n, 1);
	assert_int_equal(s.m.at[0].where.line, 20);
	end(&s);
}

static void late__the_only_block_that_was_passed_is_named(void **state)
{
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	s.s->k.arch = 120;
	block(&s, GUARDED(4000), 4000, 10);
	launch(&s, GUARDED(4000), 0, 32, 20);
	judge(&s, &a);
	assert_string_equal(a.in, "passed");
	assert_int_equal(a.block.made.line, 10);
	end(&s);
	begin(&s, all, sizeof(all), true);
	s.s->k.arch = 120;
	block(&s, GUARDED(4000), 4000, 10);
	block(&s, BASE + (64 << 20) - 4000, 4000, 11);
	launch(&s, GUARDED(4000), BASE + (64 << 20) - 4000, 32, 20);
	judge(&s, &a);
	assert_string_equal(a.in, "");
	end(&s);
}

/* The instruction is in a function that the kernel calls: the launches of all kernels of that module are tried. */
static void late__a_function_of_another_name_leads_to_its_kernel(void **state)
{
	static char name[] = "called";
	struct stage s;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	s.s->k.kernel = s.s->k.kernel_text = name;
	block(&s, GUARDED(4000), 4000, 10);
	launch(&s, GUARDED(4000), 0, 1001, 20);
	launch(&s, GUARDED(4000), 0, 1001, 21)->func = tb_function(&s.b, "elsewhere");
	judge(&s, &a);
	assert_non_null(s.late);
	assert_string_equal(s.late->kernel, "k");
	assert_string_equal(a.in, "near");
	assert_int_equal(s.m.n, 1);
	assert_int_equal(s.m.at[0].where.line, 20);
	end(&s);
}

/* A graph's kernel was launched when it was captured. What was freed since may have been gone when the graph ran. */
static void late__what_a_graph_uses_may_be_freed_before_it_runs(void **state)
{
	struct stage s;
	struct cw_launch *l;
	struct address a;

	(void)state;
	begin(&s, all, sizeof(all), true);
	l = launch(&s, GUARDED(4000), 0, 32, 20);
	l->flags |= CW_LAUNCH_CAPTURED;
	l->result = 1;
	freed(&s, GUARDED(4000), 4000, 10, 12);
	l = launch(&s, 0, 0, 1, 30);
	l->flags |= CW_LAUNCH_GRAPH;
	l->func = 0;
	judge(&s, &a);
	assert_non_null(s.late);
	assert_true(s.late->address_perhaps);
	assert_string_equal(a.in, "freed");
	assert_int_equal(s.m.at[0].where.line, 20);
	assert_int_equal(s.m.replay.line, 30);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strays__all_threads_beyond_the_end_are_found_in_order),
		cmocka_unit_test(strays__a_thread_that_leaves_in_time_is_innocent),
		cmocka_unit_test(strays__an_index_in_memory_is_not_guessed),
		cmocka_unit_test(strays__an_access_that_depends_on_memory_is_not_sure),
		cmocka_unit_test(strays__work_is_bounded_and_the_ends_come_first),
		cmocka_unit_test(strays__what_cannot_be_executed_is_refused),
		cmocka_unit_test(strays__arguments_that_were_not_recorded_are_not_known),
		cmocka_unit_test(culprit__gets_the_threads_that_the_dump_no_longer_has),
		cmocka_unit_test(runner__kernels_of_every_architecture_access_what_they_must),
		cmocka_unit_test(runner__real_threads_access_what_their_registers_say),
		cmocka_unit_test(late__one_element_past_a_guarded_block_is_proven),
		cmocka_unit_test(late__what_was_freed_is_named_with_both_lines),
		cmocka_unit_test(late__the_launch_that_leaves_its_memory_is_the_one),
		cmocka_unit_test(late__two_streams_leave_two_lines),
		cmocka_unit_test(late__an_unknown_launch_beside_it_leaves_a_doubt),
		cmocka_unit_test(late__outside_guard_mode_every_thread_must_be_known),
		cmocka_unit_test(late__the_rest_of_a_page_is_no_proof),
		cmocka_unit_test(late__arguments_alone_name_what_was_freed),
		cmocka_unit_test(late__the_only_block_that_was_passed_is_named),
		cmocka_unit_test(late__a_function_of_another_name_leads_to_its_kernel),
		cmocka_unit_test(late__what_a_graph_uses_may_be_freed_before_it_runs),
	};

	return cmocka_run_group_tests_name("strays", tests, NULL, NULL);
}
