/* SPDX-License-Identifier: Apache-2.0
 * The cards of find/memory/cards.h, by the names that `cuwhy fit` and `cuwhy memory --what-if` take.
 */
#ifndef CUWHY_CMD_CARDS_H
#define CUWHY_CMD_CARDS_H

#include "find/memory/cards.h"

struct err;

/* NULL with `e` filled: there is none of that name. */
const struct card_model *card_find(const char *id, struct err *e);

#endif
