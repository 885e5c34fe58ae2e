/* SPDX-License-Identifier: Apache-2.0
 * The header of a cause file: its keys, and the expressions of its rules (docs/cause-files.md).
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "rules/kb_reader.h"

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

int reader_when_end(struct reader *r)
{
	struct when *w = r->when;

	r->when = NULL;
	r->in_because = false;
	if (!w)
		return 0;
	w->expr = expr_parse(&r->kb->pool, w->text, strlen(w->text), r->e);
	if (!w->expr)
		return reader_complain_inner(r);
	if (expr_type(w->expr) != TYPE_FLAG)
		return reader_complain(r, "when needs a yes or no");
	return 0;
}

/* Lower-case words joined by dashes, as the ids of causes are. */
static bool is_rule_id(const char *id)
{
	return islower((unsigned char)id[0]) && id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* "likely some-id", or "likely some-id 15": with a rank of its own. */
static int add_when(struct reader *r, const char *key, const char *text)
{
	struct when **tail = &r->cause->when, *w = pool_alloc(&r->kb->pool, sizeof(*w));
	char *next = pool_strdup(&r->kb->pool, key);
	const char *sure = strsep(&next, " "), *id = strsep(&next, " ");

	if (!parse_sureness(sure, &w->sure))
		return reader_complain(r, "when needs certain, likely or possible");
	if (!id || !is_rule_id(id))
		return reader_complain(r, "a rule needs an id of its own: when likely some-id: ...");
	w->id = id;
	w->rank = next ? (int)strtol(next, NULL, 10) : -1;
	w->text = pool_strdup(&r->kb->pool, text);
	for (; *tail; tail = &(*tail)->next)
		if (!strcmp((*tail)->id, id))
			return reader_complain(r, "two rules of this cause have the same id");
	*tail = r->when = w;
	return 0;
}

/* An indented header line goes on with the `when` above, or says why it is convincing. */
static int continue_when(struct reader *r, const char *text)
{
	if (!r->when)
		return reader_complain(r, "an indented line belongs to a when");
	if (str_starts(text, "because:")) {
		struct when *w = r->when;

		text += strlen("because:");
		while (*text == ' ')
			text++;
		w->because = template_parse(&r->kb->pool, text, strlen(text), r->e);
		r->in_because = true;
		return w->because ? 0 : reader_complain_inner(r);
	}
	if (r->in_because)
		return reader_complain(r, "because has one line");
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

int reader_guard(struct reader *r, struct advice *a, const char **text)
{
	const char *end;

	if (**text != '[')
		return 0;
	end = guard_end(*text + 1);
	if (!end)
		return reader_complain(r, "[ without ]");
	a->guard_text = pool_copy(&r->kb->pool, *text + 1, (size_t)(end - *text - 1));
	a->guard = expr_parse(&r->kb->pool, a->guard_text, strlen(a->guard_text), r->e);
	if (!a->guard)
		return reader_complain_inner(r);
	if (expr_type(a->guard) != TYPE_FLAG)
		return reader_complain(r, "a guard needs a yes or no");
	*text = end + 1;
	while (**text == ' ')
		(*text)++;
	return 0;
}

static int add_headline(struct reader *r, const char *text)
{
	struct advice **tail = &r->cause->headline, *a = pool_alloc(&r->kb->pool, sizeof(*a));

	if (reader_guard(r, a, &text))
		return -EINVAL;
	a->text = template_parse(&r->kb->pool, text, strlen(text), r->e);
	if (!a->text)
		return reader_complain_inner(r);
	while (*tail)
		tail = &(*tail)->next;
	*tail = a;
	return 0;
}

static int header_key(struct reader *r, const char *key, const char *value)
{
	struct pool *pool = &r->kb->pool;

	if (!strcmp(key, "id"))
		return strcmp(value, r->cause->id) ? reader_complain(r, "the id is not the file's name") : 0;
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
	return reader_complain(r, "unknown key (id, title, headline, rank, over, check, program, when certain|likely|possible ID)");
}

int reader_header(struct reader *r, char *line)
{
	char *colon;

	if (!line[0])
		return 0;
	if (isspace((unsigned char)line[0]))
		return continue_when(r, reader_trim(line));
	if (reader_when_end(r))
		return r->e ? r->e->code : -EINVAL;
	colon = strchr(line, ':');
	if (!colon)
		return reader_complain(r, "a header line is 'key: value'");
	*colon = '\0';
	return header_key(r, reader_trim(line), reader_trim(colon + 1));
}
