/* SPDX-License-Identifier: Apache-2.0
 * How much smaller the batch must be, from one recording. What is reported was played back: as a number where the recording shows
 * how large the batch is, else as a part of it.
 */
#ifndef CUWHY_SMALLER_H
#define CUWHY_SMALLER_H

#include <stdbool.h>
#include <stdint.h>

struct replay;
struct replay_question;
struct pool;
struct trace;

struct smaller {
	bool known;			/* `largest`: the program had asked for all that it needs, once */
	uint64_t batch;			/* what failed; 0: not known */
	uint64_t largest;		/* of `smaller_whole`; 0: none fits */
};

/* On which card, with which settings: `q`. */
void smaller_find(struct smaller *s, const struct replay *r, const struct replay_question *q);

/* The batch, or as many parts of it as can be distinguished. */
uint64_t smaller_whole(const struct smaller *s);

uint64_t smaller_percent(const struct smaller *s);

/* Into how many chunks (torch.chunk) the batch goes, so that none is larger than the largest. */
uint64_t smaller_chunks(const struct smaller *s);

/* The program's words with "{}" in place of its batch, as for `cuwhy fit --vary`; NULL: it is not known which word that is. */
const char *smaller_words(const struct smaller *s, const struct trace *t, struct pool *pool);

#endif
