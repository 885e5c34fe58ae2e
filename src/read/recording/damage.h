/* SPDX-License-Identifier: Apache-2.0
 * A damaged recording, in words: for every answer that is made from one.
 */
#ifndef CUWHY_DAMAGE_H
#define CUWHY_DAMAGE_H

#include <stdbool.h>

struct pool;
struct trace;

/* What is wrong with a recording, as far as it was read; NULL = nothing that could be seen. */
char *damage_words(const struct trace *t, struct pool *pool);

/* May it have had failures that it no longer shows? */
bool damage_hides_failures(const struct trace *t);

#endif
