/* SPDX-License-Identifier: Apache-2.0
 * Facts from a text: a log, a traceback, the output of nvidia-smi.
 */
#ifndef CUWHY_OBSERVE_TEXT_H
#define CUWHY_OBSERVE_TEXT_H

#include "case/case.h"

struct text_log;
struct text_event;
struct text_env;

#define TEXT_OBSERVER "text"
#define EXCEPTION_OBSERVER "exception"
#define TEXT_SHOWN_MAX	300	/* characters of a line in an answer */

/* Everything that the text says, with `e` as the first error; NULL: it has none. */
void text_observe(struct casefile *f, struct text_log *l, const struct text_event *e);

/* The same of the words that a recording has, which was observed before: what the process printed, and the exception that ended it. Read under
 * these names. */
#define WORDS_PRINTED "what it printed"
#define WORDS_RAISED "the exception"
void words_observe(struct casefile *f, struct text_log *l, const struct text_event *e);

/* Which causes the words of the whole text speak for. */
void text_liken(struct casefile *f, const struct text_log *l);

/* Evidence: a failure that is told, not shown. */
void text_tell_complaint(struct casefile *c, const struct text_hit *told);

/* What `e` is beside `first` (NULL: there is none), and its line: "an earlier run in the text failed with: …". */
const char *text_other_error(struct casefile *c, const struct text_log *l, const struct text_event *first,
			     const struct text_event *e);

/* Evidence: the errors that are not `first`. */
void text_tell_others(struct casefile *c, const struct text_log *l, const struct text_event *first);

/* Only the machine, as the text mentions it. */
void facts_of_text_machine(struct casefile *f, const struct text_env *e);

/* The frame of the user's own code, or the innermost one; -1 when no file is known. */
int text_where(const struct text_event *e);

/* The code that an error line names, by number, name or words; 0 when it names none. */
uint32_t text_code(const char *message);

/* What the number of an older runtime is called now; others stay. */
uint32_t text_number_today(uint32_t number);

#endif
