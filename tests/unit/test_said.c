/* SPDX-License-Identifier: Apache-2.0
 * Words of logs: how rows match, that each list of kb/log.def is whole, and which facts a line says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/phrases.h"
#include "find/words/env.h"
#include "read/text/said.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool matches(const char *words, bool exact, const char *s)
{
	struct phrase row = {.words = words, .exact = exact};
	struct phrases p = {.row = &row, .n = 1};

	return phrase_in(&p, s, strlen(s)) != NULL;
}

static void phrase__ignores_case_unless_it_is_exact(void **state)
{
	(void)state;
	assert_true(matches("wsl2", false, "on WSL2"));
	assert_true(matches("WSL2", true, "on WSL2"));
	assert_false(matches("WSL2", true, "on wsl2"));
}

static void phrase__begins_and_ends_the_text(void **state)
{
	(void)state;
	assert_true(matches("^item ", true, "item one"));
	assert_false(matches("^item ", true, "an item one"));
	assert_true(matches("done$", true, "all done  "));
	assert_false(matches("done$", true, "done it"));
	assert_true(matches("^whole$", true, "whole"));
}

static void phrase__stands_for_anything_a_digit_or_itself(void **state)
{
	(void)state;
	assert_true(matches("a*c", true, "xabbbc"));
	assert_false(matches("a*c", true, "c then a"));
	assert_true(matches("a*bc", true, "a b bc"));
	assert_true(matches("cuda:#", true, "at cuda:3"));
	assert_false(matches("cuda:#", true, "cuda:x"));
	assert_true(matches("^#. ", true, "3. item"));
	assert_true(matches("2\\*\\*31", true, "n = 2**31"));
	assert_false(matches("2\\*\\*31", true, "20 to 31"));
	assert_true(matches("^\\#", true, "#12"));
}

static void phrase__begins_a_word(void **state)
{
	(void)state;
	assert_true(matches("<gpu", false, "the GPU"));
	assert_true(matches("<gpu", false, "2gpus"));
	assert_false(matches("<gpu", false, "sgpu"));
	assert_true(matches("<gpu", false, "sgpu, gpu"));
}

static void phrase__stays_within_its_text(void **state)
{
	struct phrase row = {.words = "abc", .exact = true};
	struct phrases p = {.row = &row, .n = 1};

	(void)state;
	assert_null(phrase_in(&p, "abc", 2));
	assert_null(phrase_whole(&p, "abcd", 4));
	assert_non_null(phrase_whole(&p, "abcd", 3));
}

static void phrase__longer_words_come_first_at_one_place(void **state)
{
	struct phrase rows[] = {{.words = "warn", .exact = true, .means = 1},
				{.words = "warning", .exact = true, .means = 2},
				{.words = "#", .exact = true, .means = 3},
				{.words = "1", .exact = true, .means = 4}};
	struct phrases p = {.row = rows, .n = COUNT(rows)};
	struct phrase_scan scan = phrase_scan("a warning 1", 11);
	const struct phrase *found;
	int order[6] = {0};
	size_t n = 0;

	(void)state;
	while ((found = phrase_next(&p, &scan)) != NULL && n < COUNT(order))
		order[n++] = found->means;
	assert_int_equal(n, 4);
	assert_memory_equal(order, ((int[]){2, 1, 4, 3}), 4 * sizeof(int));
}

static void phrase__follows_the_rows_of_the_table(void **state)
{
	struct phrase rows[] = {{.words = "driver version"}, {.words = "driver"}};
	struct phrases p = {.row = rows, .n = COUNT(rows)};
	const char *line = "driver 1, Driver Version 2";
	size_t i = 0;

	(void)state;
	assert_string_equal(phrase_after(&p, line, &i), " 2");
	assert_string_equal(phrase_after(&p, line, &i), " 1, Driver Version 2");
	assert_null(phrase_after(&p, line, &i));
}

/* A row apart from the others of its list would be another list's. */
static void list__has_all_of_its_rows(void **state)
{
	static const int list_of[] = {
#define LIST(list)
#define SAID(list, words) SAID_##list,
#define WRITTEN(list, words) SAID_##list,
#include "kb/log.def"
	};
	size_t count[SAID_LISTS] = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(list_of); i++) {
		assert_true(!count[list_of[i]] || list_of[i - 1] == list_of[i]);
		count[list_of[i]]++;
	}
	for (int i = 0; i < SAID_LISTS; i++)
		assert_int_equal(said_rows(i), count[i]);
}

