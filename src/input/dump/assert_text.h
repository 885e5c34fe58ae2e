/* SPDX-License-Identifier: Apache-2.0
 * Which of the strings of one length an assertion meant: a condition, a file or a function.
 */
#ifndef CUWHY_ASSERT_TEXT_H
#define CUWHY_ASSERT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input/dump/dump.h"

enum text_role { TEXT_MESSAGE, TEXT_FILE, TEXT_FUNCTION };

/* What is known of the objects of one size. */
struct text_group {
	uint64_t size;			/* bytes, with the zero at the end */
	enum text_role role;		/* of the one looked for */
	const char *own_name;		/* of the kernel or function that asserted; may be NULL */
	size_t n_functions, n_others;	/* objects of this size: names of functions, and all else */
};

static inline bool text_is_char(uint8_t c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n';
}

/* Counts one object of this size, by how compilers name them. */
void text_group_symbol(struct text_group *g, const char *name, uint64_t max);

#define TEXT_CHOICES	4

/* The strings of the section that can be meant, borrowed from it. Returns how many; 0 also when there are too many. */
size_t text_group_choose(const struct text_group *g, struct bytes data, const char *choice[TEXT_CHOICES]);

#endif
