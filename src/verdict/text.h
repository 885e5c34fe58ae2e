/* SPDX-License-Identifier: Apache-2.0
 * Judges a text, with what other inputs add to its case.
 */
#ifndef CUWHY_JUDGE_TEXT_H
#define CUWHY_JUDGE_TEXT_H

struct process_also;
struct text_event;
struct text_log;
struct verdict;

/* Like verdict_of_text, plus `also`, which may be NULL; `*chosen` is the error that the verdict is about, NULL = none. */
struct verdict *verdict_of_text_and(struct text_log *l, const struct process_also *also,
				    const struct text_event **chosen);

#endif
