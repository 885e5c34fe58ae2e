/* SPDX-License-Identifier: Apache-2.0
 * Recordings that were cut or changed: the answer says so and is less certain, and no figure in it is more than the GPU has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/pool.h"
#include "dice.h"
#include "read/recording/damage.h"
#include "read/recording/seal.h"
#include "read/recording/trace_memory.h"
#include "memory_make.h"

/* Four tensors fill the card; `certain` while the recording is whole. */
static void make_full_card(struct mm *m)
{
	mm_init(m);
	for (int i = 0; i < 4; i++) {
		mm_segment(m, 34 * GIB);
		mm_block(m, 34 * GIB, tb_stack(&m->b, USER, NULL), 0, 0);
	}
	mm_oom(m, 10 * GIB, GIB, tb_stack(&m->b, USER, NULL));
}

static json_t *judge_bytes(struct mm *m, size_t len)
{
	struct process_end end = {.pid = 100, .status_known = true, .exit = 1};
	struct trace *t = trace_from_bytes(m->b.data, len, NULL);
	struct verdict *v = verdict_of_process(t, &end);
	json_t *j = verdict_object(v);

	verdict_free(v);
	trace_free(t);
	return j;
}

static char *damage_of(struct mm *m, size_t len, struct pool *pool)
{
	struct trace *t = trace_from_bytes(m->b.data, len, NULL);
	char *words = damage_words(t, pool);

	trace_free(t);
	return words;
}

static void a_whole_recording_is_not_damaged(void **state)
{
	struct pool pool = {0};
	struct mm m;
	json_t *j;

	(void)state;
	make_full_card(&m);
	seal_put(m.b.data, TB_BYTES);
	assert_null(damage_of(&m, TB_BYTES, &pool));
	make_full_card(&m);
	j = judge_bytes(&m, TB_BYTES);
	assert_string_equal(field(j, "damaged"), "");
	assert_string_equal(field(j, "certainty"), "certain");
	json_decref(j);
	pool_release(&pool);
}

static void a_cut_recording_says_how_much_is_missing_and_is_less_certain(void **state)
{
	size_t len;
	struct mm m;
	json_t *j;

	(void)state;
	make_full_card(&m);
	len = m.b.h->used - 4096;
	j = judge_bytes(&m, len);
	assert_string_not_equal(field(j, "certainty"), "certain");
	assert_non_null(strstr(field(j, "damaged"), "the last 4096 of its"));
	assert_non_null(strstr(field(j, "because"), "is cut short"));
	json_decref(j);
}

static void a_recording_whose_failures_are_cut_off_cannot_tell(void **state)
{
	struct mm m;
	json_t *j;

	(void)state;
	make_full_card(&m);
	j = judge_bytes(&m, sizeof(struct cw_header) + 64);
	assert_string_equal(field(j, "cause"), "unknown");
	assert_non_null(strstr(field(j, "title"), "failures among them"));
	json_decref(j);
}

/* The counter is in the header, which is there. */
static void a_cut_recording_of_a_program_without_failures_has_none(void **state)
{
	struct mm m;
	json_t *j;

	(void)state;
	mm_init(&m);
	j = judge_bytes(&m, sizeof(struct cw_header) + 64);
	assert_string_equal(field(j, "cause"), "none");
	json_decref(j);
}

static void one_changed_byte_breaks_the_seal(void **state)
{
	struct pool pool = {0};

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct mm m;
		char *words;

		make_full_card(&m);
		seal_put(m.b.data, TB_BYTES);
		/* not the magic and the version, without which it is no recording */
		m.b.data[16 + roll(TB_BYTES - 16)] ^= (uint8_t)(1 + roll(255));
		words = damage_of(&m, TB_BYTES, &pool);
		assert_non_null(words);
		assert_non_null(strstr(words, "damaged"));
	}
	pool_release(&pool);
}

static void a_program_whose_recording_was_changed_may_have_failed(void **state)
{
	struct mm m;
	json_t *j;

	(void)state;
	mm_init(&m);
	seal_put(m.b.data, TB_BYTES);
	m.b.h->n_allocs++;
	j = judge_bytes(&m, TB_BYTES);
	assert_string_equal(field(j, "cause"), "unknown");
	json_decref(j);
}

static void a_block_larger_than_the_card_is_left_out_and_said(void **state)
{
	struct mm m;
	json_t *j;

	(void)state;
	make_full_card(&m);
	m.block[1].size = (uint64_t)255 << 40;
	m.b.failure[1].live_device_bytes = (uint64_t)255 << 40;
	m.b.h->memory[0].peak_allocated = (uint64_t)255 << 40;
	j = judge_bytes(&m, TB_BYTES);
	assert_non_null(strstr(field(j, "damaged"), "3 figures in it cannot be true"));
	assert_string_not_equal(field(j, "certainty"), "certain");
	json_decref(j);
}

static void free_memory_beyond_the_cards_is_not_shown(void **state)
{
	struct mm m;
	char *text;
	json_t *j;

	(void)state;
	make_full_card(&m);
	m.b.failure[1].free_bytes = (uint64_t)9 << 50;
	j = judge_bytes(&m, TB_BYTES);
	text = json_dumps(j, 0);
	assert_null(strstr(text, "PiB"));
	assert_non_null(strstr(text, "1 figure in it cannot be true"));
	free(text);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_recording_is_not_damaged),
		cmocka_unit_test(a_cut_recording_says_how_much_is_missing_and_is_less_certain),
		cmocka_unit_test(a_recording_whose_failures_are_cut_off_cannot_tell),
		cmocka_unit_test(a_cut_recording_of_a_program_without_failures_has_none),
		cmocka_unit_test(one_changed_byte_breaks_the_seal),
		cmocka_unit_test(a_program_whose_recording_was_changed_may_have_failed),
		cmocka_unit_test(a_block_larger_than_the_card_is_left_out_and_said),
		cmocka_unit_test(free_memory_beyond_the_cards_is_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
