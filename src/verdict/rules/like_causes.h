/* SPDX-License-Identifier: Apache-2.0
 * The causes that a text is like by its words, where the rules and the message leave a gap.
 */
#ifndef CUWHY_LIKE_CAUSES_H
#define CUWHY_LIKE_CAUSES_H

#include "verdict/rules/rules.h"

/* Fills up the candidates while the first one is not certain: by the words of the text, then by what its code or status is known to come
 * from. What the facts exclude is not taken. */
void like_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool);

#endif
