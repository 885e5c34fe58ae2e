/* SPDX-License-Identifier: Apache-2.0
 * Reads the cause files (docs/cause-files.md): line by line, every expression and template compiled at once.
 */
#include "rules/kb.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define SECTION_MAX (16 << 10)

enum section { SECTION_BEFORE, SECTION_HEADER, SECTION_TEXT, SECTION_WHY, SECTION_FIX, SECTION_CONFUSED, SECTION_SETTLE, SECTION_EXAMPLE,
	       SECTION_PROGRAM };

struct reader {
	struct kb *kb;
	struct cause *cause;
	struct err *e;
	enum section section;
	int line;
	struct buf text;		/* the prose, or the sentence, being read */
	struct buf command;
	struct when *when;		/* whose expression may go on */
	bool in_because;
};

static int complain(struct reader *r, const char *why)
{
	char reason[200];

	str_copy(reason, sizeof(reason), why);
	return err_set(r->e, -EINVAL, "kb/causes/%s.md line %d: %s", r->cause->id, r->line, reason);
}

/* The reason is in r->e already: put the file and line before it. */
static int complain_inner(struct reader *r)
{
	char reason[240];

	str_copy(reason, sizeof(reason), r->e ? r->e->msg : "");
	return complain(r, reason);
}

static const char *trim(char *s)
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
	char *copy = pool_strdup(&r->kb->pool, trim(b->data ? b->data : (char[1]){ 0 }));

	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
	return copy;
}

static bool parse_sureness(const char *word, enum sureness *sure)
{
	static const char *const words[] = { "possible", "likely", "certain" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(word, words[i])) {
			*sure = (enum sureness)i;
			return true;
		}
	}
	return false;
}

static int compile_when(struct reader *r)
{
	struct when *w = r->when;

	r->when = NULL;
	r->in_because = false;
	if (!w)
		return 0;
	w->expr = expr_parse(&r->kb->pool, w->text, strlen(w->text), r->e);
	if (!w->expr)
		return complain_inner(r);
	if (expr_type(w->expr) != TYPE_FLAG)
		return complain(r, "when needs a yes or no");
	return 0;
}

/* "likely", or "likely 15": with a rank of its own. */
static int add_when(struct reader *r, const char *sure, const char *text)
{
	struct when **tail = &r->cause->when, *w = pool_alloc(&r->kb->pool, sizeof(*w));
	char word[16];
	size_t len = strcspn(sure, " ");

	w->rank = sure[len] ? (int)strtol(sure + len, NULL, 10) : -1;
	str_copy(word, len + 1 < sizeof(word) ? len + 1 : sizeof(word), sure);
	if (!parse_sureness(word, &w->sure))
		return complain(r, "when needs certain, likely or possible");
	w->text = pool_strdup(&r->kb->pool, text);
	while (*tail)
		tail = &(*tail)->next;
	*tail = r->when = w;
	return 0;
}

/* An indented header line goes on with the `when` above, or says why it is convincing. */
static int continue_when(struct reader *r, const char *text)
{
	if (!r->when)
		return complain(r, "an indented line belongs to a when");
	if (str_starts(text, "because:")) {
		struct when *w = r->when;

		text += strlen("because:");
		while (*text == ' ')
			text++;
		w->because = template_parse(&r->kb->pool, text, strlen(text), r->e);
		r->in_because = true;
		return w->because ? 0 : complain_inner(r);
	}
	if (r->in_because)
		return complain(r, "because has one line");
	r->when->text = pool_printf(&r->kb->pool, "%s %s", r->when->text, text);
	return 0;
}

/* The end of a guard "[…]", texts in quotes skipped. */
static const char *guard_end(const char *s)
{
	bool quoted = false;

	for (; *s; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (*s == ']' && !quoted)
			return s;
	}
	return NULL;
}

static int parse_guard(struct reader *r, struct advice *a, const char **text)
{
	const char *end;

	if (**text != '[')
		return 0;
	end = guard_end(*text + 1);
	if (!end)
		return complain(r, "[ without ]");
	a->guard_text = pool_copy(&r->kb->pool, *text + 1, (size_t)(end - *text - 1));
	a->guard = expr_parse(&r->kb->pool, a->guard_text, strlen(a->guard_text), r->e);
	if (!a->guard)
		return complain_inner(r);
	if (expr_type(a->guard) != TYPE_FLAG)
		return complain(r, "a guard needs a yes or no");
	*text = end + 1;
	while (**text == ' ')
		(*text)++;
	return 0;
}

