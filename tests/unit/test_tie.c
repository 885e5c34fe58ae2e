/* SPDX-License-Identifier: Apache-2.0
 * What ties two inputs to one failure, and what keeps them apart: a planted mismatch for every pair of kinds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "case/case.h"
#include "verdict/tie.h"

/* A failure as each kind of input describes it: the same process, kernel, size and machine, unless `other`. */
struct told {
	struct pool pool;
	struct casefile c;
};

static void begin(struct told *t)
{
	*t = (struct told){.pool = {0}};
	case_init(&t->c, &t->pool);
}

static void tell_fault(struct told *t, bool other)
{
	fact_set_number(&t->c, FACT_error_code, 700);
	fact_set_text(&t->c, FACT_kernel_name, other ? "scale(float*, int)" : "fill(float*, long)");
	fact_set_text(&t->c, FACT_fault_address, other ? "0x7f0000000000" : "0x83190fe00100");
}

static void tell_oom(struct told *t, bool other)
{
	fact_set_number(&t->c, FACT_error_code, 2);
	fact_set_number(&t->c, FACT_oom_request, other ? 3u << 30 : 2u << 30);
	fact_set_number(&t->c, FACT_oom_torch_allocated, other ? 5e9 : 7e9);
}

static void tell_device(struct told *t, bool other)
{
	fact_set_text(&t->c, FACT_device_name, other ? "NVIDIA A100-SXM4-40GB" : "NVIDIA H200");
	fact_set_text(&t->c, FACT_driver_version, other ? "12.4" : "13.0");
}

enum kind { RECORDING, DUMP, SNAPSHOT, TEXT, MACHINE, KINDS };

/* `oom`: the program ran out of memory; otherwise an illegal access. */
static void tell(struct told *t, enum kind kind, bool oom, bool other)
{
	begin(t);
	switch (kind) {
	case RECORDING:
		(oom ? tell_oom : tell_fault)(t, other);
		tell_device(t, other);
		fact_set_text(&t->c, FACT_where_noticed, other ? "/home/b/serve.py:9" : "/home/a/train.py:41");
		break;
	case DUMP:
		tell_fault(t, other);
		break;
	case SNAPSHOT:
		fact_set_number(&t->c, FACT_error_code, 0);
		fact_set_number(&t->c, FACT_oom_request, other ? 3u << 30 : 2u << 30);
		fact_set_number(&t->c, FACT_oom_torch_allocated, other ? 5e9 : 7e9);
		break;
	case TEXT:
		if (oom)
			tell_oom(t, other);
		else
			tell_fault(t, other);
		fact_set_text(&t->c, FACT_where_noticed, other ? "serve.py:9" : "train.py:41");
		fact_set_text(&t->c, FACT_text_gpu, other ? "NVIDIA A100-SXM4-40GB" : "NVIDIA H200");
		fact_set_text(&t->c, FACT_text_driver, other ? "550.54.15" : "580.65.06");
		break;
	default:
		fact_set_flag(&t->c, FACT_machine_is, true);
		fact_set_text(&t->c, FACT_gpu_name, other ? "NVIDIA A100-SXM4-40GB" : "NVIDIA H200");
		fact_set_text(&t->c, FACT_driver_version, other ? "12.4" : "13.0");
		fact_set_text(&t->c, FACT_driver_release, other ? "550.54.15" : "580.65.06");
	}
}

static bool tied(enum kind a, enum kind b, bool oom, bool other, const char **why)
{
	static char words[400];
	struct told x, y;
	bool yes;

	tell(&x, a, oom, false);
	tell(&y, b, oom, other);
	yes = case_tied(&x.c, &y.c, &x.pool, why);
	snprintf(words, sizeof(words), "%s", *why);
	*why = words;
	pool_release(&x.pool);
	pool_release(&y.pool);
	return yes;
}

/* Pairs that can describe the same failure; a dump knows nothing about out-of-memory errors, a snapshot nothing
 * about faults, and neither of them about the machine. */
