/* SPDX-License-Identifier: Apache-2.0
 * The unit test of notes (input.c); tests/contributing/check.py puts it into a copy of the tree as tests/unit/test_note.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "find/input.h"

static void sniff__a_note_and_what_is_none(void **state)
{
	static const unsigned char text[] = "cuwhy-note\nerror.code = 710\n";
	struct sniffed note = {.path = "a.note", .head = text, .n = sizeof(text) - 1}, cut = note;

	(void)state;
	cut.n = 5;
	assert_true(input_get(INPUT_note)->sniff(&note));
	assert_false(input_get(INPUT_note)->sniff(&cut));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sniff__a_note_and_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
