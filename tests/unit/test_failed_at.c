/* SPDX-License-Identifier: Apache-2.0
 * When a program failed: steps and epochs before an error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "find/words/failed_at.h"

static void failed(const char *before, double step, double epoch, enum failed_first first)
{
	struct failed_at f = failed_at(before);

	assert_true(f.step == step);
	assert_true(f.epoch == epoch);
	assert_int_equal(f.first, first);
}

static void failed_at__progress_bars_and_lines_of_a_training(void **state)
{
	(void)state;
	failed(" 12%|#2        | 120/1000 [00:10<01:20]\n", 120, -1, FAILED_LATER);
	failed("Epoch 3:  45%|####5     | 120/265 [00:10]\n", 120, 3, FAILED_LATER);
	failed("Epoch 3/10\n", -1, 3, FAILED_LATER);
	failed("step 1200 loss 0.9\n", 1200, -1, FAILED_LATER);
	failed("global_step=7, lr 0.1\n", 7, -1, FAILED_LATER);
	failed("Epoch [2/5] [ 120/1000] loss 1.2\n", 120, 2, FAILED_LATER);
	failed("[ 120/1000] loss 1.2\n", 120, -1, FAILED_LATER);
	failed("{'loss': 1.2, 'epoch': 0.12}\n", -1, 0.12, FAILED_UNKNOWN);
	failed("iteration       14/  200000 | loss: 2.1\n", 14, -1, FAILED_LATER);
}

static void failed_at__the_first_step_is_the_one_that_no_line_goes_beyond(void **state)
{
	(void)state;
	failed("  0%|          | 0/1000 [00:00<?, ?it/s]\n", 0, -1, FAILED_FIRST);
	failed("Epoch 1/10:   0%|   | 0/265\n", 0, 1, FAILED_FIRST);
	failed("Epoch 1:   0%|   | 0/265\n", 0, 1, FAILED_LATER);	/* counted from 0 */
	failed("step 900 loss 1\n  0%|    | 0/20 [00:00]\n", 0, -1, FAILED_LATER);
	failed("Epoch 0 starts\n", -1, 0, FAILED_UNKNOWN);
	failed("", -1, -1, FAILED_UNKNOWN);
}

static void failed_at__settings_builds_and_preparations_have_no_steps(void **state)
{
	(void)state;
	failed("--max_train_steps=250 --epochs 3\n", -1, -1, FAILED_UNKNOWN);
	failed("max_epochs=20, warmup_step=10\n", -1, -1, FAILED_UNKNOWN);
	failed("[1/4] nvcc -c fused.cu\n", -1, -1, FAILED_UNKNOWN);
	failed("Step 8/12 : RUN pip install .\n", -1, -1, FAILED_UNKNOWN);
	failed("Loading checkpoint shards:  33%|###  | 1/3 [00:02]\n", -1, -1, FAILED_UNKNOWN);
	failed("batch 256 does not fit\n", -1, -1, FAILED_UNKNOWN);
	failed("Batch 1.465 (0.9)\n", -1, -1, FAILED_UNKNOWN);
}

static void failed_at__lines_may_end_anywhere(void **state)
{
	static const char whole[] = "Epoch [3/10] 45%|###| 120/265 [00:10<01:20] step: 12 [ 120/1000] lr 3\n";
	char part[sizeof(whole)];

	(void)state;
	for (size_t n = 0; n < sizeof(whole); n++) {
		memcpy(part, whole, n);
		part[n] = '\0';
		failed_at(part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_at__progress_bars_and_lines_of_a_training),
		cmocka_unit_test(failed_at__the_first_step_is_the_one_that_no_line_goes_beyond),
		cmocka_unit_test(failed_at__settings_builds_and_preparations_have_no_steps),
		cmocka_unit_test(failed_at__lines_may_end_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
