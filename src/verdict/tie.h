/* SPDX-License-Identifier: Apache-2.0
 * Are two inputs about the same failure? Decided by the facts that both know (ties.def), never by the order in which
 * they were given.
 */
#ifndef CUWHY_TIE_H
#define CUWHY_TIE_H

#include <stdbool.h>

struct casefile;
struct pool;

#define TIE_DIFFERS " differs: "	/* in `why` when they contradict each other */

/* What two runs of one program also share does not prove that it was the same run: such a tie never makes an answer certain. */
enum tied { TIED_NOT, TIED_PERHAPS, TIED_SURELY };

/* `*why` says what ties them, or why they are separate: "the kernel and the error", "the kernel differs: a, b". */
enum tied case_tied(const struct casefile *a, const struct casefile *b, struct pool *pool, const char **why);

#endif
