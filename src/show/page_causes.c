/* SPDX-License-Identifier: Apache-2.0
 * The causes that a page names (see page_causes.h).
 */
#include "show/page_causes.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "verdict/verdict.h"
#include "verdict/rules/cause_page.h"
#include "knowledge/kb.h"
#include "show/report.h"

static bool has_cause(const json_t *list, const char *id)
{
	const json_t *c;
	size_t i;

	json_array_foreach(list, i, c)
		if (!strcmp(json_string_value(json_object_get(c, "id")), id))
			return true;
	return false;
}

/* Unless it is not known here: a verdict may be from another cuwhy. */
static void put_id(json_t *list, const char *id)
{
	if (id && json_array_size(list) < PAGE_CAUSES_MAX && !has_cause(list, id) && kb_find(kb_get(), id))
		json_array_append_new(list, report_cause_words(id));
}

static void put_cause(json_t *list, const json_t *named)
{
	put_id(list, json_string_value(json_object_get(named, "cause")));
}

/* Texts of ranks are numbers of words; the first rank comes first. */
static void put_causes_of_job(json_t *out, const json_t *job)
{
	const json_t *words = json_object_get(job, "words"), *one, *other;
	const char *cause = json_string_value(json_object_get(job, "cause"));
	size_t i, k;

	if (cause && strcmp(cause, "unknown") != 0)	/* the page says that in words of its own */
		put_id(out, cause);
	json_array_foreach(json_object_get(job, "ranks"), i, one) {
		const json_t *n = json_object_get(one, "cause");

		if (json_is_integer(n))
			put_id(out, json_string_value(json_array_get(words, (size_t)json_integer_value(n))));
	}
	json_array_foreach(json_object_get(job, "verdicts"), i, one) {
		const json_t *verdict = json_object_get(one, "verdict");

		put_cause(out, verdict);
		json_array_foreach(json_object_get(verdict, "candidates"), k, other)
			put_cause(out, other);
	}
}

json_t *page_causes(const json_t *data)
{
	static const char *const lists[] = {"candidates", "others", "notes", "checks"};
	const json_t *verdict = json_object_get(data, "verdict"), *one;
	json_t *out = json_array();
	size_t i;

	put_cause(out, verdict);
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
		json_array_foreach(json_object_get(verdict, lists[k]), i, one)
			put_cause(out, one);
	json_array_foreach(json_object_get(data, "processes"), i, one)
		put_cause(out, one);
	put_causes_of_job(out, json_object_get(data, "job"));
	return out;
}
