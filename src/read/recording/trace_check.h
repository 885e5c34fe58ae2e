/* SPDX-License-Identifier: Apache-2.0
 * Which figures of a recording can be true: for what reads one.
 */
#ifndef CUWHY_TRACE_CHECK_H
#define CUWHY_TRACE_CHECK_H

#include "read/recording/trace.h"

#define CARD_MAX ((uint64_t)64 << 40)	/* far above any GPU; dry runs without a limit have 4 TiB */

/* The memory of a device; CARD_MAX where it is not known. */
uint64_t trace_card(const struct trace *t, int device);

/* Host memory may be larger than a card, and so may managed memory, of which only a part is on the card at a time. */
bool memory_is_on_card(uint32_t kind);

/* Counts a figure that cannot be true, so that the answer can say that it was left out. */
bool trace_possible(struct trace *t, bool possible);

#endif
