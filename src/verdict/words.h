/* SPDX-License-Identifier: Apache-2.0
 * The words that a recording has, read like a log: the same words have the same answer, wherever they come from.
 */
#ifndef CUWHY_VERDICT_WORDS_H
#define CUWHY_VERDICT_WORDS_H

struct casefile;

/* Adds them to the case of a process, which its recording has observed. `raised`: the exceptions that ended it, as Python prints them; NULL: none
 * did. What it printed is a fact (printed.text). */
void words_add(struct casefile *c, const char *raised);

#endif
