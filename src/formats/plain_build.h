/* SPDX-License-Identifier: Apache-2.0
 * How plain data is made, private to its readers. Values cost memory, so they are counted: a small file must not become a large one.
 */
#ifndef CUWHY_PLAIN_BUILD_H
#define CUWHY_PLAIN_BUILD_H

#include "formats/plain.h"

struct plain_build {
	struct pool *pool;
	size_t n;
};

/* NULL, false: too many. */
struct plain *plain_new(struct plain_build *b, enum plain_kind kind);
struct plain *plain_new_text(struct plain_build *b, const char *text, size_t n);
bool plain_add(struct plain_build *b, struct plain *to, struct plain *item);

#endif
