/* SPDX-License-Identifier: Apache-2.0
 * Environment markers of requirements (PEP 508): `platform_system == "Linux" and extra == "cublas"`.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "input/machine/pyenv/package.h"
#include "base/banned.h"

#define DEPTH_MAX 16

struct marker {
	const char *p;
	const char *machine, *extras;
	char python[16];
	int depth;
};

static int eval_or(struct marker *m);

static void spaces(struct marker *m)
{
	while (isspace((unsigned char)*m->p))
		m->p++;
}

static bool keyword(struct marker *m, const char *text)
{
	size_t n = strlen(text);

	spaces(m);
	if (strncmp(m->p, text, n) != 0 || isalnum((unsigned char)m->p[n]) || m->p[n] == '_')
		return false;
	m->p += n;
	return true;
}

struct word { char text[64]; bool literal; };

static bool read_word(struct marker *m, struct word *w)
{
	size_t n;
	char quote;

	spaces(m);
	quote = *m->p;
	w->literal = quote == '"' || quote == '\'';
	if (w->literal) {
		const char *end = strchr(++m->p, quote);

		if (!end)
			return false;
		n = (size_t)(end - m->p);
	} else {
		n = strspn(m->p, "abcdefghijklmnopqrstuvwxyz_.");
	}
	if (n >= sizeof(w->text) || (n == 0 && !w->literal))
		return false;
	memcpy(w->text, m->p, n);
	w->text[n] = '\0';
	m->p += n + w->literal;
	return true;
}

static bool read_op(struct marker *m, char op[8])
{
	size_t n;

	if (keyword(m, "in"))
		return str_copy(op, 8, "in");
	if (keyword(m, "not"))
		return keyword(m, "in") && str_copy(op, 8, "not in");
	n = strspn(m->p, "=!<>~");
	if (n == 0 || n > 3)
		return false;
	memcpy(op, m->p, n);
	op[n] = '\0';
	m->p += n;
	return true;
}

static const char *value_of(const struct marker *m, const char *name)
{
	const char *const known[][2] = {
		{"platform_system", "Linux"}, {"sys_platform", "linux"}, {"os_name", "posix"},
		{"platform_python_implementation", "CPython"}, {"implementation_name", "cpython"},
		{"platform_machine", m->machine}, {"python_version", m->python[0] ? m->python : NULL},
		{"python_full_version", m->python[0] ? m->python : NULL},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i][0], name) == 0)
			return known[i][1];
	return NULL;
}

static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ",");

		if (len == n && memcmp(p, name, n) == 0)
			return true;
		p += len + (p[len] == ',');
	}
	return false;
}

static int compare(const char *left, const char *op, const char *right, bool version)
{
	char spec[80];

	if (strcmp(op, "in") == 0)
		return strstr(right, left) != NULL;
	if (strcmp(op, "not in") == 0)
		return strstr(right, left) == NULL;
	if (version)
		return snprintf(spec, sizeof(spec), "%s%s", op, right) < (int)sizeof(spec) ? py_version_fits(left, spec) : -1;
	if (strcmp(op, "==") == 0)
		return strcmp(left, right) == 0;
	if (strcmp(op, "!=") == 0)
		return strcmp(left, right) != 0;
	return -1;
}

static int eval_term(struct marker *m)
{
	struct word left, right;
	const char *l, *r, *name;
	char op[8], extra[64];

	if (!read_word(m, &left) || !(spaces(m), read_op(m, op)) || !read_word(m, &right))
		return -2;
	name = left.literal ? right.text : left.text;
	if (strcmp(name, "extra") == 0) {
		const char *asked = left.literal ? left.text : right.text;

		if (!py_normalise(asked, strlen(asked), extra, sizeof(extra)))
			return -1;
		return in_list(m->extras, extra) == (strcmp(op, "!=") != 0);
	}
	l = left.literal ? left.text : value_of(m, left.text);
	r = right.literal ? right.text : value_of(m, right.text);
	if (!l || !r)
		return -1;
	return compare(l, op, r, strncmp(name, "python_", 7) == 0 && !left.literal);
}

/* -2 is a text that cannot be read: it ends everything. */
static int eval_factor(struct marker *m)
{
	int v;

	spaces(m);
	if (*m->p != '(')
		return eval_term(m);
	if (++m->depth > DEPTH_MAX)
		return -2;
	m->p++;
	v = eval_or(m);
	spaces(m);
	if (*m->p != ')')
		return -2;
	m->p++;
	m->depth--;
	return v;
}

static int eval_and(struct marker *m)
{
	int v = eval_factor(m), w;

	while (v > -2 && keyword(m, "and")) {
		w = eval_factor(m);
		v = w == -2 ? -2 : v == 0 || w == 0 ? 0 : v < 0 || w < 0 ? -1 : 1;
	}
	return v;
}

static int eval_or(struct marker *m)
{
	int v = eval_and(m), w;

	while (v > -2 && keyword(m, "or")) {
		w = eval_and(m);
		v = w == -2 ? -2 : v == 1 || w == 1 ? 1 : v < 0 || w < 0 ? -1 : 0;
	}
	return v;
}

int py_marker_true(const char *marker, const char *machine, int minor, const char *extras)
{
	struct marker m = {.p = marker, .machine = machine, .extras = extras};
	int v;

	if (minor >= 0)
		snprintf(m.python, sizeof(m.python), "3.%d", minor);
	spaces(&m);
	if (!*m.p)
		return 1;
	v = eval_or(&m);
	spaces(&m);
	return v < 0 || *m.p ? -1 : v;
}
