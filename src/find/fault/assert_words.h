/* SPDX-License-Identifier: Apache-2.0
 * What a kernel asserted: the text that the driver prints when a device-side assert fails, from a core dump.
 */
#ifndef CUWHY_ASSERT_WORDS_H
#define CUWHY_ASSERT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/dump/dump.h"

#define ASSERTION_CHOICES	4

struct assertion {
	char *condition, *file, *function;	/* NULL = not known */
	uint32_t line;				/* 0 = not known */
	char *one_of[ASSERTION_CHOICES];	/* the condition is one of these, when it is not known */
	size_t n_one_of;
};

struct assertion_source {
	struct dump *dump;
	struct bytes image;	/* relocated, of the module that contains the code */
	struct bytes original;	/* the same before relocation; empty in light dumps */
	unsigned arch;
	uint64_t back;			/* where the thread continues after the call */
	const char *name;		/* of the function or kernel, for people; may be NULL */
};

/* False when there is no assertion call there. */
bool assertion_find(struct assertion *a, const struct assertion_source *s);
void assertion_free(struct assertion *a);

#endif
