/* SPDX-License-Identifier: Apache-2.0
 * Addresses computed again from code: the arithmetic itself, kernels of every architecture, what must stay unknown,
 * and real dumps, whose surviving registers show the right answer.
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
#include "base/err.h"
#include "find/fault/culprit.h"
#include "formats/image.h"
#include "find/fault/sass_line.h"
#include "find/fault/sass_math.h"
#include "dump_find.h"

static uint64_t value_of(struct sass_math m, uint64_t a, uint64_t b, uint64_t c, unsigned carry, unsigned *over)
{
	struct sass_values in = {a, b, c, carry};
	uint64_t value = 0;

	assert_true(sass_compute(&m, &in, &value, over));
	return value;
}

static void compute__sums_carry_and_borrow(void **state)
{
	struct sass_math sum = {.op = SASS_ADD}, extended = {.op = SASS_ADD, .extended = true};
	struct sass_math minus = {.op = SASS_ADD, .b.minus = true};
	struct sass_math wide = {.op = SASS_ADD, .ab_64 = true, .b.minus = true};
	unsigned over;

	(void)state;
	assert_int_equal(value_of(sum, 0xffffffff, 1, 0, 0, &over), 0);
	assert_int_equal(over, 1);
	assert_int_equal(value_of(sum, 0xffffffff, 0xffffffff, 0xffffffff, 0, &over), 0xfffffffd);
	assert_int_equal(over, 2);
	assert_int_equal(value_of(extended, 0xffffffff, 0, 0, 1, &over), 0);
	assert_int_equal(over, 1);
	/* no borrow is a carry, even when zero is subtracted */
	assert_int_equal(value_of(minus, 5, 3, 0, 0, &over), 2);
	assert_int_equal(over, 1);
	assert_int_equal(value_of(minus, 5, 0, 0, 0, &over), 5);
	assert_int_equal(over, 1);
	assert_int_equal(value_of(minus, 3, 5, 0, 0, &over), 0xfffffffe);
	assert_int_equal(over, 0);
	/* the upper half: inverted, and the carry of the lower one */
	extended.b.minus = true;
	assert_int_equal(value_of(extended, 7, 2, 0, 1, &over), 5);
	assert_int_equal(value_of(extended, 7, 2, 0, 0, &over), 4);
	assert_int_equal(value_of(wide, 0x100000000, 1, 0, 0, &over), 0xffffffff);
}

static void compute__products_keep_their_sign(void **state)
{
	struct sass_math mad = {.op = SASS_MAD}, wide = {.op = SASS_MAD, .c_64 = true};
	struct sass_math high = {.op = SASS_MAD, .high = true};
	unsigned over;

	(void)state;
	assert_int_equal(value_of(mad, 0x10000, 0x10001, 5, 0, &over), 0x10005);
	assert_true(value_of(wide, 0xffffffff, 4, 0x7f0000000000, 0, &over) == 0x7f0000000000 + 0x3fffffffc);
	wide.is_signed = true;
	assert_true(value_of(wide, 0xffffffff, 4, 0x7f0000000000, 0, &over) == 0x7f0000000000 - 4);
	wide.is_signed = false;
	assert_true(value_of(wide, 1, 1, ~0ull, 0, &over) == 0);
	assert_int_equal(over, 1);
	assert_true(value_of(wide, 0, 0, ~0ull, 1, &over) == 0);
	assert_int_equal(over, 1);
	assert_int_equal(value_of(high, 0xffffffff, 0xffffffff, 0, 0, &over), 0xfffffffe);
	high.is_signed = true;
	assert_int_equal(value_of(high, 0xffffffff, 5, 0, 0, &over), 0xffffffff);
	mad.c.minus = true;
	assert_int_equal(value_of(mad, 3, 4, 5, 0, &over), 7);
}

static void compute__scaled_indices_reach_the_upper_half(void **state)
{
	struct sass_math lea = {.op = SASS_LEA, .shift = 2}, high = {.op = SASS_LEA, .shift = 2, .high = true};
	unsigned over;

	(void)state;
	assert_int_equal(value_of(lea, 0xc0000001, 0xfffffffc, 0, 0, &over), 0);
	assert_int_equal(over, 1);
	assert_int_equal(value_of(high, 0xc0000001, 0x7f00, 1, 1, &over), 0x7f00 + 7 + 1);
	high.is_signed = true;
	assert_int_equal(value_of(high, 0xffffffff, 0x7f00, 0, 0, &over), 0x7eff);
	assert_int_equal(over, 1);
	high.is_signed = false;
	high.shift = 0;
	assert_int_equal(value_of(high, 0xffffffff, 1, 2, 0, &over), 3);
}

