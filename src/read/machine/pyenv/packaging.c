/* SPDX-License-Identifier: Apache-2.0
 * Python's rules for packages (see packaging.h).
 */
#include "read/machine/pyenv/packaging.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

bool py_normalize(const char *name, size_t len, char *to, size_t size)
{
	size_t n = 0;
	bool gap = false;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c == '-' || c == '_' || c == '.') {
			gap = true;
			continue;
		}
		if (!isalnum(c) || n + 3 > size)
			return false;
		if (gap && n)
			to[n++] = '-';
		gap = false;
		to[n++] = (char)tolower(c);
	}
	if (n == 0)
		return false;
	to[n] = '\0';
	return true;
}

#define PARTS	8
#define LOCAL	48

enum { PRE_DEV = -4, PRE_A = -3, PRE_B = -2, PRE_RC = -1, PRE_NONE = 0 };

struct version {
	uint64_t epoch, release[PARTS];
	int n;
	int pre;		/* PRE_*: a development release of a final version sorts before all of them */
	uint64_t pre_n, post, dev;
	bool has_post, has_dev;
	char local[LOCAL];
};

static uint64_t version_number(const char **p)
{
	uint64_t v = 0;

	for (; isdigit((unsigned char)**p); ++*p)
		v = v > UINT32_MAX ? v : v * 10 + (uint64_t)(**p - '0');
	return v;
}

static bool version_word(const char **p, const char *text)
{
	const char *q = *p;
	size_t n = strlen(text);

	if (*q == '.' || *q == '-' || *q == '_')
		q++;
	if (strncasecmp(q, text, n) != 0)
		return false;
	q += n;
	if ((*q == '.' || *q == '-' || *q == '_') && isdigit((unsigned char)q[1]))
		q++;
	*p = q;
	return true;
}

