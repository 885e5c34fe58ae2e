/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain CODE`: what is known of an error code, a status or an Xid.
 */
#include <string.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "write/code.h"
#include "base/banned.h"

#define WORDS_MAX 128

/* "Xid" "79" -> "Xid 79". False when that is longer than any code. */
static bool join(char *to, size_t size, char **words, int n)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		if (at + strlen(words[i]) + 2 > size)
			return false;
		at += (size_t)snprintf(to + at, size - at, "%s%s", i ? " " : "", words[i]);
	}
	return true;
}

bool explain_is_code(char **words, int n)
{
	char word[WORDS_MAX];
	struct code c;

	return join(word, sizeof(word), words, n) && code_find(&c, word);
}

int explain_code(char **words, int n, const struct explain_options *o, const struct text_style *style)
{
	char word[WORDS_MAX];
	struct code c;

	if (!join(word, sizeof(word), words, n) || !code_find(&c, word))
		return EXIT_TROUBLE;
	if (o->json)
		report_code_json(stdout, &c);
	else
		report_code(stdout, &c, style);
	return cmd_finish(EXIT_NOTHING);
}