static void compute__shifts_end_at_their_width(void **state)
{
	struct sass_math left = {.op = SASS_SHIFT}, right = {.op = SASS_SHIFT, .right = true, .high = true};
	struct sass_math wide = {.op = SASS_SHIFT, .right = true, .shift_64 = true, .is_signed = true};
	struct sass_values in = {.a = 1, .b = 32, .c = 1};
	unsigned over;
	uint64_t v;

	(void)state;
	assert_int_equal(value_of(left, 0x80000001, 1, 0, 0, &over), 2);
	assert_int_equal(value_of(left, 1, 32, 0, 0, &over), 0);
	left.wrap = true;
	assert_int_equal(value_of(left, 1, 33, 0, 0, &over), 2);
	assert_int_equal(value_of(right, 0, 4, 0x80000000, 0, &over), 0x08000000);
	assert_int_equal(value_of(right, 0, 40, 0x80000000, 0, &over), 0);
	right.is_signed = true;
	assert_int_equal(value_of(right, 0, 4, 0x80000000, 0, &over), 0xf8000000);
	assert_int_equal(value_of(right, 0, 40, 0x80000000, 0, &over), 0xffffffff);
	assert_int_equal(value_of(wide, 0, 36, 0x80000000, 0, &over), 0xf8000000);
	assert_int_equal(value_of(wide, 0, 70, 0x80000000, 0, &over), 0xffffffff);
	/* what the shift brings in from beyond the other half is unknown */
	assert_false(sass_compute(&right, &in, &v, &over));
}

static void compute__logic_follows_its_table(void **state)
{
	struct sass_math m = {.op = SASS_LOGIC, .table = 0xc0};
	unsigned over;

	(void)state;
	assert_int_equal(value_of(m, 0xff00ff, 0x0ffff0, 0x123456, 0, &over), 0xff00ff & 0x0ffff0);
	m.table = 0xf8;	/* a | b & c */
	assert_int_equal(value_of(m, 0x100, 0xff, 0x0f, 0, &over), 0x10f);
	m.table = 0x96;
	assert_int_equal(value_of(m, 1, 2, 7, 0, &over), 4);
	m.table = 0x0f;	/* ~a */
	assert_int_equal(value_of(m, 0xffff0000, 1, 1, 0, &over), 0xffff);
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

static struct sass_thread lane_of(const struct row *r)
{
	return (struct sass_thread){
		.arch = r->arch, .stopped = AM_CODE + r->load + SASS_BYTES, .params = {(const uint8_t *)r->params, 52},
		.params_offset = r->arch < 90 ? 0x160 : r->arch < 100 ? 0x210 : 0x380,
		.thread = {r->tid[0], r->tid[1]}, .block = {r->ctaid[0], r->ctaid[1]},
		.block_dim = {r->ntid, 1, 1}, .grid_dim = {r->nctaid, 1, 1},
	};
}

static enum sass_answer answer_of(struct am *m, const struct row *r, const struct sass_thread *lane, uint64_t *address)
{
	struct am_plan p = {.code = r->code, .n_code = r->n};
	struct sass_line *e = sass_line_open(am_make(m, &p), r->arch, AM_CODE + r->load);
	enum sass_answer a = SASS_UNKNOWN;
	struct sass s;

	assert_true(sass_decode((const uint8_t *)r->code + r->load, r->arch, &s));
	if (e)
		a = sass_line_address(e, &s, lane, address);
	sass_line_close(e);
	return a;
}

static void eval__kernels_of_every_architecture_give_the_address_from_code_alone(void **state)
{
	struct am *m = malloc(sizeof(*m));
	uint64_t address;
	size_t i;

	(void)state;
	assert_true(sizeof(rows) / sizeof(rows[0]) >= 20);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sass_thread lane = lane_of(&rows[i]);

		assert_int_equal(answer_of(m, &rows[i], &lane, &address), SASS_COMPUTED);
		assert_true(address == rows[i].address);
		/* without the parameters nothing is known */
		lane.params.len = 0;
		assert_int_equal(answer_of(m, &rows[i], &lane, &address), SASS_UNKNOWN);
	}
	free(m);
}

/* In these kernels the load goes through the first parameter and the store after it through the second; all others
 * are numbers. */
