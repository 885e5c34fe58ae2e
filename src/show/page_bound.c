/* SPDX-License-Identifier: Apache-2.0
 * Keeps the page small (see page_parts.h): texts are cut, parts and processes left out, and the page says so.
 */
#include "show/page_parts.h"

#include <string.h>

#include "base/json.h"
#include "show/page.h"

#define STRING_MAX	4000	/* bytes */
#define STRING_SHORT	200	/* if nothing else helps */

static bool is_long(const json_t *s, size_t most)
{
	return json_is_string(s) && json_string_length(s) > most + 4;
}

static json_t *shortened(const json_t *s, size_t n)
{
	char text[STRING_MAX + 8];

	memcpy(text, json_string_value(s), n);
	while (n && (text[n - 1] & 0xc0) == 0x80)
		n--;	/* never split a character */
	if (n && (text[n - 1] & 0x80))
		n--;
	memcpy(text + n, "\xe2\x80\xa6", 4);
	return json_string(text);
}

static void cut_strings(json_t *j, size_t most, int depth)
{
	const char *key;
	json_t *v;
	size_t i;

	if (depth > 64)
		return;
	if (json_is_object(j)) {
		json_object_foreach(j, key, v) {
			if (is_long(v, most))
				JSON_ADD(j, J_VALUE(key, shortened(v, most)));
			else
				cut_strings(v, most, depth + 1);
		}
	} else if (json_is_array(j)) {
		json_array_foreach(j, i, v) {
			if (is_long(v, most))
				json_array_set_new(j, i, shortened(v, most));
			else
				cut_strings(v, most, depth + 1);
		}
	}
}

static int count_bytes(const char *bytes, size_t n, void *sum)
{
	(void)bytes;
	*(size_t *)sum += n;
	return 0;
}

static size_t json_size(const json_t *j)
{
	size_t sum = 0;

	json_dump_callback(j, count_bytes, &sum, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	return sum;
}

/* Removes a part from a process's details, also from each of its devices. Returns the bytes saved. */
static size_t drop_part(json_t *row, const char *part)
{
	json_t *detail = json_object_get(row, "detail"), *d, *at = json_object_get(detail, part);
	size_t saved = at ? json_size(at) : 0, i;

	if (at)
		json_object_del(detail, part);
	json_array_foreach(json_object_get(detail, "devices"), i, d) {
		at = json_object_get(d, part);
		saved += at ? json_size(at) : 0;
		if (at)
			json_object_del(d, part);
	}
	return saved;
}

static void cut_parts(struct page *p, size_t size)
{
	static const struct {
		const char *part, *words;
	} parts[] = {
		{"blocks", "the lives of blocks"}, {"flame", "flame graphs"},
		{"what_if", "what-ifs"},	  {"map", "segment maps"}, {"launches", "last launches"},
		{"timeline", "memory over time"}, {"ledger", "ledgers"},   {"lanes", "threads that faulted"},
		{"sources", "lines of code"},
	};

	for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]) && size > PAGE_BYTES_MAX; k++) {
		size_t cut = 0;

		for (size_t i = json_array_size(p->processes); i > 0 && size > PAGE_BYTES_MAX; i--) {
			size_t saved = drop_part(json_array_get(p->processes, i - 1), parts[k].part);

			size -= saved < size ? saved : size;
			cut += saved > 0;
		}
		if (cut)
			page_tell(p, "left out, because the page would be too large: %s of %zu process%s",
				  parts[k].words, cut, cut == 1 ? "" : "es");
	}
}

/* Drops whole details, starting with the last process; the first one's fit. */
static void cut_details(struct page *p)
{
	size_t cut = 0;

	for (size_t i = json_array_size(p->processes); i > 1 && json_size(p->data) > PAGE_BYTES_MAX; i--)
		cut += json_object_del(json_array_get(p->processes, i - 1), "detail") == 0;
	if (cut)
		page_tell(p, "left out, because the page would be too large: details of %zu process%s", cut,
			  cut == 1 ? "" : "es");
}

static void cut_processes(struct page *p)
{
	size_t n = json_array_size(p->processes);

	while (json_array_size(p->processes) > 1 && json_size(p->data) > PAGE_BYTES_MAX)
		for (int i = 0; i < 16 && json_array_size(p->processes) > 1; i++)
			json_array_remove(p->processes, json_array_size(p->processes) - 1);
	if (json_array_size(p->processes) < n)
		page_tell(p, "not listed, because the page would be too large: %zu more process%s",
			  n - json_array_size(p->processes), n - json_array_size(p->processes) == 1 ? "" : "es");
}

/* A verdict is small, unless it was made large on purpose. */
static void cut_verdict(struct page *p)
{
	json_t *v = json_object_get(p->data, "verdict");

	if (json_size(p->data) <= PAGE_BYTES_MAX)
		return;
	cut_strings(p->data, STRING_SHORT, 0);
	page_tell(p, "long texts are cut: the page would be too large");
	if (json_size(p->data) > PAGE_BYTES_MAX) {
		json_object_del(v, "others");
		json_object_del(v, "notes");
		page_tell(p, "the verdicts of other processes are left out: the page would be too large");
	}
	if (json_size(p->data) > PAGE_BYTES_MAX)
		json_object_del(p->data, "verdict");
}

void page_bound(struct page *p)
{
	if (p->left_out)
		page_tell(p, "not listed: %zu more process%s", p->left_out, p->left_out == 1 ? "" : "es");
	p->left_out = 0;
	cut_strings(p->data, STRING_MAX, 0);
	cut_parts(p, json_size(p->data));
	cut_details(p);
	cut_processes(p);
	cut_verdict(p);
}
