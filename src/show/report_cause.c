/* SPDX-License-Identifier: Apache-2.0
 * What is known about a cause, for `cuwhy explain CAUSE` and `cuwhy explain --list`.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "case/case.h"
#include "verdict/verdict.h"
#include "verdict/rules/cause_page.h"
#include "knowledge/kb.h"
#include "show/report.h"
#include "show/report_wrap.h"

/* The files wrap their prose: here each paragraph becomes one line again. */
static void print_prose(struct wrap *w, const char *text)
{
	char *paragraph = NULL;
	size_t size = 0;
	FILE *p = open_memstream(&paragraph, &size);

	if (!p)
		return;
	for (const char *s = text; *s; s++) {
		bool item = *s == '\n' && s[1] == '`';

		if (*s == '\n' && s[1] != '\n' && !item && s != text && s[-1] != '\n')
			putc(' ', p);
		else
			putc(*s, p);
	}
	if (!fclose(p))
		wrap_plain(w, 2, paragraph);
	free(paragraph);
}

static void print_advice(struct wrap *w, const char *heading, const struct advice *a)
{
	if (!a)
		return;
	putc('\n', w->out);
	wrap_heading(w, heading);
	for (; a; a = AT(a->next)) {
		wrap_plain(w, 2, AT(AT(a->text)->text));
		if (AT(a->guard_text)) {
			fputs("    when ", w->out);
			wrap_plain(w, 0, AT(a->guard_text));
		}
		if (AT(a->command))
			wrap_command(w, AT(AT(a->command)->text));
	}
}

static void print_rules(struct wrap *w, const struct when *when)
{
	static const char *const words[] = {"possible", "likely", "certain"};

	if (!when)
		return;
	putc('\n', w->out);
	wrap_heading(w, "Rules");
	for (; when; when = AT(when->next)) {
		fprintf(w->out, "  %-8s  ", words[when->sure]);
		wrap_plain(w, 0, AT(when->text));
	}
}

bool report_cause_rules(FILE *out, const char *id, const struct text_style *style)
{
	const struct cause *c = kb_find(kb_get(), id);
	struct wrap w;

	if (!c)
		return false;
	wrap_init(&w, out, style);
	wrap_heading(&w, AT(c->id));
	wrap_plain(&w, 2, AT(c->title));
	print_rules(&w, AT(c->when));
	print_advice(&w, "Sentences", AT(c->why));
	print_advice(&w, "Fixes", AT(c->fix));
	return true;
}

static void print_heading(struct wrap *w, const char *heading)
{
	putc('\n', w->out);
	wrap_heading(w, heading);
}

static void print_reasons(struct wrap *w, const struct said *s)
{
	const char *certainty = "";

	if (s)
		print_heading(w, "How it is recognized");
	for (; s; s = s->next) {
		if (strcmp(certainty, s->source) != 0)
			wrap_plain(w, 2, s->source);
		certainty = s->source;
		wrap_plain(w, 4, s->text);
	}
}

static void print_fixes(struct wrap *w, const struct said *s)
{
	if (s)
		print_heading(w, "What to try");
	for (; s; s = s->next) {
		wrap_plain(w, 2, s->text);
		if (s->command)
			wrap_command(w, s->command);
	}
}

static void print_section(struct wrap *w, const char *heading, const char *prose)
{
	if (!prose)
		return;
	print_heading(w, heading);
	print_prose(w, prose);
}

static void print_example(struct wrap *w, const struct cause *c, const struct verdict *answer)
{
	if (!AT(c->example))
		return;
	print_heading(w, "Example");
	wrap_code(w, 4, AT(c->example));
	if (!answer)
		return;
	print_heading(w, "What cuwhy says about it");
	wrap_plain(w, 2, answer->title);
	for (const struct said *s = answer->why; s; s = s->next)
		wrap_plain(w, 4, s->text);
}

bool report_cause(FILE *out, const char *id, const struct verdict *answer, const struct text_style *style)
{
	const struct cause *c = kb_find(kb_get(), id);
	struct pool pool = {0};
	struct wrap w;

	if (!c)
		return false;
	wrap_init(&w, out, style);
	wrap_heading(&w, AT(c->id));
	wrap_plain(&w, 2, AT(c->title));
	putc('\n', out);
	print_prose(&w, AT(c->definition));
	print_reasons(&w, cause_reasons(c, &pool));
	print_fixes(&w, cause_fixes(c, &pool));
	print_section(&w, "What would settle it", AT(c->settle));
	print_section(&w, "Not to be confused with", AT(c->confused));
	print_example(&w, c, answer);
	if (AT(c->program)) {
		print_heading(&w, "A program that shows it");
		wrap_code(&w, 0, AT(c->program_text));	/* not indented: it can be pasted as it is */
	}
	pool_release(&pool);
	return true;
}

static json_t *reasons_json(const struct said *s)
{
	json_t *list = json_array();

	for (; s; s = s->next)
		json_array_append_new(list, JSON_OF(J_TEXT("certainty", s->source), J_TEXT("because", s->text)));
	return list;
}

static json_t *fixes_json(const struct said *s)
{
	json_t *list = json_array();

	for (; s; s = s->next)
		json_array_append_new(list, JSON_OF(J_TEXT("text", s->text), J_TEXT("command", s->command)));
	return list;
}

static json_t *example_json(const struct cause *c, const struct verdict *answer)
{
	json_t *why = json_array();

	if (!AT(c->example)) {
		json_decref(why);
		return json_null();
	}
	for (const struct said *s = answer ? answer->why : NULL; s; s = s->next)
		json_array_append_new(why, json_text(s->text));
	return JSON_OF(J_TEXT("text", AT(c->example)), J_TEXT("title", answer ? answer->title : NULL),
		       J_VALUE("why", why));
}

json_t *report_cause_words(const char *id)
{
	const struct cause *c = kb_find(kb_get(), id);
	struct pool pool = {0};
	json_t *j;

	j = JSON_OF(J_TEXT("id", id), J_TEXT("title", AT(c->title)), J_TEXT("definition", AT(c->definition)),
		    J_VALUE("reasons", reasons_json(cause_reasons(c, &pool))),
		    J_VALUE("fix", fixes_json(cause_fixes(c, &pool))), J_TEXT("settle", AT(c->settle)),
		    J_TEXT("confused", AT(c->confused)));
	pool_release(&pool);
	return j;
}

json_t *report_cause_json(const char *id, const char *text, const struct verdict *answer)
{
	const struct cause *c = kb_find(kb_get(), id);
	json_t *j = JSON_OF(J_INT("schema", 1), J_TEXT("id", id), J_TEXT("text", text)), *words = report_cause_words(id);

	json_object_update(j, words);
	json_decref(words);
	JSON_ADD(j, J_VALUE("example", example_json(c, answer)), J_TEXT("program", AT(c->program_text)));
	return j;
}

void report_cause_list(FILE *out)
{
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next))
		fprintf(out, "%-34s %s\n", AT(c->id), AT(c->title));
}
