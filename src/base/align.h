/* SPDX-License-Identifier: Apache-2.0
 * Which elements of two lists belong together, in their order, with as few as possible left out.
 */
#ifndef CUWHY_ALIGN_H
#define CUWHY_ALIGN_H

#include <stdbool.h>
#include <stddef.h>

/* Do element i of the first list and element k of the second belong together? */
typedef bool align_same(const void *of, size_t i, size_t k);

/* Fills match[i], for each of the n elements of the first list, with the number of its counterpart plus one; 0: it has none.
 * Lists that differ much are aligned part by part: then more may be left out than necessary. */
void align(size_t *match, size_t n, size_t m, align_same *same, const void *of);

#endif