static void says_fact(int which, const char *line, bool expected)
{
	struct said_facts f = {0};

	said_facts_line(&f, line, "log", 7);
	if (said_fact(&f, which) != expected)
		print_error("%s\n", line);
	assert_int_equal(said_fact(&f, which), expected);
	if (expected)
		assert_int_equal(f.place[which].line, 7);
}

static void fact__of_the_machine(void **state)
{
	(void)state;
	says_fact(SAYS_text_wsl, "Linux box 5.15.153.1-microsoft-standard-WSL2 x86_64", true);
	says_fact(SAYS_text_wsl, "Linux box 6.8.0-50-generic x86_64", false);
	says_fact(SAYS_text_windows, "File \"D:\\work\\train.py\", line 3", true);
	says_fact(SAYS_text_smi_works, "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |", true);
	says_fact(SAYS_text_smi_works, "GPU 0: NVIDIA L4 (UUID: GPU-5c2f1b7e-0000-1111-2222-333344445555)", true);
	says_fact(SAYS_text_smi_works, "nvidia-smi works on the host, not in the pod", false);
	says_fact(SAYS_text_smi_works, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
		  false);
}

static void fact__mig_is_enabled(void **state)
{
	(void)state;
	says_fact(SAYS_text_mig, "|                               |                  |              Enabled |", true);
	says_fact(SAYS_text_mig, "|                               |                  |             Disabled |", false);
	says_fact(SAYS_text_mig, "| Fan  Temp  Perf  Pwr:Usage/Cap|     Memory-Usage | GPU-Util  MIG M. |", false);
	says_fact(SAYS_text_mig, "CUDA_VISIBLE_DEVICES=MIG-0a1b2c3d-0000-1111-2222-333344445555", true);
	says_fact(SAYS_text_mig, "MIG mode is disabled", false);
}

static void fact__of_kubernetes(void **state)
{
	const char *event = "Warning  FailedScheduling  0/2 nodes are available: 2 Insufficient nvidia.com/gpu.";

	(void)state;
	says_fact(SAYS_text_kubernetes, event, true);
	says_fact(SAYS_text_container, event, true);
	says_fact(SAYS_text_unscheduled, event, true);
	says_fact(SAYS_text_kubernetes, "Reason:       OOMKilled", true);
	says_fact(SAYS_text_kubernetes, "\"OOMKilled\": true,", false);	/* docker inspect */
	says_fact(SAYS_text_unscheduled, "nvidia.com/gpu: 1", false);
	says_fact(SAYS_text_scheduled, "Normal  Scheduled  Successfully assigned ml/train-0 to node-3", true);
	says_fact(SAYS_text_kubernetes, "podman run --device nvidia.com/gpu=all img", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phrase__ignores_case_unless_it_is_exact),
		cmocka_unit_test(phrase__begins_and_ends_the_text),
		cmocka_unit_test(phrase__stands_for_anything_a_digit_or_itself),
		cmocka_unit_test(phrase__begins_a_word),
		cmocka_unit_test(phrase__stays_within_its_text),
		cmocka_unit_test(phrase__longer_words_come_first_at_one_place),
		cmocka_unit_test(phrase__follows_the_rows_of_the_table),
		cmocka_unit_test(list__has_all_of_its_rows),
		cmocka_unit_test(fact__of_the_machine),
		cmocka_unit_test(fact__mig_is_enabled),
		cmocka_unit_test(fact__of_kubernetes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