static void eval__the_pointer_is_told_from_the_others(void **state)
{
	struct am *m = malloc(sizeof(*m));
	size_t stores = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct am_plan p = {.code = r->code, .n_code = r->n};
		struct bytes image = am_make(m, &p);

		for (uint64_t at = r->load; at / 8 < r->n; at += SASS_BYTES) {
			struct sass_line *e;
			struct sass s;

			if (!sass_decode((const uint8_t *)r->code + at, r->arch, &s) ||
			    (at > r->load && s.kind != SASS_STORE))
				continue;
			e = sass_line_open(image, r->arch, AM_CODE + at);
			assert_non_null(e);
			assert_int_equal(sass_line_origin(e, &s, lane_of(r).params_offset) & 3, at == r->load ? 1 : 2);
			assert_int_equal(sass_line_origin(e, &s, 0), 0);
			sass_line_close(e);
			stores += at > r->load;
		}
	}
	assert_true(stores >= sizeof(rows) / sizeof(rows[0]));
	free(m);
}

static void eval__any_changed_bit_is_survived(void **state)
{
	struct am *m = malloc(sizeof(*m));
	uint64_t address, *code;
	size_t i, b;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i += 3) {
		struct sass_thread lane = lane_of(&rows[i]);
		struct row r = rows[i];

		code = malloc(r.n * 8);
		r.code = code;
		for (b = 0; b < r.load * 8; b += 7) {
			memcpy(code, rows[i].code, r.n * 8);
			code[b / 64] ^= 1ull << b % 64;
			answer_of(m, &r, &lane, &address);
		}
		free(code);
	}
	free(m);
}

/* A chain in which every register is the sum of the one before, twice: 2^n ways. */
static void eval__hostile_code_ends(void **state)
{
	static uint64_t code[2 * 600];
	struct row r = {.arch = 90, .load = 598 * SASS_BYTES, .code = code, .n = 2 * 600};
	struct am *m = malloc(sizeof(*m));
	struct sass_thread lane;
	uint64_t address;
	size_t i;

	(void)state;
	for (i = 0; i < 598; i++) {	/* IADD3 R2, R3, R3, RZ and IADD3 R3, R2, R2, RZ */
		code[2 * i] = i % 2 ? 0x0000000303027210 : 0x0000000202037210;
		code[2 * i + 1] = 0x003fde0007ffe0ff;
	}
	code[2 * 598] = 0x0000000402037981;	/* LDG.E R3, desc[UR4][R2.64] */
	code[2 * 598 + 1] = 0x000ea2000c1e1900;
	code[2 * 599] = 0x000000000000794d;
	code[2 * 599 + 1] = 0x000fea0003800000;
	lane = lane_of(&r);
	for (i = 0; i < 1000; i++)
		assert_int_equal(answer_of(m, &r, &lane, &address), SASS_UNKNOWN);
	free(m);
}

#define PARAM		0x7f1000000000ull				/* the first parameter of made dumps */

/* Four threads that load at 0x30 and have stopped two instructions later. */
static struct dump_plan plan_of(const uint64_t load[2])
{
	static const uint64_t before[3][2] = {MAKE_LDC_R2, MAKE_S2R_R5, MAKE_WIDE_R2},
			      behind[2][2] = {MAKE_MOV_R9, MAKE_EXIT};
	struct dump_plan p = {
		.lane_exception = 14, .lanes_hit = 15, .sm_exception = 14, .error_pc = 0x30, .lane_pc = 0x50};
	uint32_t i;

	memcpy(p.code, before, sizeof(before));
	memcpy(p.code[3], load, 16);
	memcpy(p.code[4], behind, sizeof(behind));
	for (i = 0; i < 4; i++) {
		p.reg[i][2] = (uint32_t)PARAM + i * 4;
		p.reg[i][5] = i;
	}
	return p;
}

static void culprit__a_destroyed_half_of_an_address_is_computed_again(void **state)
{
	static const uint64_t load[2] = MAKE_LDG_OWN;
	struct dump_plan p = plan_of(load);
	struct found f = dump_find(&p);
	uint32_t i;

	(void)state;
	assert_int_equal(f.c->n_kept, 4);
	for (i = 0; i < 4; i++)
		assert_true(f.c->lanes[i].address_known && f.c->lanes[i].address == PARAM + i * 4);
	assert_true(f.c->address_recomputed && !f.c->address_unchecked && !f.c->address_doubtful);
	dump_found(&f);
}

static void culprit__a_half_that_disagrees_makes_all_doubtful(void **state)
{
	static const uint64_t load[2] = MAKE_LDG_OWN;
	struct dump_plan p = plan_of(load);
	struct found f;

	(void)state;
	p.reg[2][2] += 4;
	f = dump_find(&p);
	assert_true(f.c->address_doubtful && !f.c->address_recomputed);
	dump_found(&f);
}

