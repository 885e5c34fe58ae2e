/* SPDX-License-Identifier: Apache-2.0
 * Plain data from a pickle (see plain.h and pickle.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "formats/pickle.h"
#include "formats/pickle_input.h"
#include "formats/plain.h"
#include "formats/plain_build.h"

struct shelf {
	struct plain_build b;
	struct plain **made;		/* by number */
	size_t n, cap;
	struct plain *root;
	struct err *e;
};

static int full(struct shelf *s)
{
	return err_set(s->e, -EFBIG, "more than %u values", PLAIN_VALUES_MAX);
}

static int keep(struct shelf *s, struct plain *p, enum value_kind kind, struct pickle_value *v)
{
	if (!p)
		return full(s);
	s->made = xgrow(s->made, s->n, &s->cap, sizeof(*s->made));
	v->kind = (uint8_t)kind;
	v->id = (uint32_t)s->n;
	s->made[s->n++] = p;
	return 0;
}

static struct plain *plain_of(struct shelf *s, const struct pickle_value *v)
{
	static const enum plain_kind kinds[] = {
		[V_OTHER] = PLAIN_NONE, [V_NONE] = PLAIN_NONE, [V_BOOL] = PLAIN_BOOL, [V_INT] = PLAIN_INT, [V_FLOAT] = PLAIN_REAL};
	struct plain *p;

	if (v->kind >= V_STRING)
		return s->made[v->id];
	p = plain_new(&s->b, kinds[v->kind]);
	if (p && v->kind == V_FLOAT)
		p->real = v->real;
	else if (p)
		p->number = v->number;
	return p;
}

static int add(struct shelf *s, struct plain *to, const struct pickle_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!plain_add(&s->b, to, plain_of(s, &v[i])))
			return full(s);
	return 0;
}

static int shelf_string(void *it, const uint8_t *bytes, size_t len, struct pickle_value *v)
{
	struct shelf *s = it;

	return keep(s, plain_new_text(&s->b, (const char *)bytes, len), V_STRING, v);
}

static int shelf_dict(void *it, struct pickle_value *v)
{
	struct shelf *s = it;

	return keep(s, plain_new(&s->b, PLAIN_DICT), V_DICT, v);
}

static int shelf_list(void *it, struct pickle_value *v)
{
	struct shelf *s = it;

	return keep(s, plain_new(&s->b, PLAIN_LIST), V_LIST, v);
}

static int shelf_tuple(void *it, const struct pickle_value *item, size_t n, struct pickle_value *v)
{
	struct shelf *s = it;
	struct plain *p = plain_new(&s->b, PLAIN_LIST);
	int rc = keep(s, p, V_TUPLE, v);

	return rc ? rc : add(s, p, item, n);
}

static int shelf_add(void *it, uint32_t to, const struct pickle_value *v, size_t n)
{
	struct shelf *s = it;

	return add(s, s->made[to], v, n);
}

static int shelf_root(void *it, const struct pickle_value *v)
{
	struct shelf *s = it;

	s->root = plain_of(s, v);
	return s->root ? 0 : full(s);
}

struct plain *plain_from_pickle(const unsigned char *bytes, size_t n, struct pool *pool, struct err *e)
{
	static const struct pickle_sink sink = {
		.what = "a pickle of plain data",
		.hint = "",
		.string_kept = UINT32_MAX,
		.string = shelf_string,
		.dict = shelf_dict,
		.list = shelf_list,
		.tuple = shelf_tuple,
		.set = shelf_add,
		.append = shelf_add,
		.root = shelf_root,
	};
	struct shelf s = {.b.pool = pool, .e = e};
	struct pickle_input in;

	input_of_memory(&in, bytes, n, e);
	if (pickle_read(&in, &sink, &s, e) != 0)
		s.root = NULL;
	free(s.made);
	return s.root;
}
