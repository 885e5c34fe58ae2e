/* SPDX-License-Identifier: Apache-2.0
 * Facts from a text: a log, a traceback, the output of nvidia-smi.
 */
#ifndef CUWHY_OBSERVE_TEXT_H
#define CUWHY_OBSERVE_TEXT_H

#include "find/words/log.h"

#define TEXT_OBSERVER "text"
#define TEXT_SHOWN_MAX	300	/* characters of a line in an answer */

/* What a case is made of. */
struct text_view {
	const struct text_log *log;
	const struct text_event *event;	/* the first error; NULL: it has none */
	struct text_past past;
};

/* What an error says by itself, without the words of the lines around it. */
void text_observe_event(struct casefile *c, const struct text_log *l, const struct text_event *e);

/* Everything that the text says. */
void text_observe(struct casefile *c, const struct text_view *v);

/* The same of the words that a recording has, which was observed before: what the process printed, and the exception that ended it. Read under
 * these names. */
#define WORDS_PRINTED "what it printed"
#define WORDS_RAISED "the exception"
void words_observe(struct casefile *c, const struct text_view *v);

/* And which causes its words speak for. `told`: a failure that is described, not shown; NULL: none is. */
void text_observe_failure(struct casefile *c, const struct text_view *v, const struct text_hit *told);

/* What `e` is beside `first` (NULL: there is none), and its line: "an earlier run in the text failed with: …". */
const char *text_other_error(struct pool *pool, const struct text_log *l, const struct text_event *first,
			     const struct text_event *e);

/* Only the machine, as the text mentions it. */
void facts_of_text_machine(struct casefile *f, const struct text_env *e);

/* The frame of the user's own code, or the innermost one; -1 when no file is known. */
int text_where(const struct text_event *e);

/* The code that an error line names, by number, name or words; 0 when it names none. */
uint32_t text_code(const char *message);

/* What the number of an older runtime is called now; others stay. */
uint32_t text_number_today(uint32_t number);

#endif
