/* SPDX-License-Identifier: Apache-2.0
 * Words for what a thread waits for (see live.h).
 */
#include "case/live.h"

static const struct { const char *word, *text; } words[LIVE_WAITS_COUNT] = {
#define X(id, word_, text_) [LIVE_##id] = {word_, text_},
	LIVE_WAITS(X)
#undef X
};

const char *live_waits_word(enum live_waits w)
{
	return words[w].word;
}

const char *live_waits_text(enum live_waits w)
{
	return words[w].text;
}