static void culprit__a_destroyed_pair_is_checked_by_what_it_was_made_of(void **state)
{
	static const uint64_t load[2] = MAKE_LDG_64_OWN;
	struct dump_plan p = plan_of(load);
	struct found f;
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		p.reg[i][2] = 0;
	f = dump_find(&p);
	assert_true(f.c->address_recomputed && !f.c->address_unchecked);
	assert_true(f.c->lanes[3].address == PARAM + 12);
	dump_found(&f);
	/* R5 is not the thread's number: some assumption is wrong */
	p.reg[3][5] = 7;
	f = dump_find(&p);
	assert_true(f.c->address_doubtful);
	dump_found(&f);
	/* no register survived to compare with */
	memcpy(p.code[0], (uint64_t[3][2]){MAKE_MOV_R9, MAKE_MOV_R9, MAKE_LDC_R2}, 48);
	f = dump_find(&p);
	assert_true(f.c->address_recomputed && f.c->address_unchecked);
	assert_true(f.c->lanes[3].address == PARAM);
	dump_found(&f);
}

static void culprit__guards_and_branches_make_it_unknown(void **state)
{
	static const uint64_t load[2] = MAKE_LDG_OWN, guarded[2] = MAKE_WIDE_R2_P0;
	/* BRA from after EXIT to the load, and to the two instructions before it */
	static const uint64_t back[3] = {0xfffffffc00f07947, 0xfffffffc00ec7947, 0xfffffffc00e87947};
	struct dump_plan p = plan_of(load);
	uint64_t target, i;
	struct found f;

	(void)state;
	memcpy(p.code[2], guarded, 16);
	f = dump_find(&p);
	assert_true(f.c->address_doubtful);
	dump_found(&f);
	p = plan_of(load);
	for (i = 0; i < 3; i++) {
		p.code[6][0] = back[i];
		p.code[6][1] = 0x000fc0000383ffff;
		sass_step((const uint8_t *)p.code[6], 90, 0x60, &target);
		assert_int_equal(target, 0x30 - i * SASS_BYTES);
		f = dump_find(&p);
		assert_true(f.c->address_doubtful);
		dump_found(&f);
	}
}

struct tally {
	size_t dumps, agree, code_only, unknown, differ;
	size_t ran, registers;	/* threads executed from the entry, and their registers that agree */
};

static bool image_of(struct dump *d, uint64_t pc, struct bytes *image)
{
	struct dump_row row;
	size_t cursor = 0;

	while (dump_next(d, DUMP_MODULE, &cursor, &row)) {
		*image = dump_child_bytes(&row, DUMP_IMAGE);
		if (image_code(*image, pc, SASS_BYTES))
			return true;
	}
	return false;
}

static struct sass_thread real_lane(const struct culprit *c, const struct dump_row *lane, const struct dump_row *warp,
				    const struct dump_row *cta)
{
	struct sass_thread l = {.image = c->image,
				.arch = c->arch,
				.entry = c->entry,
				.stopped = dump_get(lane, DUMP_LANE_PC),
				.regs = dump_child_bytes(lane, DUMP_REGS),
				.uregs = dump_child_bytes(warp, DUMP_UREGS),
				.params = c->params,
				.params_offset = c->params_offset,
				.id = (uint32_t)dump_get(lane, DUMP_LANE_ID)};
	int i;

	for (i = 0; i < 3; i++) {
		l.thread[i] = (uint32_t)dump_get(lane, DUMP_LANE_THREAD_X + i);
		l.block[i] = (uint32_t)dump_get(cta, DUMP_CTA_BLOCK_X + i);
		l.block_dim[i] = c->block[i];
		l.grid_dim[i] = c->grid[i];
	}
	return l;
}

/* Surviving registers are compared inside; computed from code alone, the address must be the culprit's. */
/* Executed from the entry, it accesses the same and has the same in its registers. */
static void try_run(struct tally *t, const struct culprit *c, const struct sass_thread *l, uint64_t survived)
{
	struct sass_found f;

	if (!sass_once(c->image, c->arch, c->entry, c->pc) ||
	    sass_run(l, c->pc, true, 100000, &f) != SASS_END_THERE || !f.address_known)
		return;
	assert_true(f.address == survived);
	assert_int_equal(f.differ, 0);
	t->ran += f.agree > 0;
	t->registers += f.agree;
}

