/* SPDX-License-Identifier: Apache-2.0
 * What is known about a cause or a code that is named (see explain.h).
 */
#include "cmd/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "find/input.h"
#include "find/input_text.h"
#include "find/words/log.h"
#include "knowledge/kb.h"
#include "show/code.h"
#include "show/report.h"
#include "verdict/source.h"
#include "verdict/verdict.h"

static int print_object(json_t *o)
{
	json_print(stdout, o);
	return cmd_finish(EXIT_NOTHING);
}

int explain_list(bool json)
{
	json_t *list;

	if (!json) {
		report_cause_list(stdout);
		return cmd_finish(EXIT_NOTHING);
	}
	list = json_array();
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next))
		json_array_append_new(
			list, json_pack("{s:o, s:o}", "id", json_text(AT(c->id)), "title", json_text(AT(c->title))));
	return print_object(json_pack("{s:i, s:o}", "schema", 1, "causes", list));
}

int explain_no_such(const char *word, bool json)
{
	const char **ids = xcalloc(kb_get()->n + 1, sizeof(*ids)), *near;
	struct err e = {0};
	size_t n = 0;

	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next))
		ids[n++] = AT(c->id);
	near = str_nearest(word, ids);
	err_set(&e, -ENOENT, "'%s' is not a file, a code or a cause", word);
	if (near)
		err_hint(&e, "did you mean '%s'? 'cuwhy explain --list' lists the causes", near);
	else
		err_hint(&e, "'cuwhy explain --list' lists the causes");
	free(ids);
	return cmd_fail(stdout, json, &e, EXIT_TROUBLE);
}

/* The answer about the cause's own example; NULL if it has none. */
static struct verdict *answer_example(const char *id)
{
	const struct cause *c = kb_find(kb_get(), id);
	struct source s = {.input = &input_text, .path = "the example"};
	struct text_source *text;
	const char *example = c ? AT(c->example) : NULL;
	struct verdict *v;

	if (!example)
		return NULL;
	s.it = text = text_source_new();
	log_read_text(text->log, s.path, example, strlen(example));
	log_finish(text->log);
	v = source_judge(&s, NULL);
	source_close(&s);
	return v;
}

int explain_cause(const char *id, bool json, bool rules, const struct text_style *style)
{
	struct verdict *answer = answer_example(id);
	char *text = NULL;
	size_t len = 0;
	FILE *f = json ? open_memstream(&text, &len) : stdout;
	bool known = f && (rules ? report_cause_rules(f, id, style) : report_cause(f, id, answer, style));
	int status;

	if (f && json)
		fclose(f);
	if (!known)
		status = explain_no_such(id, json);
	else if (json)
		status = print_object(report_cause_json(id, text, answer));
	else
		status = cmd_finish(EXIT_NOTHING);
	verdict_free(answer);
	free(text);
	return status;
}

#define WORDS_MAX 128

/* "Xid" "79" -> "Xid 79". False when that is longer than any code. */
static bool join_words(char *to, size_t size, char **words, int n)
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

	return join_words(word, sizeof(word), words, n) && code_find(&c, word);
}

int explain_code(char **words, int n, bool json, const struct text_style *style)
{
	char word[WORDS_MAX];
	struct code c;

	if (!join_words(word, sizeof(word), words, n) || !code_find(&c, word))
		return EXIT_TROUBLE;
	if (json)
		report_code_json(stdout, &c);
	else
		report_code(stdout, &c, style);
	return cmd_finish(EXIT_NOTHING);
}
