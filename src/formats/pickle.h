/* SPDX-License-Identifier: Apache-2.0
 * Reads a pickle of plain data: numbers, strings, lists, dictionaries, tuples. Nothing is ever executed, and an opcode that
 * could is rejected, with its name and place.
 *
 * No Python object is kept here: what a string, list, dictionary or tuple becomes is up to whoever wants the data, who gives each a
 * number and is told what is added to it.
 */
#ifndef CUWHY_PICKLE_H
#define CUWHY_PICKLE_H

#include <stddef.h>
#include <stdint.h>

struct pickle_input;
struct err;

enum value_kind { V_OTHER, V_NONE, V_BOOL, V_INT, V_FLOAT, V_STRING, V_LIST, V_DICT, V_TUPLE };

struct pickle_value {
	uint8_t kind;		/* enum value_kind */
	union {
		int64_t number;
		double real;
		uint32_t id;	/* STRING, LIST, DICT, TUPLE: below 2^28 */
	};
};

/* Who wants the data. All functions return 0, or a negative errno with the error filled. */
struct pickle_sink {
	const char *what, *hint;	/* "a PyTorch memory snapshot"; what writes such files */
	uint32_t string_kept;		/* longer strings are cut */
	/* each sets `id`; a tuple may be of no interest: V_OTHER */
	int (*string)(void *it, const uint8_t *bytes, size_t len, struct pickle_value *v);
	int (*dict)(void *it, struct pickle_value *v);
	int (*list)(void *it, struct pickle_value *v);
	int (*tuple)(void *it, const struct pickle_value *item, size_t n, struct pickle_value *v);
	/* `n` values; of a dictionary: key, value, key, value */
	int (*set)(void *it, uint32_t dict, const struct pickle_value *v, size_t n);
	int (*append)(void *it, uint32_t list, const struct pickle_value *v, size_t n);
	/* the value of the file */
	int (*root)(void *it, const struct pickle_value *v);
};

int pickle_read(struct pickle_input *in, const struct pickle_sink *sink, void *it, struct err *e);

#endif
