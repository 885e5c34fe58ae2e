/* SPDX-License-Identifier: Apache-2.0
 * Texts that are stored once per page (see page_words.h).
 */
#include "show/page_words.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "case/line.h"

#define WORD_MAX	480	/* bytes: names of C++ functions go on for pages */
#define WORDS_MAX	4000	/* of a process */

void page_words_init(struct page_words *w)
{
	w->list = json_array();
	w->index = json_object();
}

void page_words_release(struct page_words *w)
{
	json_decref(w->list);
	json_decref(w->index);
}

int page_words_add(struct page_words *w, const char *text)
{
	char cut[WORD_MAX + 1];
	json_t *word, *at;
	int n;

	if (!text)
		return -1;
	snprintf(cut, sizeof(cut), "%s", text);
	word = json_text(cut);
	at = json_object_get(w->index, json_string_value(word));
	n = at ? (int)json_integer_value(at) : (int)json_array_size(w->list);
	if (at || n == WORDS_MAX) {
		json_decref(word);
		return at ? n : -1;
	}
	JSON_ADD(w->index, J_INT(json_string_value(word), n));
	json_array_append_new(w->list, word);
	return n;
}

int page_words_place(struct page_words *w, const struct place *p, const char *cwd)
{
	char text[WORD_MAX + 1];
	const char *function = p->function && p->function[0] && p->function[0] != '<' ? function_base(p->function) : NULL;

	if (!p->file)
		return -1;
	snprintf(text, sizeof(text), "%s:%" PRIu32 "%s%s", file_shown(p->file, cwd), p->line, function ? " in " : "",
		 function ? function : "");
	return page_words_add(w, text);
}
