/* SPDX-License-Identifier: Apache-2.0
 * The value of a fact or an expression: a number, a text, yes or no, three numbers, or not known.
 */
#ifndef CUWHY_VALUE_H
#define CUWHY_VALUE_H

#include <stdbool.h>
#include <stdint.h>

enum value_type { TYPE_NUMBER, TYPE_TEXT, TYPE_FLAG, TYPE_TRIPLE };

/* Numbers are doubles: exact up to 2^53, which is more than any byte count seen on a GPU. */
struct value {
	bool known;
	bool absent;		/* no input observed the group of the fact: known (there is none), or not applicable */
	enum value_type type;
	double number;		/* NUMBER; FLAG: 0 or 1 */
	const char *text;	/* TEXT: borrowed, lives as long as the case */
	uint32_t triple[3];	/* TRIPLE: a grid, a block; not for expressions */
};

static inline struct value value_number(double number)
{
	return (struct value){.known = true, .type = TYPE_NUMBER, .number = number};
}

static inline struct value value_text(const char *text)
{
	return (struct value){.known = true, .type = TYPE_TEXT, .text = text};
}

static inline struct value value_flag(bool flag)
{
	return (struct value){.known = true, .type = TYPE_FLAG, .number = flag};
}

static inline struct value value_unknown(enum value_type type)
{
	return (struct value){.type = type};
}

/* No input observed it: known to be none (no, "", 0), or not applicable. */
static inline struct value value_none(enum value_type type)
{
	return (struct value){.known = true, .absent = true, .type = type, .text = ""};
}

static inline struct value value_inapplicable(enum value_type type)
{
	return (struct value){.absent = true, .type = type};
}

static inline bool value_applies(struct value v)
{
	return v.known || !v.absent;
}

#endif
