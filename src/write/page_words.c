/* SPDX-License-Identifier: Apache-2.0
 * Small values of a page, and texts that stand in it once.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/json_text.h"
#include "write/page_priv.h"

#define WORD_MAX	480	/* bytes: names of C++ functions go on for pages */
#define WORDS_MAX	4000	/* of a process */

void words_init(struct page_words *w)
{
	w->list = json_array();
	w->index = json_object();
}

void words_release(struct page_words *w)
{
	json_decref(w->list);
	json_decref(w->index);
}

int words_add(struct page_words *w, const char *text)
{
	char cut[WORD_MAX + 1];
	const char *key;
	json_t *word, *at;
	int n;

	if (!text)
		return -1;
	snprintf(cut, sizeof(cut), "%s", text);
	word = json_text(cut);
	key = json_string_value(word);
	at = json_object_get(w->index, key);
	if (at) {
		n = (int)json_integer_value(at);
		json_decref(word);
		return n;
	}
	n = (int)json_array_size(w->list);
	if (n == WORDS_MAX) {
		json_decref(word);
		return -1;
	}
	json_object_set_new(w->index, key, json_integer(n));
	json_array_append_new(w->list, word);
	return n;
}

int words_place(struct page_words *w, const struct place *p, const char *cwd)
{
	char text[WORD_MAX + 1];
	const char *function = p->function && p->function[0] && p->function[0] != '<' ? function_base(p->function) : NULL;

	if (!p->file)
		return -1;
	snprintf(text, sizeof(text), "%s:%" PRIu32 "%s%s", file_shown(p->file, cwd), p->line, function ? " in " : "",
		 function ? function : "");
	return words_add(w, text);
}

json_t *page_address(uint64_t address)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	return json_string(text);
}

json_t *page_integer(uint64_t n)
{
	return json_bytes(n);
}

__attribute__((format(printf, 2, 0))) static void say(json_t *list, const char *fmt, va_list ap)
{
	char *text = xvasprintf(fmt, ap);

	json_array_append_new(list, json_text(text));
	free(text);
}

void page_say(json_t *list, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(list, fmt, ap);
	va_end(ap);
}

void page_tell(struct page *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(p->missing, fmt, ap);
	va_end(ap);
}
