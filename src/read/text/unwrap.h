/* SPDX-License-Identifier: Apache-2.0
 * Lines that a terminal, a mail program or a form cut at a fixed width.
 */
#ifndef CUWHY_TEXT_UNWRAP_H
#define CUWHY_TEXT_UNWRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wrapped {
	const char *s;
	size_t len;
	unsigned columns;	/* as wide as it is shown */
	uint64_t number;
};

struct wrapping {
	unsigned width;		/* at which the lines were cut; 0 = they do not look cut */
	bool words;		/* between words */
};

enum unwrap { UNWRAP_NOT, UNWRAP_CUT, UNWRAP_WORD };	/* WORD: a space was between them */

unsigned unwrap_columns(const char *s, size_t len);
struct wrapping unwrap_find(const struct wrapped *list, size_t n);

/* Does `b` go on where `a` was cut? */
enum unwrap unwrap_how(const struct wrapped *a, const struct wrapped *b, const struct wrapping *w);

#endif
