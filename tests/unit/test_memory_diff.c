/* SPDX-License-Identifier: Apache-2.0
 * Two moments side by side: which lines are the same, what grew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuwhy/format.h"
#include "show/memory_diff.h"

#define MIB (1ull << 20)
#define LINES_MAX 8

struct side {
	struct ledger_line line[LINES_MAX];
	struct ledger ledger;
};

static void side_begin(struct side *s)
{
	*s = (struct side){0};
	s->ledger = (struct ledger){.device_name = "", .line = s->line};
}

static void side_add(struct side *s, const char *function, uint32_t first_line, uint32_t line, uint64_t mib)
{
	s->line[s->ledger.n++] = (struct ledger_line){
		.part = PART_TENSORS, .kind = KIND_OTHER, .bytes = mib * MIB, .count = 1,
		.place = {.file = "train.py", .function = function, .first_line = first_line, .line = line}};
	s->ledger.part[PART_TENSORS] += mib * MIB;
}

static void compare(struct memory_diff *d, const struct side *a, const struct side *b, enum ledger_by by,
		    struct pool *pool)
{
	memory_diff_make(
		d, &(struct memory_side){.path = "a", .when = "", .ledger = a ? &a->ledger : NULL, .rank = CW_UNKNOWN},
		&(struct memory_side){.path = "b", .when = "", .ledger = b ? &b->ledger : NULL, .rank = CW_UNKNOWN}, by,
		pool);
}

static void line__of_a_function_that_moved_is_the_same(void **state)
{
	struct pool pool = {0};
	struct memory_diff d;
	struct side a, b;

	(void)state;
	side_begin(&a);
	side_begin(&b);
	side_add(&a, "step", 10, 12, 1);
	side_add(&a, "step", 10, 13, 5);
	side_add(&b, "step", 11, 13, 2);	/* has the number of another line now */
	side_add(&b, "step", 11, 14, 5);
	compare(&d, &a, &b, BY_LINE, &pool);
	assert_int_equal(d.n, 1);
	assert_int_equal(d.row[0].line->place.line, 13);
	assert_int_equal(d.row[0].was_line, 12);
	assert_false(d.row[0].is_new);
	assert_int_equal(d.row[0].after - d.row[0].before, MIB);
	pool_release(&pool);
}

static void line__that_could_be_either_of_two_is_new(void **state)
{
	struct pool pool = {0};
	struct memory_diff d;
	struct side a, b;

	(void)state;
	side_begin(&a);
	side_begin(&b);
	side_add(&a, "<lambda>", 10, 10, 1);
	side_add(&a, "<lambda>", 20, 20, 2);
	side_add(&b, "<lambda>", 30, 30, 4);
	compare(&d, &a, &b, BY_LINE, &pool);
	assert_int_equal(d.n, 3);
	assert_true(d.row[0].is_new);
	assert_true(d.row[1].is_gone && d.row[2].is_gone);
	compare(&d, &a, &b, BY_FUNCTION, &pool);
	assert_int_equal(d.n, 1);
	assert_int_equal(d.row[0].before, 3 * MIB);
	pool_release(&pool);
}

static void processes__of_others_are_no_growth(void **state)
{
	struct pool pool = {0};
	struct memory_diff d;
	struct side a, b;

	(void)state;
	side_begin(&a);
	side_begin(&b);
	side_add(&a, "step", 1, 2, 1);
	side_add(&b, "step", 1, 2, 1);
	b.line[b.ledger.n++] = (struct ledger_line){.part = PART_PROCESSES, .pid = 7, .bytes = 100 * MIB};
	b.ledger.part[PART_PROCESSES] = 100 * MIB;
	compare(&d, &a, &b, BY_LINE, &pool);
	assert_int_equal(d.n, 0);
	assert_int_equal(d.held_after, MIB);
	pool_release(&pool);
}

static void growth__is_measured_against_its_limit(void **state)
{
	struct growth_limit percent = {.given = true, .percent = true, .value = 50},
			    bytes = {.given = true, .value = (double)MIB}, none = {0};
	struct pool pool = {0};
	struct memory_diff d;
	struct side a, b;

	(void)state;
	side_begin(&a);
	side_begin(&b);
	side_add(&a, "step", 1, 2, 2);
	side_add(&b, "step", 1, 2, 3);
	compare(&d, &a, &b, BY_LINE, &pool);
	assert_false(memory_diff_exceeds(&d, &percent));
	assert_false(memory_diff_exceeds(&d, &bytes));
	percent.value = 49.9;
	bytes.value -= 1;
	assert_true(memory_diff_exceeds(&d, &percent));
	assert_true(memory_diff_exceeds(&d, &bytes));
	assert_false(memory_diff_exceeds(&d, &none));
	compare(&d, NULL, &b, BY_LINE, &pool);	/* from nothing: more than any share */
	assert_true(memory_diff_exceeds(&d, &percent));
	compare(&d, &b, NULL, BY_LINE, &pool);
	assert_false(memory_diff_exceeds(&d, &percent));
	assert_true(d.row[0].is_gone);
	pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__of_a_function_that_moved_is_the_same),
		cmocka_unit_test(line__that_could_be_either_of_two_is_new),
		cmocka_unit_test(processes__of_others_are_no_growth),
		cmocka_unit_test(growth__is_measured_against_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
