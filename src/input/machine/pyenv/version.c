/* SPDX-License-Identifier: Apache-2.0
 * Python package versions as PEP 440 orders them, and the specifiers of requirements.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input/machine/pyenv/package.h"
#include "base/banned.h"

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

static uint64_t number(const char **p)
{
	uint64_t v = 0;

	for (; isdigit((unsigned char)**p); ++*p)
		v = v > UINT32_MAX ? v : v * 10 + (uint64_t)(**p - '0');
	return v;
}

static bool word(const char **p, const char *text)
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

static void parse_pre(struct version *v, const char **p)
{
	static const struct { const char *text; int pre; } names[] = {
		{"alpha", PRE_A}, {"beta", PRE_B}, {"preview", PRE_RC}, {"pre", PRE_RC}, {"rc", PRE_RC}, {"a", PRE_A},
		{"b", PRE_B}, {"c", PRE_RC},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (word(p, names[i].text)) {
			v->pre = names[i].pre;
			v->pre_n = number(p);
			return;
		}
}

static void parse_post(struct version *v, const char **p)
{
	if (word(p, "post") || word(p, "rev") || word(p, "r") || (**p == '-' && isdigit((unsigned char)(*p)[1]) && ++*p)) {
		v->has_post = true;
		v->post = number(p);
	}
	if (word(p, "dev")) {
		v->has_dev = true;
		v->dev = number(p);
	}
}

static bool parse(const char *text, struct version *v)
{
	const char *p = text;
	size_t n;

	*v = (struct version){0};
	p += *p == 'v' || *p == 'V';
	if (!isdigit((unsigned char)*p))
		return false;
	v->release[v->n++] = number(&p);
	if (*p == '!') {
		v->epoch = v->release[0];
		v->n = 0;
		p++;
		v->release[v->n++] = number(&p);
	}
	while (*p == '.' && isdigit((unsigned char)p[1]) && v->n < PARTS) {
		p++;
		v->release[v->n++] = number(&p);
	}
	parse_pre(v, &p);
	parse_post(v, &p);
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

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Without the local part. */
static int cmp_public(const struct version *a, const struct version *b)
{
	int c = order(a->epoch, b->epoch);

	for (int i = 0; i < PARTS && !c; i++)
		c = order(a->release[i], b->release[i]);
	if (!c)
		c = (a->pre > b->pre) - (a->pre < b->pre);
	if (!c)
		c = order(a->pre_n, b->pre_n);
	if (!c)
		c = order(a->has_post, b->has_post);
	if (!c)
		c = order(a->post, b->post);
	if (!c)
		c = order(b->has_dev, a->has_dev);
	return c ? c : order(a->dev, b->dev);
}

int py_version_cmp(const char *a, const char *b)
{
	struct version va, vb;
	int c;

	if (!parse(a, &va) || !parse(b, &vb))
		return strcmp(a, b);
	c = cmp_public(&va, &vb);
	return c ? c : strcmp(va.local, vb.local);
}

static bool same_start(const struct version *v, const struct version *want, int n)
{
	for (int i = 0; i < n; i++)
		if (v->release[i] != want->release[i])
			return false;
	return v->epoch == want->epoch;
}

/* One specifier; `wild` when it ended with ".*". A local part of the installed version counts only when one is asked for. */
static int fits_one(const struct version *v, const char *op, const struct version *want, bool wild)
{
	int c = cmp_public(v, want);
	bool local = !want->local[0] || strcmp(v->local, want->local) == 0;

	if (strcmp(op, "==") == 0)
		return wild ? same_start(v, want, want->n) : c == 0 && local;
	if (strcmp(op, "!=") == 0)
		return wild ? !same_start(v, want, want->n) : !(c == 0 && local);
	if (strcmp(op, "~=") == 0)
		return want->n > 1 ? c >= 0 && same_start(v, want, want->n - 1) : -1;
	if (strcmp(op, "<=") == 0)
		return c <= 0;
	if (strcmp(op, ">=") == 0)
		return c >= 0;
	if (strcmp(op, "<") == 0)	/* "<2.0" is no invitation for 2.0rc1 */
		return c < 0 && !(v->pre < PRE_NONE && want->pre == PRE_NONE && same_start(v, want, PARTS));
	if (strcmp(op, ">") == 0)
		return c > 0 && !(v->has_post && !want->has_post && same_start(v, want, PARTS));
	return -1;
}

static int fits_text(const struct version *v, const char *version, const char *p, size_t len)
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
	return parse(text, &want) ? fits_one(v, op, &want, wild) : -1;
}

int py_version_fits(const char *version, const char *specifiers)
{
	struct version v;
	int all = 1, one;
	bool ok = parse(version, &v);

	for (const char *p = specifiers; *p;) {
		size_t n;

		while (isspace((unsigned char)*p) || *p == ',' || *p == '(' || *p == ')')
			p++;
		n = strcspn(p, ",)");
		if (n == 0)
			break;
		one = ok ? fits_text(&v, version, p, n) : -1;
		if (one == 0)
			return 0;
		if (one < 0)
			all = -1;
		p += n;
	}
	return all;
}

bool py_normalise(const char *name, size_t len, char *to, size_t size)
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
