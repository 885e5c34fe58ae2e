/* SPDX-License-Identifier: Apache-2.0
 * What is known of a code, as text and as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "write/report.h"
#include "write/code.h"
#include "base/json_text.h"
#include "write/report_wrap.h"
#include "rules/kb.h"

/* Cuts the next id off a list "a, b". */
static const struct cause *next_cause(const char **list)
{
	char id[96];
	size_t n;

	*list += strspn(*list, ", ");
	n = strcspn(*list, ", ");
	if (!n || n >= sizeof(id))
		return NULL;
	memcpy(id, *list, n);
	id[n] = '\0';
	*list += n;
	return kb_find(kb_get(), id);
}

void report_code(FILE *out, const struct code *c, const struct text_style *style)
{
	const struct cause *cause;
	const char *list = c->causes;
	struct wrap w;

	wrap_init(&w, out, style);
	wrap_heading(&w, c->name);
	if (!strcmp(c->family, "CUDA"))
		fprintf(out, "  CUDA error %d%s%s\n", c->number, c->other[0] ? ", in the runtime " : "", c->other);
	else if (c->number >= 0 && strcmp(c->family, "Xid") != 0)
		fprintf(out, "  status %d of %s\n", c->number, c->family);
	if (c->says[0])
		wrap_plain(&w, 2, c->says);
	putc('\n', out);
	if (c->note[0])
		wrap_plain(&w, 2, c->note);
	if (c->sticky)
		wrap_plain(&w, 2, "The context is lost: every later call of the process fails the same way, and the call that reports it is "
				  "rarely the one to blame.");
	if (!*list) {
		wrap_plain(&w, 2, "No cause of its own: what stands around it in the log tells more (cuwhy explain LOG).");
		return;
	}
	putc('\n', out);
	wrap_heading(&w, "It is met with");
	while ((cause = next_cause(&list)) != NULL) {
		fprintf(out, "  %s\n", cause->id);
		wrap_plain(&w, 4, cause->title);
		if (cause->settle)
			wrap_plain(&w, 4, cause->settle);
	}
	fputs("\n  'cuwhy explain CAUSE' tells more.\n", out);
}

void report_code_json(FILE *out, const struct code *c)
{
	const struct cause *cause, *first = NULL;
	const char *list = c->causes;
	json_t *o = json_object(), *causes = json_array();

	while ((cause = next_cause(&list)) != NULL) {
		first = first ? first : cause;
		json_array_append_new(causes, json_pack("{s:s,s:s,s:o,s:o}", "cause", cause->id, "certainty", "possible", "title",
							json_text(cause->title), "settle", json_text(cause->settle)));
	}
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "cause", json_string(first ? first->id : "unknown"));
	json_object_set_new(o, "certainty", json_string("possible"));
	json_object_set_new(o, "title", json_text(c->says[0] ? c->says : c->note));
	json_object_set_new(o, "error", json_pack("{s:o,s:o,s:o}", "code", c->number >= 0 ? json_integer(c->number) : json_null(), "name",
						  json_text(c->name), "api", json_null()));
	json_object_set_new(o, "code", json_pack("{s:s,s:o,s:o,s:o,s:b}", "family", c->family, "other_name", json_text(c->other[0] ? c->other : NULL),
						 "meaning", json_text(c->says[0] ? c->says : NULL), "note", json_text(c->note), "sticky", c->sticky));
	json_object_set_new(o, "candidates", causes);
	json_dumpf(o, out, JSON_COMPACT);
	putc('\n', out);
	json_decref(o);
}
