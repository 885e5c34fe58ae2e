/* SPDX-License-Identifier: Apache-2.0
 * What is known about a code, as text and as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "knowledge/kb.h"
#include "show/code.h"
#include "show/report_wrap.h"

/* Takes the next id from a list "a, b". */
static const struct cause *listed_cause(const char **list)
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
		fprintf(out, "  CUDA error %d%s%s\n", c->number, c->other[0] ? ", runtime name " : "", c->other);
	else if (c->number >= 0 && strcmp(c->family, "Xid") != 0)
		fprintf(out, "  status %d of %s\n", c->number, c->family);
	if (c->says[0])
		wrap_plain(&w, 2, c->says);
	putc('\n', out);
	if (c->note[0])
		wrap_plain(&w, 2, c->note);
	if (c->sticky)
		wrap_plain(&w, 2, "The context is lost: every later call in the process fails the same way, and the call that reports it is "
				  "rarely the one to blame.");
	if (!*list) {
		wrap_plain(
			&w, 2,
			"This code alone does not name a cause: the lines around it in the log say more (cuwhy explain LOG).");
		return;
	}
	putc('\n', out);
	wrap_heading(&w, "Common causes");
	while ((cause = listed_cause(&list)) != NULL) {
		fprintf(out, "  %s\n", AT(cause->id));
		wrap_plain(&w, 4, AT(cause->title));
		if (AT(cause->settle))
			wrap_plain(&w, 4, AT(cause->settle));
	}
	fputs("\n  'cuwhy explain CAUSE' says more.\n", out);
}

void report_code_json(FILE *out, const struct code *c)
{
	const struct cause *cause, *first = NULL;
	const char *list = c->causes;
	json_t *causes = json_array();

	while ((cause = listed_cause(&list)) != NULL) {
		first = first ? first : cause;
		json_array_append_new(causes, JSON_OF(J_TEXT("cause", AT(cause->id)), J_TEXT("certainty", "possible"),
					      J_TEXT("title", AT(cause->title)), J_TEXT("settle", AT(cause->settle))));
	}
	json_print(out, JSON_OF(J_INT("schema", 1), J_TEXT("cause", first ? AT(first->id) : "unknown"),
				J_TEXT("certainty", "possible"), J_TEXT("title", c->says[0] ? c->says : c->note),
				J_VALUE("error", JSON_OF(J_INT_OR_NULL("code", c->number >= 0, c->number),
							 J_TEXT("name", c->name), J_NULL("api"))),
				J_VALUE("code", JSON_OF(J_TEXT("family", c->family),
							J_TEXT("other_name", c->other[0] ? c->other : NULL),
							J_TEXT("meaning", c->says[0] ? c->says : NULL),
							J_TEXT("note", c->note), J_BOOL("sticky", c->sticky))),
				J_VALUE("candidates", causes)));
}
