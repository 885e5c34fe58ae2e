/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy explain`.
 */
#ifndef CUWHY_EXPLAIN_H
#define CUWHY_EXPLAIN_H

#include <stdbool.h>

#include "base/term.h"

struct text_style;

struct explain_options {
	bool json, quiet;
	enum colour colour;
};

/* Does the word name something that can be read: a file, a folder, "-", or is it a text by itself? */
bool explain_is_input(const char *word);

/* Judges all of them together; an exit status. */
int explain_inputs(char **words, int n, const struct explain_options *o, struct text_style *style);

/* A number, a name of a code or a status, an Xid: false when it is none. Several words make one, too: "Xid" "79". */
bool explain_is_code(char **words, int n);
int explain_code(char **words, int n, const struct explain_options *o, const struct text_style *style);

#endif
