/* SPDX-License-Identifier: Apache-2.0
 * What loggers, collectors, terminals, notebooks and web pages made of a text is undone here, so that the rest reads the lines as the program
 * wrote them. A window of lines is looked at together: how wide the terminal was, and what every line begins with, cannot be seen from one.
 */
#ifndef CUWHY_TEXT_CLOTHES_H
#define CUWHY_TEXT_CLOTHES_H

#include <stddef.h>
#include <stdint.h>

struct text_line;
struct clothes;

typedef void clothes_fn(void *arg, struct text_line *line);

struct clothes *clothes_new(clothes_fn *line, void *arg);
void clothes_free(struct clothes *c);

void clothes_begin(struct clothes *c);	/* another input: what was learned is forgotten */
void clothes_line(struct clothes *c, const char *s, size_t len, uint64_t number);
void clothes_end(struct clothes *c);	/* nothing follows */

#endif
