/* SPDX-License-Identifier: Apache-2.0
 * Man pages and completions, made of the tables that -h prints.
 */
#ifndef CUWHY_DOCUMENT_H
#define CUWHY_DOCUMENT_H

#include <stddef.h>
#include <stdio.h>

struct cmd;
struct opt;
struct opt_table;

/* NULL: of cuwhy itself. */
void man_write(FILE *out, const struct cmd *c);

/* `causes`: ids of all causes. */
void complete_bash(FILE *out, char **causes, size_t n);
void complete_zsh(FILE *out, char **causes, size_t n);
void complete_fish(FILE *out, char **causes, size_t n);

/* The words that an option takes; NULL = any. */
const char *option_words(const struct opt_table *t, const struct opt *o);

#endif
