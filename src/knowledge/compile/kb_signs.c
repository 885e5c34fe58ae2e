/* SPDX-License-Identifier: Apache-2.0
 * Reads the signs of the knowledge base (kb/signs): names for expressions that several rules use.
 */
#include "knowledge/compile/kb_reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "knowledge/expr.h"

#define SIGN_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* Does the expression contain the operator (&& or ||) outside parentheses and quotes? */
static bool has_operator(const char *s, const char *operator)
{
	int depth = 0;
	bool quoted = false;

	for (; *s; s++) {
		if (quoted && *s == '\\' && s[1])
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted && (*s == '(' || *s == ')'))
			depth += *s == '(' ? 1 : -1;
		else if (!quoted && !depth && str_starts(s, operator))
			return true;
	}
	return false;
}

/* Would precedence break the expression apart between what comes before and after it? */
static bool needs_parentheses(const char *expression, const struct buf *before, const char *behind)
{
	size_t n = before->len;
	bool negated, joined;

	while (n && before->data[n - 1] == ' ')
		n--;
	negated = n && before->data[n - 1] == '!';
	joined = negated || (n > 1 && before->data[n - 1] == '&') || str_starts(behind + strspn(behind, " "), "&&");
	return (joined && has_operator(expression, "||")) || (negated && has_operator(expression, "&&"));
}

/* Where the next sign name begins, skipping quoted texts; the end of the expression if there is none. */
static const char *next_sign_name(const char *s)
{
	bool quoted = false;

	for (; *s; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (quoted && *s == '\\' && s[1])
			s++;
		else if (!quoted && *s == 's' && str_starts(s, "sign."))
			break;
		else if (!quoted && islower((unsigned char)*s))	/* no name begins inside another word */
			s += strspn(s, SIGN_LETTERS ".") - 1;
	}
	return s;
}

static struct kb_sign *find_sign(const struct reader *r, const char *name, size_t len)
{
	size_t low = 0, high = r->n_signs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *has = AT(r->sign_named[mid]->name);
		int order = strncmp(has, name, len);

		if (!order && !has[len])
			return r->sign_named[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* The expression as people read it: sign names are replaced by their expressions. */
const char *reader_spell_out(struct reader *r, const char *text)
{
	const size_t prefix = strlen("sign.");
	const char *at, *spelled;
	struct buf out;

	if (!*next_sign_name(text))
		return arena_text(r->a, text);
	buf_init(&out, SECTION_MAX);
	while (at = next_sign_name(text), buf_add(&out, text, (size_t)(at - text)), *at) {
		size_t len = strspn(at + prefix, SIGN_LETTERS);
		const char *sign = AT(find_sign(r, at + prefix, len)->text);
		bool apart = needs_parentheses(sign, &out, at + prefix + len);

		buf_adds(&out, apart ? "(" : "");
		buf_adds(&out, sign);
		buf_adds(&out, apart ? ")" : "");
		text = at + prefix + len;
	}
	spelled = arena_text(r->a, out.data);
	buf_release(&out);
	return spelled;
}

static int sign_parse(struct reader *r, struct kb_sign *s);

/* For the expression parser. A rule, a sentence or another sign may use the sign. */
const struct kb_sign *sign_look_up(void *arg, const char *name, size_t len, struct err *e)
{
	struct reader *r = arg;
	struct kb_sign *s = find_sign(r, name, len);

	if (!s) {
		err_set(e, -ENOENT, "there is no sign '%.*s' in kb/signs", (int)len, name);
		return NULL;
	}
	s->used = true;
	return sign_parse(r, s) ? NULL : s;
}

static int sign_parse(struct reader *r, struct kb_sign *s)
{
	struct reader inner = *r;
	const struct expr *x;

	if (AT(s->expr))
		return 0;
	if (s->being_parsed)
		return err_set(r->e, -ELOOP, "the sign '%s' refers to itself", AT(s->name));
	inner.file = AT(s->file);
	inner.line = (int)s->line;
	inner.scope = (struct expr_scope){.sign = sign_look_up, .arg = &inner};
	s->being_parsed = true;
	x = reader_flag(&inner, AT(s->text), "a sign must be true or false");
	if (!x)
		return -EINVAL;
	REF_SET(s->expr, x);
	REF_SET(s->text, reader_spell_out(r, AT(s->text)));
	return 0;
}

static int sign_end(struct reader *r)
{
	struct kb_sign *s = r->sign;

	r->sign = NULL;
	if (s)
		REF_SET(s->text, arena_text(r->a, r->sign_text));
	return s && !AT(s->source) ? reader_complain(r, "a sign needs its source: where the words were found") : 0;
}

static int by_name(const void *a, const void *b)
{
	const struct kb_sign *x = a, *y = b;

	return strcmp(AT(x->name), AT(y->name));
}

static int sign_begin(struct reader *r, char *line)
{
	struct kb_sign *s = arena_alloc(r->a, sizeof(*s));
	char *colon = strchr(line, ':');

	if (sign_end(r))
		return -EINVAL;
	if (!colon || !colon[1] || strspn(line, SIGN_LETTERS) != (size_t)(colon - line))
		return reader_complain(r, "a sign is 'some_name: expression'");
	*colon = '\0';
	REF_SET(s->name, arena_text(r->a, line));
	REF_SET(s->file, arena_text(r->a, r->file));
	s->line = (uint32_t)r->line;
	r->sign = s;
	r->sign_text = pool_strdup(r->pool, reader_trim(colon + 1));
	return list_insert(&r->kb->signs, s, by_name) ? 0 : reader_complain(r, "there is already a sign with that name");
}

/* An indented line: where the words were found, or more of the expression. */
static int sign_continue(struct reader *r, const char *text)
{
	if (!r->sign)
		return reader_complain(r, "an indented line belongs to a sign");
	if (str_starts(text, "source:")) {
		text += strlen("source:") + strspn(text + strlen("source:"), " ");
		REF_SET(r->sign->source, text[0] ? arena_text(r->a, text) : NULL);
		return 0;
	}
	if (AT(r->sign->source))
		return reader_complain(r, "the source of a sign has one line");
	r->sign_text = pool_printf(r->pool, "%s %s", r->sign_text, text);
	return 0;
}

static int sign_line(struct reader *r, char *line)
{
	r->line++;
	if (!line[0] || line[0] == '#')
		return 0;
	return isspace((unsigned char)line[0]) ? sign_continue(r, reader_trim(line)) : sign_begin(r, line);
}

/* Collects all of them before parsing any: they may be in any order. */
int blob_signs(struct reader *r, char *blob)
{
	char *line, *next = blob;
	bool in_signs = false;
	int rc = 0;
	size_t room;

	while (!rc && (line = strsep(&next, "\n")) != NULL) {
		if (str_starts(line, "%%% ")) {
			rc = sign_end(r);
			in_signs = str_starts(line, "%%% signs/");
			r->file = pool_printf(r->pool, "kb/%s", line + 4);
			r->line = 0;
		} else if (in_signs) {
			rc = sign_line(r, line);
		}
	}
	if (!rc)
		rc = sign_end(r);
	room = 0;
	for (struct kb_sign *s = OWN(r->kb->signs); s; s = OWN(s->next)) {
		r->sign_named = xgrow(r->sign_named, r->n_signs, &room, sizeof(struct kb_sign *));
		r->sign_named[r->n_signs++] = s;
	}
	for (struct kb_sign *s = OWN(r->kb->signs); !rc && s; s = OWN(s->next))
		rc = sign_parse(r, s);
	return rc;
}
