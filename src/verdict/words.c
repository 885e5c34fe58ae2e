/* SPDX-License-Identifier: Apache-2.0
 * The words of a recording (see words.h).
 */
#include "verdict/words.h"

#include "find/input_text.h"
#include "verdict/text.h"
#include "verdict/verdict.h"

void words_add(struct casefile *c, const char *raised)
{
	const char *printed = fact_text(c, FACT_printed_text);
	struct text_source *words;
	struct verdict *alone;

	/* where a call of CUDA's failed, the recording knows all that the exception says, but not what was printed */
	if (!printed[0] && (!raised || fact_number(c, FACT_error_code, 0) != 0))
		return;
	words = text_source_of_words(printed, raised);
	alone = verdict_of_text_beside(words->log, NULL, &words->about);
	if (verdict_failed(alone))
		words_observe(c, &words->about);
	verdict_free(alone);
	text_source_free(words);
}
