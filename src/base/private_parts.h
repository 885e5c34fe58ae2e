/* SPDX-License-Identifier: Apache-2.0
 * The parts of private.c: what is recognized by its shape, and what by the name before it.
 */
#ifndef CUWHY_PRIVATE_PARTS_H
#define CUWHY_PRIVATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/private_name.h"

/* One pass over a text. Whatever looks ahead or back either moves on to where it looked, or looks at most a few hundred bytes far: the
 * time grows with the text, not with its square. */
struct scan {
	const char *text, *s;	/* all of it; the next byte to look at */
	const char *copied;	/* `out` has everything up to here */
	struct buf out;		/* not begun before something is removed */
	size_t times;
	struct expression {	/* the value of a name, as an expression: every literal in it may be the secret */
		bool open;
		enum secrecy how;
		unsigned depth;		/* open brackets */
		uint64_t calls;		/* which of them are calls */
		unsigned lines;
		bool one;		/* it ends behind its first literal */
		bool group;		/* … behind its first closing bracket */
		bool list;		/* of several values: commas do not end it */
		bool annotated;		/* behind "name:", there may be a type */
		bool comment;
		char inside;		/* the quote that ends the text in which it stands, or 0 */
		const char *start, *kept;	/* up to here a literal that stays */
	} value;
	enum secrecy fallback;	/* of "default=" behind an option's or a variable's name… */
	const char *fallback_until;
};

/* Takes out n bytes; the lines stay as many as they were. Moves behind them. */
void private_remove(struct scan *c, const char *at, size_t n);

/* The length of the secret that begins `skip` bytes behind s; 0: none does. */
size_t private_looks_at(const char *text, const char *s, size_t *skip);

/* Looks at s as a part of the value of a name. true: it has moved on. */
bool private_in_value(struct scan *c);

/* Is there a name of a secret at s? true: it has moved on, to its value or behind that. */
bool private_named(struct scan *c);

#endif
