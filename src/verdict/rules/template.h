/* SPDX-License-Identifier: Apache-2.0
 * Sentences with facts in them: "{launch.grid.z:n} blocks, the limit is {limit.grid.z:n}".
 *
 *   {expression}        a number without trailing zeros, or a text
 *   {expression:n}      70,000
 *   {expression:bytes}  4.0 TiB
 *   {{                  one {
 *
 * Sentences are written in the plural. After a number that is 1, the noun and its verb are put in the singular: "1 other process holds".
 */
#ifndef CUWHY_TEMPLATE_H
#define CUWHY_TEMPLATE_H

#include "base/format.h"
#include "knowledge/kb.h"

/* NULL if a fact in it is unknown, or a text in it is empty and not in quotes: half a sentence is useless. */
char *template_expand(const struct template *t, const struct casefile *f, struct pool *pool);

#endif