static void try_lane(struct tally *t, const struct culprit *c, struct sass_line *e, struct sass_thread *l)
{
	uint64_t address, survived = 0;
	enum sass_answer a = sass_line_address(e, &c->insn, l, &address);

	if (!sass_address(&c->insn, l->regs, l->uregs, &survived) || sass_overwrites_address(&c->insn))
		return;
	t->differ += a == SASS_DIFFERS || (a >= SASS_COMPUTED && address != survived);
	t->agree += a >= SASS_COMPUTED && address == survived;
	t->unknown += a == SASS_UNKNOWN;
	try_run(t, c, l, survived);
	l->regs.len = l->uregs.len = 0;
	a = sass_line_address(e, &c->insn, l, &address);
	t->differ += a == SASS_DIFFERS || (a >= SASS_COMPUTED && address != survived);
	t->code_only += a >= SASS_COMPUTED && address == survived;
}

static bool is_kept(const struct culprit *c, const struct sass_thread *l)
{
	size_t i;

	for (i = 0; i < c->n_kept; i++)
		if (c->lanes[i].address_known && !memcmp(c->lanes[i].block, l->block, sizeof(l->block)) &&
		    !memcmp(c->lanes[i].thread, l->thread, sizeof(l->thread)))
			return true;
	return false;
}

static void try_dump(struct tally *t, const char *path)
{
	struct dump *d = dump_open(path, NULL);
	struct culprit *c;
	struct bytes image;
	struct sass_line *e = NULL;
	struct dump_row lane, warp, cta;
	size_t cursor = 0;

	assert_non_null(d);
	c = culprit_find(d);
	if (c->decoded && c->address_known && image_of(d, c->pc, &image))
		e = sass_line_open(image, c->arch, c->pc);
	t->dumps += e != NULL;
	while (e && dump_next(d, DUMP_LANE, &cursor, &lane)) {
		struct sass_thread l;

		if (!dump_parent(&lane, &warp) || !dump_parent(&warp, &cta) || dump_get(&cta, DUMP_CTA_GRID) != c->grid_id)
			continue;
		l = real_lane(c, &lane, &warp, &cta);
		if (is_kept(c, &l))
			try_lane(t, c, e, &l);
	}
	sass_line_close(e);
	culprit_free(c);
	dump_free(d);
}

static void try_folder(struct tally *t, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct tally before;
	char path[4096];

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (strstr(entry->d_name, ".cudacore") && !strstr(entry->d_name, ".json")) {
			before = *t;
			snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
			try_dump(t, path);
			if (getenv("CUWHY_DUMPS"))
				printf("%s: agree %zu, from code alone %zu, unknown %zu, differ %zu\n", path,
				       t->agree - before.agree, t->code_only - before.code_only,
				       t->unknown - before.unknown, t->differ - before.differ);
		}
	closedir(dir);
}

/* CUWHY_DUMPS=FOLDER[:FOLDER…] adds dumps that are not in the repository. */
static void real__addresses_that_survived_are_computed_the_same(void **state)
{
	struct tally t = {0};
	char *more = getenv("CUWHY_DUMPS") ? strdup(getenv("CUWHY_DUMPS")) : NULL, *folder, *rest = NULL;

	(void)state;
	try_folder(&t, "tests/dump/real");
	for (folder = more ? strtok_r(more, ":", &rest) : NULL; folder; folder = strtok_r(NULL, ":", &rest))
		try_folder(&t, folder);
	free(more);
	assert_int_equal(t.differ, 0);
	print_message("# %zu threads executed, %zu registers agree\n", t.ran, t.registers);
	assert_true(t.dumps > 0 && t.agree > 0 && t.code_only > 0 && t.ran >= 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compute__sums_carry_and_borrow),
		cmocka_unit_test(compute__products_keep_their_sign),
		cmocka_unit_test(compute__scaled_indices_reach_the_upper_half),
		cmocka_unit_test(compute__shifts_end_at_their_width),
		cmocka_unit_test(compute__logic_follows_its_table),
		cmocka_unit_test(eval__kernels_of_every_architecture_give_the_address_from_code_alone),
		cmocka_unit_test(eval__the_pointer_is_told_from_the_others),
		cmocka_unit_test(eval__any_changed_bit_is_survived),
		cmocka_unit_test(eval__hostile_code_ends),
		cmocka_unit_test(culprit__a_destroyed_half_of_an_address_is_computed_again),
		cmocka_unit_test(culprit__a_half_that_disagrees_makes_all_doubtful),
		cmocka_unit_test(culprit__a_destroyed_pair_is_checked_by_what_it_was_made_of),
		cmocka_unit_test(culprit__guards_and_branches_make_it_unknown),
		cmocka_unit_test(real__addresses_that_survived_are_computed_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
