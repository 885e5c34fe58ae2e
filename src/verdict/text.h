/* SPDX-License-Identifier: Apache-2.0
 * Judges a text, with what other inputs add to its case.
 */
#ifndef CUWHY_JUDGE_TEXT_H
#define CUWHY_JUDGE_TEXT_H

struct inputs_beside;
struct text_log;
struct text_view;
struct verdict;

/* Like verdict_of_text, with what other inputs (may be NULL) add to its case. `*about`: what of the text the verdict is about. */
struct verdict *verdict_of_text_beside(const struct text_log *l, const struct inputs_beside *beside,
				       struct text_view *about);

#endif