static int add_headline(struct reader *r, const char *text)
{
	struct advice **tail = &r->cause->headline, *a = pool_alloc(&r->kb->pool, sizeof(*a));

	if (parse_guard(r, a, &text))
		return -EINVAL;
	a->text = template_parse(&r->kb->pool, text, strlen(text), r->e);
	if (!a->text)
		return complain_inner(r);
	while (*tail)
		tail = &(*tail)->next;
	*tail = a;
	return 0;
}

static int header_key(struct reader *r, const char *key, const char *value)
{
	struct pool *pool = &r->kb->pool;

	if (!strcmp(key, "id"))
		return strcmp(value, r->cause->id) ? complain(r, "the id is not the file's name") : 0;
	if (!strcmp(key, "title"))
		return r->cause->title = pool_strdup(pool, value), 0;
	if (!strcmp(key, "rank"))
		return r->cause->rank = (int)strtol(value, NULL, 10), 0;
	if (!strcmp(key, "check"))
		return r->cause->check = pool_strdup(pool, value), 0;
	if (!strcmp(key, "program"))
		return r->cause->program = pool_strdup(pool, value), 0;
	if (!strcmp(key, "over"))
		return r->cause->over = pool_printf(pool, ", %s, ", value), 0;
	if (!strcmp(key, "headline"))
		return add_headline(r, value);
	if (str_starts(key, "when "))
		return add_when(r, key + strlen("when "), value);
	return complain(r, "unknown key (id, title, headline, rank, over, check, program, when certain|likely|possible)");
}

static int read_header(struct reader *r, char *line)
{
	char *colon;

	if (!line[0])
		return 0;
	if (isspace((unsigned char)line[0]))
		return continue_when(r, trim(line));
	if (compile_when(r))
		return r->e ? r->e->code : -EINVAL;
	colon = strchr(line, ':');
	if (!colon)
		return complain(r, "a header line is 'key: value'");
	*colon = '\0';
	return header_key(r, trim(line), trim(colon + 1));
}

/* The sentence collected so far is complete. */
static int finish_advice(struct reader *r)
{
	const char *text = take_text(r, &r->text), *command = take_text(r, &r->command);
	struct advice **tail = r->section == SECTION_WHY ? &r->cause->why : &r->cause->fix;
	struct advice *a = pool_alloc(&r->kb->pool, sizeof(*a));

	if (!text[0])
		return command[0] ? complain(r, "a command without a sentence") : 0;
	if (parse_guard(r, a, &text))
		return -EINVAL;
	a->text = template_parse(&r->kb->pool, text, strlen(text), r->e);
	if (command[0])
		a->command = template_parse(&r->kb->pool, command, strlen(command), r->e);
	if (!a->text || (command[0] && !a->command))
		return complain_inner(r);
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
		return complain(
			r, "a sentence begins with '- ', goes on with two spaces, its command with four");
	if (line[0]) {
		buf_adds(&r->text, " ");
		buf_adds(&r->text, trim(line));
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
		return complain(r, "unknown section (Why, Fix, Not to be confused with, What would settle it, Example)");
	return 0;
}

static int read_line(struct reader *r, char *line)
{
	r->line++;
	if (!strcmp(line, "---") && r->section <= SECTION_HEADER) {
		if (compile_when(r))
			return -EINVAL;
		r->section++;
		return 0;
	}
	if (r->section == SECTION_BEFORE)
		return 0;	/* the licence line */
	if (r->section == SECTION_HEADER)
		return read_header(r, line);
	if (str_starts(line, "## "))
		return start_section(r, line + 3);
	if (r->section == SECTION_WHY || r->section == SECTION_FIX)
		return read_advice(r, line);
	if (r->section >= SECTION_EXAMPLE) {
		if (line[0] && !str_starts(line, "    "))
			return complain(r, "an example or program is indented by four spaces");
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
		return complain(r, "the header does not end");
	if (finish_section(r))
		return -EINVAL;
	if (!r->cause->title || !r->cause->definition || !r->cause->definition[0])
		return complain(r, "a cause needs a title and a definition");
	if (r->cause->program && (!r->cause->program_text || !r->cause->program_text[0]))
		return complain(r, "the program that the header names was not put in (tools/make_kb.sh)");
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