static const struct { enum kind a, b; bool oom; } pairs[] = {
	{RECORDING, DUMP, false}, {RECORDING, SNAPSHOT, true}, {RECORDING, TEXT, false}, {RECORDING, TEXT, true},
	{RECORDING, MACHINE, false}, {DUMP, TEXT, false}, {SNAPSHOT, TEXT, true}, {TEXT, MACHINE, false},
};

static void tie__each_pair_that_tells_of_one_failure_is_tied(void **state)
{
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_true(tied(pairs[i].a, pairs[i].b, pairs[i].oom, false, &why));
		assert_true(tied(pairs[i].b, pairs[i].a, pairs[i].oom, false, &why));
		assert_null(strstr(why, TIE_DIFFERS));
	}
}

static void tie__each_pair_with_a_planted_mismatch_is_kept_apart(void **state)
{
	const char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_false(tied(pairs[i].a, pairs[i].b, pairs[i].oom, true, &why));
		assert_non_null(strstr(why, TIE_DIFFERS));
		assert_false(tied(pairs[i].b, pairs[i].a, pairs[i].oom, true, &why));
	}
}

static void tie__pairs_that_share_nothing_are_kept_apart(void **state)
{
	const char *why;

	(void)state;
	assert_false(tied(DUMP, SNAPSHOT, true, false, &why));
	assert_string_equal(why, "nothing ties them together");
	assert_false(tied(SNAPSHOT, MACHINE, true, false, &why));
	assert_false(tied(DUMP, MACHINE, false, false, &why));
}

/* Every 700 has the same code and the same message. */
static void tie__an_error_and_its_message_are_one_coincidence(void **state)
{
	struct told x, y;
	const char *why;

	(void)state;
	begin(&x);
	begin(&y);
	for (int i = 0; i < 2; i++) {
		struct casefile *c = i ? &y.c : &x.c;

		fact_set_number(c, FACT_error_code, 700);
		fact_set_text(c, FACT_python_message, "CUDA error: an illegal memory access was encountered");
	}
	assert_false(case_tied(&x.c, &y.c, &x.pool, &why));
	assert_string_equal(why, "only the error is the same");
	pool_release(&x.pool);
	pool_release(&y.pool);
}

static void tie__one_contradiction_outweighs_what_agrees(void **state)
{
	struct told x, y;
	const char *why;

	(void)state;
	tell(&x, RECORDING, false, false);
	tell(&y, DUMP, false, false);
	fact_set_text(&y.c, FACT_fault_address, "0x10");
	assert_false(case_tied(&x.c, &y.c, &x.pool, &why));
	assert_string_equal(why, "the address differs: 0x83190fe00100, 0x10");
	pool_release(&x.pool);
	pool_release(&y.pool);
}

static void case__what_an_earlier_input_has_set_stays(void **state)
{
	struct told t;

	(void)state;
	begin(&t);
	case_observer(&t.c, "recording");
	fact_set_number(&t.c, FACT_oom_request, 1);
	fact_set_number(&t.c, FACT_oom_request, 2);
	case_observer(&t.c, "text");
	fact_set_number(&t.c, FACT_oom_request, 3);
	fact_set_number(&t.c, FACT_oom_free, 4);
	assert_int_equal((int)fact_number(&t.c, FACT_oom_request, 0), 2);
	assert_string_equal(fact_origin(&t.c, FACT_oom_request), "recording");
	assert_int_equal((int)fact_number(&t.c, FACT_oom_free, 0), 4);
	pool_release(&t.pool);
}

static void case__every_fact_belongs_to_a_group(void **state)
{
	(void)state;
	for (int i = 0; i < FACT_COUNT; i++)
		assert_in_range(fact_group((enum fact_id)i), 0, GROUP_COUNT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tie__each_pair_that_tells_of_one_failure_is_tied),
		cmocka_unit_test(tie__each_pair_with_a_planted_mismatch_is_kept_apart),
		cmocka_unit_test(tie__pairs_that_share_nothing_are_kept_apart),
		cmocka_unit_test(tie__an_error_and_its_message_are_one_coincidence),
		cmocka_unit_test(tie__one_contradiction_outweighs_what_agrees),
		cmocka_unit_test(case__what_an_earlier_input_has_set_stays),
		cmocka_unit_test(case__every_fact_belongs_to_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
