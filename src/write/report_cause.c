/* SPDX-License-Identifier: Apache-2.0
 * What is known about a cause, for `cuwhy explain CAUSE` and `cuwhy explain --list`.
 */
#include <stdlib.h>
#include <string.h>

#include "write/report.h"
#include "write/report_wrap.h"
#include "rules/kb.h"

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
	for (; a; a = a->next) {
		wrap_plain(w, 2, template_text(a->text));
		if (a->guard_text) {
			fputs("    when ", w->out);
			wrap_plain(w, 0, a->guard_text);
		}
		if (a->command)
			wrap_command(w, template_text(a->command));
	}
}

static void print_rules(struct wrap *w, const struct when *when)
{
	static const char *const words[] = {"possible", "likely", "certain"};

	if (!when)
		return;
	putc('\n', w->out);
	wrap_heading(w, "How it is recognized");
	for (; when; when = when->next) {
		fprintf(w->out, "  %-8s  ", words[when->sure]);
		wrap_plain(w, 0, when->text);
	}
}

bool report_cause(FILE *out, const char *id, const struct text_style *style)
{
	const struct cause *c = kb_find(kb_get(), id);
	struct wrap w;

	if (!c)
		return false;
	wrap_init(&w, out, style);
	wrap_heading(&w, c->id);
	wrap_plain(&w, 2, c->title);
	putc('\n', out);
	print_prose(&w, c->definition);
	print_advice(&w, "What it looks like", c->why);
	print_advice(&w, "What to try", c->fix);
	print_rules(&w, c->when);
	if (c->settle) {
		putc('\n', out);
		wrap_heading(&w, "What would settle it");
		print_prose(&w, c->settle);
	}
	if (c->confused) {
		putc('\n', out);
		wrap_heading(&w, "Not to be confused with");
		print_prose(&w, c->confused);
	}
	if (c->example) {
		putc('\n', out);
		wrap_heading(&w, "Example");
		wrap_command(&w, c->example);
	}
	if (c->program) {
		putc('\n', out);
		wrap_heading(&w, "A program that shows it");
		wrap_code(&w, 0, c->program_text);	/* not indented: it can be pasted as it is */
	}
	return true;
}

void report_cause_list(FILE *out)
{
	for (const struct cause *c = kb_get()->first; c; c = c->next)
		fprintf(out, "%-34s %s\n", c->id, c->title);
}
