/* SPDX-License-Identifier: Apache-2.0
 * Two lists aligned: the same elements belong together, in order, and few are left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/align.h"
#include "dice.h"

#define LONG 5000

struct lists {
	const char *a, *b;
};

static bool same_letter(const void *of, size_t i, size_t k)
{
	const struct lists *l = of;

	return l->a[i] == l->b[k];
}

/* How many found a counterpart; each is the same letter, and after the one before. */
static size_t aligned(const char *a, const char *b, size_t *match)
{
	struct lists l = {a, b};
	size_t n = strlen(a), found = 0, before = 0;

	align(match, n, strlen(b), same_letter, &l);
	for (size_t i = 0; i < n; i++)
		if (match[i]) {
			assert_true(match[i] <= strlen(b) && a[i] == b[match[i] - 1]);
			assert_true(match[i] > before);
			before = match[i];
			found++;
		}
	return found;
}

static void lists__that_are_equal_belong_together(void **state)
{
	size_t match[8];

	(void)state;
	assert_int_equal(aligned("abcabc", "abcabc", match), 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(match[i], i + 1);
	assert_int_equal(aligned("", "abc", match), 0);
	assert_int_equal(aligned("abc", "", match), 0);
	assert_int_equal(aligned("abc", "xyz", match), 0);
}

static void lists__with_one_more_are_aligned_around_it(void **state)
{
	static const size_t want[] = {1, 2, 4, 5};
	size_t match[8];

	(void)state;
	assert_int_equal(aligned("abcd", "abxcd", match), 4);
	assert_memory_equal(match, want, sizeof(want));
	assert_int_equal(aligned("abxcd", "abcd", match), 4);
	assert_int_equal(match[2], 0);
	assert_int_equal(aligned("abcabba", "cbabac", match), 4);	/* the example of Myers' paper */
}

/* Of a long list, every twentieth is missing: all others are found, over many parts. */
static void lists__that_are_long_are_aligned_in_parts(void **state)
{
	char *a = calloc(1, LONG + 1), *b = calloc(1, LONG + 1);
	size_t *match = calloc(LONG, sizeof(*match)), n = 0, found;

	(void)state;
	for (size_t i = 0; i < LONG; i++) {
		a[i] = (char)('a' + roll(26));
		if (roll(20))
			b[n++] = a[i];
	}
	found = aligned(a, b, match);
	assert_true(found <= n && found * 100 >= n * 97);
	free(a);
	free(b);
	free(match);
}

static void lists__of_any_letters_end(void **state)
{
	char a[2001] = "", b[2001] = "";
	size_t match[2000];

	(void)state;
	for (int round = 0; round < 20; round++) {
		size_t n = roll(2000), m = roll(2000);

		for (size_t i = 0; i < 2000; i++) {
			a[i] = i < n ? (char)('a' + roll(5)) : '\0';
			b[i] = i < m ? (char)('a' + roll(5)) : '\0';
		}
		aligned(a, b, match);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists__that_are_equal_belong_together),
		cmocka_unit_test(lists__with_one_more_are_aligned_around_it),
		cmocka_unit_test(lists__that_are_long_are_aligned_in_parts),
		cmocka_unit_test(lists__of_any_letters_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
