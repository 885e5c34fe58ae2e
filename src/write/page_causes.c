/* SPDX-License-Identifier: Apache-2.0
 * The causes that a page names (see page_causes.h).
 */
#include "write/page_causes.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "judge/verdict.h"
#include "rules/cause_page.h"
#include "rules/kb.h"
#include "write/report.h"

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
static void put_cause(json_t *list, const json_t *named)
{
	const char *id = json_string_value(json_object_get(named, "cause"));

	if (id && json_array_size(list) < PAGE_CAUSES_MAX && !has_cause(list, id) && kb_find(kb_get(), id))
		json_array_append_new(list, report_cause_words(id));
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
	return out;
}
