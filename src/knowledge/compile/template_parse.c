/* SPDX-License-Identifier: Apache-2.0
 * Parser of sentences with facts in them (verdict/rules/template.h says how they are written).
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "knowledge/compile/compile.h"

/* The '}' that ends the field at `s`, skipping quoted texts; NULL if there is none. */
static const char *field_end(const char *s, const char *end)
{
	bool quoted = false;

	for (; s < end; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (*s == '}' && !quoted)
			return s;
	}
	return NULL;
}

static size_t field_format(const char *s, size_t len, enum part_format *format)
{
	*format = FORMAT_PLAIN;
	if (len > 2 && !memcmp(s + len - 2, ":n", 2)) {
		*format = FORMAT_N;
		return len - 2;
	}
	if (len > 6 && !memcmp(s + len - 6, ":bytes", 6)) {
		*format = FORMAT_BYTES;
		return len - 6;
	}
	return len;
}

static int add_field(const struct expr_scope *scope, struct arena *a, struct part *part, const char *s, size_t len,
		     struct err *e)
{
	enum part_format format;
	const struct expr *x;

	len = field_format(s, len, &format);
	x = expr_parse(scope, a, s, len, e);
	if (!x)
		return -EINVAL;
	REF_SET(part->expr, x);
	part->format = format;
	if (format != FORMAT_PLAIN && expr_type(x) != TYPE_NUMBER)
		return err_set(e, -EINVAL, "only a number can have :n or :bytes: '%.*s'", (int)len, s);
	if (expr_type(x) == TYPE_FLAG)
		return err_set(e, -EINVAL, "true or false cannot be printed: '%.*s'", (int)len, s);
	return 0;
}

/* The literal text that begins here, up to the next field. */
static const char *take_literal(const char *s, const char *end, const char **literal)
{
	const char *stop;

	s += *s == '{';	/* {{ is one { */
	stop = memchr(s + 1, '{', (size_t)(end - s - 1));
	*literal = s;
	return stop ? stop : end;
}

const struct template *template_parse(const struct expr_scope *scope, struct arena *a, const char *text, size_t len,
				      struct err *e)
{
	struct template *t = arena_alloc(a, sizeof(*t));
	const char *s = text, *end = text + len, *stop;

	REF_SET(t->text, arena_copy(a, text, len));
	while (s < end) {
		struct part *part = arena_alloc(a, sizeof(*part));

		list_append(&t->first, part);
		if (*s != '{' || (s + 1 < end && s[1] == '{')) {
			stop = take_literal(s, end, &s);
			REF_SET(part->literal, arena_copy(a, s, (size_t)(stop - s)));
			s = stop;
			continue;
		}
		stop = field_end(s + 1, end);
		if (!stop) {
			err_set(e, -EINVAL, "{ without } in '%.60s'", AT(t->text));
			return NULL;
		}
		if (add_field(scope, a, part, s + 1, (size_t)(stop - s - 1), e))
			return NULL;
		s = stop + 1;
	}
	return t;
}
