/* SPDX-License-Identifier: Apache-2.0
 * Reads the cause files (docs/cause-files.md): line by line, every expression and template compiled at once.
 */
#include "rules/kb_reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define SECTION_MAX (16 << 10)

int reader_complain(struct reader *r, const char *why)
{
	char reason[200];

	str_copy(reason, sizeof(reason), why);
	return err_set(r->e, -EINVAL, "kb/causes/%s.md line %d: %s", r->cause->id, r->line, reason);
}

/* The reason is in r->e already: put the file and line before it. */
int reader_complain_inner(struct reader *r)
{
	char reason[240];

	str_copy(reason, sizeof(reason), r->e ? r->e->msg : "");
	return reader_complain(r, reason);
}

const char *reader_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

static char *take_text(struct reader *r, struct buf *b)
{
	char *copy = pool_strdup(&r->kb->pool, reader_trim(b->data ? b->data : (char[1]){ 0 }));

	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
	return copy;
}

/* The sentence collected so far is complete. */
static int finish_advice(struct reader *r)
{
	const char *text = take_text(r, &r->text), *command = take_text(r, &r->command);
	struct advice **tail = r->section == SECTION_WHY ? &r->cause->why : &r->cause->fix;
	struct advice *a = pool_alloc(&r->kb->pool, sizeof(*a));

	if (!text[0])
		return command[0] ? reader_complain(r, "a command without a sentence") : 0;
	if (reader_guard(r, a, &text))
		return -EINVAL;
	a->text = template_parse(&r->kb->pool, text, strlen(text), r->e);
	if (command[0])
		a->command = template_parse(&r->kb->pool, command, strlen(command), r->e);
	if (!a->text || (command[0] && !a->command))
		return reader_complain_inner(r);
	while (*tail)
		tail = &(*tail)->next;
	*tail = a;
	return 0;
}

static int read_advice(struct reader *r, char *line)
{
	if (str_starts(line, "- ")) {
		if (finish_advice(r))
			return -EINVAL;
		buf_adds(&r->text, line + 2);
		return 0;
	}
	if (str_starts(line, "    ")) {
		buf_adds(&r->command, r->command.len ? "\n" : "");
		buf_adds(&r->command, line + 4);
		return 0;
	}
	if (line[0] && !str_starts(line, "  "))
		return reader_complain(
			r, "a sentence begins with '- ', goes on with two spaces, its command with four");
	if (line[0]) {
		buf_adds(&r->text, " ");
		buf_adds(&r->text, reader_trim(line));
	}
	return 0;
}

static int finish_section(struct reader *r)
{
	switch (r->section) {
	case SECTION_WHY:
	case SECTION_FIX:
		return finish_advice(r);
	case SECTION_TEXT:
		r->cause->definition = take_text(r, &r->text);
		return 0;
	case SECTION_CONFUSED:
		r->cause->confused = take_text(r, &r->text);
		return 0;
	case SECTION_SETTLE:
		r->cause->settle = take_text(r, &r->text);
		return 0;
	case SECTION_EXAMPLE:
		r->cause->example = take_text(r, &r->text);
		return 0;
	case SECTION_PROGRAM:
		r->cause->program_text = take_text(r, &r->text);
		return 0;
	default:
		return 0;
	}
}

static int start_section(struct reader *r, const char *name)
{
	if (finish_section(r))
		return -EINVAL;
	if (!strcmp(name, "Why"))
		r->section = SECTION_WHY;
	else if (!strcmp(name, "Fix"))
		r->section = SECTION_FIX;
	else if (!strcmp(name, "Not to be confused with"))
		r->section = SECTION_CONFUSED;
	else if (!strcmp(name, "What would settle it"))
		r->section = SECTION_SETTLE;
	else if (!strcmp(name, "Example"))
		r->section = SECTION_EXAMPLE;
	else if (!strcmp(name, "Program") && r->cause->program)
		r->section = SECTION_PROGRAM;
	else
		return reader_complain(r, "unknown section (Why, Fix, Not to be confused with, What would settle it, Example)");
	return 0;
}

static int read_line(struct reader *r, char *line)
{
	r->line++;
	if (!strcmp(line, "---") && r->section <= SECTION_HEADER) {
		if (reader_when_end(r))
			return -EINVAL;
		r->section++;
		return 0;
	}
	if (r->section == SECTION_BEFORE)
		return 0;	/* the licence line */
	if (r->section == SECTION_HEADER)
		return reader_header(r, line);
	if (str_starts(line, "## "))
		return start_section(r, line + 3);
	if (r->section == SECTION_WHY || r->section == SECTION_FIX)
		return read_advice(r, line);
	if (r->section >= SECTION_EXAMPLE) {
		if (line[0] && !str_starts(line, "    "))
			return reader_complain(r, "an example or program is indented by four spaces");
		line += line[0] ? 4 : 0;
	}
	buf_adds(&r->text, line);
	buf_adds(&r->text, "\n");
	return 0;
}

static int finish_cause(struct reader *r)
{
	struct cause **at = &r->kb->first;

	if (!r->cause)
		return 0;
	if (r->section < SECTION_TEXT)
		return reader_complain(r, "the header does not end");
	if (finish_section(r))
		return -EINVAL;
	if (!r->cause->title || !r->cause->definition || !r->cause->definition[0])
		return reader_complain(r, "a cause needs a title and a definition");
	if (r->cause->program && (!r->cause->program_text || !r->cause->program_text[0]))
		return reader_complain(r, "the program that the header names was not put in (tools/make_kb.sh)");
	while (*at && strcmp((*at)->id, r->cause->id) < 0)
		at = &(*at)->next;
	r->cause->next = *at;
	*at = r->cause;
	r->kb->n++;
	return 0;
}

static int start_cause(struct reader *r, const char *id)
{
	if (finish_cause(r))
		return -EINVAL;
	r->cause = pool_alloc(&r->kb->pool, sizeof(*r->cause));
	r->cause->id = pool_strdup(&r->kb->pool, id);
	r->cause->rank = 50;
	r->section = SECTION_BEFORE;
	r->line = 0;
	return 0;
}

static int read_blob(struct reader *r, char *blob)
{
	char *line, *next = blob;

	while ((line = strsep(&next, "\n")) != NULL) {
		int rc;

		if (str_starts(line, "%%% "))
			rc = start_cause(r, line + 4);
		else
			rc = r->cause ? read_line(r, line) : 0;
		if (rc)
			return rc;
	}
	return finish_cause(r);
}

struct kb *kb_parse(const char *blob, size_t len, struct err *e)
{
	struct err own = { 0 };
	struct kb *kb = xcalloc(1, sizeof(*kb));
	struct reader r = { .kb = kb, .e = e ? e : &own };
	int rc;

	buf_init(&r.text, SECTION_MAX);
	buf_init(&r.command, SECTION_MAX);
	rc = read_blob(&r, pool_copy(&kb->pool, blob, len));
	buf_release(&r.text);
	buf_release(&r.command);
	if (!rc)
		return kb;
	kb_free(kb);
	return NULL;
}