static void version_pre(struct version *v, const char **p)
{
	static const struct { const char *text; int pre; } names[] = {
		{"alpha", PRE_A}, {"beta", PRE_B}, {"preview", PRE_RC}, {"pre", PRE_RC},
		{"rc", PRE_RC},	  {"a", PRE_A},	   {"b", PRE_B},	{"c", PRE_RC},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (version_word(p, names[i].text)) {
			v->pre = names[i].pre;
			v->pre_n = version_number(p);
			return;
		}
}

static void version_post(struct version *v, const char **p)
{
	if (version_word(p, "post") || version_word(p, "rev") || version_word(p, "r") ||
	    (**p == '-' && isdigit((unsigned char)(*p)[1]) && ++*p)) {
		v->has_post = true;
		v->post = version_number(p);
	}
	if (version_word(p, "dev")) {
		v->has_dev = true;
		v->dev = version_number(p);
	}
}

static bool version_parse(const char *text, struct version *v)
{
	const char *p = text;
	size_t n;

	*v = (struct version){0};
	p += *p == 'v' || *p == 'V';
	if (!isdigit((unsigned char)*p))
		return false;
	v->release[v->n++] = version_number(&p);
	if (*p == '!') {
		v->epoch = v->release[0];
		v->n = 0;
		p++;
		v->release[v->n++] = version_number(&p);
	}
	while (*p == '.' && isdigit((unsigned char)p[1]) && v->n < PARTS) {
		p++;
		v->release[v->n++] = version_number(&p);
	}
	version_pre(v, &p);
	version_post(v, &p);
	if (v->has_dev && v->pre == PRE_NONE && !v->has_post)
		v->pre = PRE_DEV;
	if (*p == '+') {
		n = strlen(++p);
		if (n >= LOCAL)
			return false;
		memcpy(v->local, p, n + 1);
		p += n;
	}
	return *p == '\0';
}

static int number_order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Without the local part. */
static int version_cmp_public(const struct version *a, const struct version *b)
{
	int c = number_order(a->epoch, b->epoch);

	for (int i = 0; i < PARTS && !c; i++)
		c = number_order(a->release[i], b->release[i]);
	if (!c)
		c = (a->pre > b->pre) - (a->pre < b->pre);
	if (!c)
		c = number_order(a->pre_n, b->pre_n);
	if (!c)
		c = number_order(a->has_post, b->has_post);
	if (!c)
		c = number_order(a->post, b->post);
	if (!c)
		c = number_order(b->has_dev, a->has_dev);
	return c ? c : number_order(a->dev, b->dev);
}

int py_version_cmp(const char *a, const char *b)
{
	struct version va, vb;
	int c;

	if (!version_parse(a, &va) || !version_parse(b, &vb))
		return strcmp(a, b);
	c = version_cmp_public(&va, &vb);
	return c ? c : strcmp(va.local, vb.local);
}

static bool version_same_start(const struct version *v, const struct version *want, int n)
{
	for (int i = 0; i < n; i++)
		if (v->release[i] != want->release[i])
			return false;
	return v->epoch == want->epoch;
}

/* One specifier; `wild` when it ended with ".*". A local part of the installed version counts only when one is asked for. */
static int specifier_fits(const struct version *v, const char *op, const struct version *want, bool wild)
{
	int c = version_cmp_public(v, want);
	bool local = !want->local[0] || strcmp(v->local, want->local) == 0;

	if (strcmp(op, "==") == 0)
		return wild ? version_same_start(v, want, want->n) : c == 0 && local;
	if (strcmp(op, "!=") == 0)
		return wild ? !version_same_start(v, want, want->n) : !(c == 0 && local);
	if (strcmp(op, "~=") == 0)
		return want->n > 1 ? c >= 0 && version_same_start(v, want, want->n - 1) : -1;
	if (strcmp(op, "<=") == 0)
		return c <= 0;
	if (strcmp(op, ">=") == 0)
		return c >= 0;
	if (strcmp(op, "<") == 0)	/* "<2.0" does not include 2.0rc1 */
		return c < 0 && !(v->pre < PRE_NONE && want->pre == PRE_NONE && version_same_start(v, want, PARTS));
	if (strcmp(op, ">") == 0)
		return c > 0 && !(v->has_post && !want->has_post && version_same_start(v, want, PARTS));
	return -1;
}

static int specifier_text_fits(const struct version *v, const char *version, const char *p, size_t len)
{
	char op[4] = "", text[96];
	struct version want;
	size_t n = 0;
	bool wild = false;

	while (n < 3 && n < len && strchr("=!~<>", p[n])) {
		op[n] = p[n];
		n++;
	}
	p += n;
	len -= n;
	while (len && isspace((unsigned char)*p))
		p++, len--;
	while (len && isspace((unsigned char)p[len - 1]))
		len--;
	if (len == 0 || len >= sizeof(text))
		return -1;
	memcpy(text, p, len);
	text[len] = '\0';
	if (strcmp(op, "===") == 0)
		return strcmp(version, text) == 0;
	if (len > 2 && strcmp(text + len - 2, ".*") == 0) {
		wild = true;
		text[len - 2] = '\0';
	}
	return version_parse(text, &want) ? specifier_fits(v, op, &want, wild) : -1;
}

int py_version_fits(const char *version, const char *specifiers)
{
	struct version v;
	int all = 1, one;
	bool ok = version_parse(version, &v);

	for (const char *p = specifiers; *p;) {
		size_t n;

		while (isspace((unsigned char)*p) || *p == ',' || *p == '(' || *p == ')')
			p++;
		n = strcspn(p, ",)");
		if (n == 0)
			break;
		one = ok ? specifier_text_fits(&v, version, p, n) : -1;
		if (one == 0)
			return 0;
		if (one < 0)
			all = -1;
		p += n;
	}
	return all;
}

#define DEPTH_MAX 16

struct marker {
	const char *p;
	const char *machine, *extras;
	char python[16];
	int depth;
};

static int marker_or(struct marker *m);

static void marker_spaces(struct marker *m)
{
	while (isspace((unsigned char)*m->p))
		m->p++;
}

static bool marker_keyword(struct marker *m, const char *text)
{
	size_t n = strlen(text);

	marker_spaces(m);
	if (strncmp(m->p, text, n) != 0 || isalnum((unsigned char)m->p[n]) || m->p[n] == '_')
		return false;
	m->p += n;
	return true;
}

struct marker_operand { char text[64]; bool literal; };

static bool marker_word(struct marker *m, struct marker_operand *w)
{
	size_t n;
	char quote;

	marker_spaces(m);
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

static bool marker_op(struct marker *m, char op[8])
{
	size_t n;

	if (marker_keyword(m, "in"))
		return str_copy(op, 8, "in");
	if (marker_keyword(m, "not"))
		return marker_keyword(m, "in") && str_copy(op, 8, "not in");
	n = strspn(m->p, "=!<>~");
	if (n == 0 || n > 3)
		return false;
	memcpy(op, m->p, n);
	op[n] = '\0';
	m->p += n;
	return true;
}

static const char *marker_value(const struct marker *m, const char *name)
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

static bool extras_have(const char *list, const char *name)
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

static int marker_compare(const char *left, const char *op, const char *right, bool version)
{
	char spec[80];

	if (strcmp(op, "in") == 0)
		return strstr(right, left) != NULL;
	if (strcmp(op, "not in") == 0)
		return strstr(right, left) == NULL;
	if (version)
		return snprintf(spec, sizeof(spec), "%s%s", op, right) < (int)sizeof(spec) ? py_version_fits(left, spec)
											   : -1;
	if (strcmp(op, "==") == 0)
		return strcmp(left, right) == 0;
	if (strcmp(op, "!=") == 0)
		return strcmp(left, right) != 0;
	return -1;
}

static int marker_term(struct marker *m)
{
	struct marker_operand left, right;
	const char *l, *r, *name;
	char op[8], extra[64];

	if (!marker_word(m, &left) || !(marker_spaces(m), marker_op(m, op)) || !marker_word(m, &right))
		return -2;
	name = left.literal ? right.text : left.text;
	if (strcmp(name, "extra") == 0) {
		const char *asked = left.literal ? left.text : right.text;

		if (!py_normalize(asked, strlen(asked), extra, sizeof(extra)))
			return -1;
		return extras_have(m->extras, extra) == (strcmp(op, "!=") != 0);
	}
	l = left.literal ? left.text : marker_value(m, left.text);
	r = right.literal ? right.text : marker_value(m, right.text);
	if (!l || !r)
		return -1;
	return marker_compare(l, op, r, strncmp(name, "python_", 7) == 0 && !left.literal);
}

/* -2 is a syntax error: it ends everything. */
static int marker_factor(struct marker *m)
{
	int v;

	marker_spaces(m);
	if (*m->p != '(')
		return marker_term(m);
	if (++m->depth > DEPTH_MAX)
		return -2;
	m->p++;
	v = marker_or(m);
	marker_spaces(m);
	if (*m->p != ')')
		return -2;
	m->p++;
	m->depth--;
	return v;
}

static int marker_and(struct marker *m)
{
	int v = marker_factor(m), w;

	while (v > -2 && marker_keyword(m, "and")) {
		w = marker_factor(m);
		if (w == -2)
			v = -2;
		else if (v == 0 || w == 0)
			v = 0;
		else
			v = v < 0 || w < 0 ? -1 : 1;
	}
	return v;
}

static int marker_or(struct marker *m)
{
	int v = marker_and(m), w;

	while (v > -2 && marker_keyword(m, "or")) {
		w = marker_and(m);
		if (w == -2)
			v = -2;
		else if (v == 1 || w == 1)
			v = 1;
		else
			v = v < 0 || w < 0 ? -1 : 0;
	}
	return v;
}

int py_marker_true(const char *marker, const char *machine, int minor, const char *extras)
{
	struct marker m = {.p = marker, .machine = machine, .extras = extras};
	int v;

	if (minor >= 0)
		snprintf(m.python, sizeof(m.python), "3.%d", minor);
	marker_spaces(&m);
	if (!*m.p)
		return 1;
	v = marker_or(&m);
	marker_spaces(&m);
	return v < 0 || *m.p ? -1 : v;
}

#define METADATA_VALUE_MAX 128

const char *py_metadata_next(const char **at, const char *name, size_t *len)
{
	size_t n = strlen(name);

	while (**at && **at != '\n' && **at != '\r') {
		const char *line = *at;
		size_t length = strcspn(line, "\n");

		*at = line + length + (line[length] == '\n');
		if (length <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		length -= n + 1;
		while (length && isspace((unsigned char)*line))
			line++, length--;
		while (length && isspace((unsigned char)line[length - 1]))
			length--;
		*len = length;
		return line;
	}
	return NULL;
}

const char *py_metadata_field(struct pool *pool, const char *text, const char *name)
{
	size_t len;
	const char *value = py_metadata_next(&text, name, &len);
	char *copy;

	if (!value || len == 0 || len > METADATA_VALUE_MAX)
		return NULL;
	copy = pool_copy(pool, value, len);
	str_make_utf8(copy);
	return copy;
}

static bool take_part(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

/* "[a, B_c]" to "a,b-c" */
static bool requirement_extras(struct requirement *r, const char *p, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i < len && (isspace((unsigned char)p[i]) || p[i] == ','))
			i++;
		while (i + n < len && p[i + n] != ',' && !isspace((unsigned char)p[i + n]))
			n++;
		if (n == 0)
			break;
		if (used + n + 2 > sizeof(r->extras))
			return false;
		if (used)
			r->extras[used++] = ',';
		if (!py_normalize(p + i, n, r->extras + used, sizeof(r->extras) - used))
			return false;
		used += strlen(r->extras + used);
		i += n;
	}
	return true;
}

bool py_requirement_parse(struct requirement *r, const char *text, size_t len, char *marker, size_t marker_size)
{
	const char *semicolon = memchr(text, ';', len), *close;
	size_t head = semicolon ? (size_t)(semicolon - text) : len, n = 0, rest = semicolon ? len - head - 1 : 0;

	*r = (struct requirement){.marker = marker};
	if (!take_part(marker, marker_size, semicolon ? semicolon + 1 : "", rest))
		return false;
	while (head && isspace((unsigned char)text[head - 1]))
		head--;
	if (!take_part(r->text, sizeof(r->text), text, head))
		return false;
	while (n < head && (isalnum((unsigned char)text[n]) || strchr("-_.", text[n])))
		n++;
	if (!py_normalize(text, n, r->name, sizeof(r->name)))
		return false;
	while (n < head && isspace((unsigned char)text[n]))
		n++;
	if (n < head && text[n] == '[') {
		close = memchr(text + n, ']', head - n);
		if (!close || !requirement_extras(r, text + n + 1, (size_t)(close - text) - n - 1))
			return false;
		n = (size_t)(close - text) + 1;
	}
	while (n < head && isspace((unsigned char)text[n]))
		n++;
	if (n < head && text[n] == '@')
		return true;
	return take_part(r->specifiers, sizeof(r->specifiers), text + n, head - n);
}
