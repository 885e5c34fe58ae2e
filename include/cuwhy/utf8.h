/* SPDX-License-Identifier: Apache-2.0
 * A character as UTF-8: for the recorder and the CLI, which both read Python's strings.
 */
#ifndef CUWHY_UTF8_H
#define CUWHY_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4	/* bytes of one character */

/* Writes up to UTF8_MAX bytes, and says how many. Whatever the number, it stays within them: it may be from damaged memory. */
static inline size_t utf8_put(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | ((c >> 6) & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | ((c >> 18) & 7));
	to[1] = (char)(0x80 | ((c >> 12) & 63));
	to[2] = (char)(0x80 | ((c >> 6) & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

#endif
