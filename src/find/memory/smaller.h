/* SPDX-License-Identifier: Apache-2.0
 * How much smaller the batch must be, from one recording. What is told was played back: as a number where the recording shows how large the
 * batch is, else as percents of it.
 */
#ifndef CUWHY_SMALLER_H
#define CUWHY_SMALLER_H

#include <stdbool.h>
#include <stdint.h>

struct replay;
struct replay_question;

struct smaller {
	bool known;			/* all that the program asks for is, and so is `largest` */
	uint64_t batch;			/* what failed; 0: not known, and these are percents of it */
	uint64_t largest;		/* 0: none */
	uint64_t most;			/* no larger one gets past the request that failed; 0: none, or not known */
};

/* On which card, with which settings: `q`. */
void smaller_find(struct smaller *s, const struct replay *r, const struct replay_question *q);

/* Of the batch, rounded to the side on which it is still true: down for what fits, up for what does not. */
uint64_t smaller_percent(const struct smaller *s, uint64_t size);

/* Into how many chunks (torch.chunk) the batch goes, so that none is larger than the largest. */
uint64_t smaller_chunks(const struct smaller *s);

#endif
