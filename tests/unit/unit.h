/* SPDX-License-Identifier: Apache-2.0
 * Included before every tests/unit/test_*.c by the Makefile: main() of the file becomes a group of build/tests/unit (unit.c), and the tests that
 * it gives to cmocka go through that program's filter first.
 */
#ifndef UNIT_H
#define UNIT_H

#include <stdbool.h>

struct unit_group {
	const char *file;
	int (*run)(void);
	bool leaks;		/* what its tests leave is no leak */
	struct unit_group *next;
};

void unit_add(struct unit_group *group);

#ifndef UNIT_RUNNER
#define UNIT_LEAKS false

/* "int" stands before it; the declaration takes that */
#define main(...)                                                    \
	unit_group_of_this_file(void);                               \
	static int unit_main(void);                                  \
	__attribute__((constructor)) static void unit_register(void) \
	{                                                            \
		static struct unit_group group = {.file = __FILE__, .run = unit_main, .leaks = UNIT_LEAKS}; \
		unit_add(&group);                                    \
	}                                                            \
	static int unit_main(__VA_ARGS__)

#define _cmocka_run_group_tests unit_run_tests
#endif

#endif
