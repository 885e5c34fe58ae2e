/* SPDX-License-Identifier: Apache-2.0
 * Sentences with facts in them (see template.h).
 */
#include "verdict/rules/template.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "verdict/rules/expr.h"

#define TEXT_MAX (64 << 10)	/* one expanded sentence */

/* "the status is " is no help; `is set to ""` is. */
static bool put_text(struct buf *out, const char *text)
{
	if (!text[strspn(text, " \t\n")] && !(out->len && out->data[out->len - 1] == '"'))
		return false;
	buf_adds(out, text);
	return true;
}

struct plural {
	const char *many, *one;
};

static const struct plural nouns[] = {
	{"allocations", "allocation"}, {"blocks", "block"}, {"bytes", "byte"}, {"calls", "call"},
	{"classes", "class"}, {"copies", "copy"}, {"devices", "device"}, {"elements", "element"},
	{"entries", "entry"}, {"events", "event"}, {"files", "file"}, {"functions", "function"}, {"graphs", "graph"},
	{"GPUs", "GPU"}, {"iterations", "iteration"}, {"kernels", "kernel"}, {"launches", "launch"},
	{"lines", "line"}, {"machines", "machine"}, {"nodes", "node"}, {"packages", "package"}, {"passes", "pass"},
	{"pieces", "piece"}, {"processes", "process"}, {"ranks", "rank"}, {"registers", "register"}, {"rows", "row"},
	{"segments", "segment"}, {"steps", "step"}, {"streams", "stream"}, {"tensors", "tensor"},
	{"threads", "thread"}, {"times", "time"}, {"values", "value"}, {"workers", "worker"}, {NULL, NULL},
};
static const struct plural verbs[] = {
	{"are", "is"},	   {"do", "does"},  {"fit", "fits"}, {"have", "has"},
	{"hold", "holds"}, {"use", "uses"}, {"were", "was"}, {NULL, NULL},
};

#define ADJECTIVES_MAX 2	/* "1 other autograd node" */

static const struct plural *plural_find(const struct plural *list, const char *s, size_t len)
{
	for (; list->many; list++)
		if (strlen(list->many) == len && !memcmp(list->many, s, len))
			return list;
	return NULL;
}

static size_t word_length(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
}

/* What follows a number that is 1. */
static void put_singular(struct buf *out, const char *s)
{
	const struct plural *noun = NULL, *verb;
	size_t len;

	for (int i = 0; !noun && i <= ADJECTIVES_MAX && *s == ' ' && (len = word_length(s + 1)) > 0; i++) {
		noun = plural_find(nouns, s + 1, len);
		buf_adds(out, " ");
		if (noun)
			buf_adds(out, noun->one);
		else
			buf_add(out, s + 1, len);
		s += 1 + len;
	}
	if (noun && *s == ' ' && (verb = plural_find(verbs, s + 1, word_length(s + 1)))) {
		buf_printf(out, " %s", verb->one);
		s += 1 + strlen(verb->many);
	}
	buf_adds(out, s);
}

static bool ends_with_one(const struct buf *out)
{
	return out->len && out->data[out->len - 1] == '1' &&
	       (out->len == 1 || !strchr("0123456789.,-", out->data[out->len - 2]));
}

static bool put_part(struct buf *out, const struct part *part, const struct casefile *f, bool counted)
{
	struct value v;
	char text[64];

	if (!AT(part->expr)) {
		if (counted && ends_with_one(out))
			put_singular(out, AT(part->literal));
		else
			buf_adds(out, AT(part->literal));
		return true;
	}
	v = expr_eval(AT(part->expr), f);
	if (!v.known || v.absent)
		return false;
	if (v.type == TYPE_TEXT)
		return put_text(out, v.text);
	if (part->format == FORMAT_N)
		buf_adds(out, format_thousands(text, sizeof(text), v.number));
	else if (part->format == FORMAT_BYTES)
		buf_adds(out, format_bytes(text, sizeof(text), v.number));
	else
		buf_printf(out, "%.15g", v.number);
	return true;
}

char *template_expand(const struct template *t, const struct casefile *f, struct pool *pool)
{
	struct buf out;
	char *text = NULL;
	bool whole = true, counted = false;

	buf_init(&out, TEXT_MAX);
	for (const struct part *p = AT(t->first); p && whole; p = AT(p->next)) {
		whole = put_part(&out, p, f, counted);
		counted = AT(p->expr) && expr_type(AT(p->expr)) == TYPE_NUMBER;
	}
	if (whole)
		text = pool_copy(pool, out.data ? out.data : "", out.len);
	buf_release(&out);
	return text;
}
