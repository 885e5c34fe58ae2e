/* SPDX-License-Identifier: Apache-2.0
 * The partial order of causes and rules (see order.h).
 */
#include "verdict/rules/order.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "verdict/rules/kb.h"
#include "verdict/rules/rules.h"

#define WORDS(n) (((n) + 63) / 64)

static struct order_place *place_named(struct kb *kb, const char *name)
{
	size_t len = strcspn(name, "/");

	for (struct cause *c = kb->first; c; c = c->next) {
		if (strncmp(c->id, name, len) != 0 || c->id[len])
			continue;
		if (!name[len])
			return &c->place;
		for (struct when *w = c->when; w; w = w->next)
			if (!strcmp(w->id, name + len + 1))
				return &w->place;
	}
	return NULL;
}

/* Most likely the cause was deleted or renamed, and whoever did it sees this first. */
static int name_missing(const struct over *o, struct err *e)
{
	int len = (int)strcspn(o->name, "/");

	err_set(e, -EINVAL, "%s line %d names '%s', and there is no such %s in kb/causes/%.*s.md", o->file, o->line,
		o->name, o->name[len] ? "rule" : "cause", len, o->name);
	return err_hint(e, "remove '%s' from that line of %s, or bring kb/causes/%.*s.md back", o->name, o->file, len,
			o->name);
}

static int names_resolve(struct kb *kb, struct over *list, struct err *e)
{
	for (struct over *o = list; o; o = o->next) {
		o->place = place_named(kb, o->name);
		if (!o->place)
			return name_missing(o, e);
	}
	return 0;
}

/* A rule that is over something, or that something is over, has its own place in the order, not its cause's. */
static void stand_alone(struct order_place *p)
{
	p->alone |= p->over != NULL;
	for (struct over *o = p->over; o; o = o->next)
		o->place->alone = true;	/* no effect on a cause */
}

/* Collects what `p` is over, directly or indirectly. Reaching `p` again while it is open means that it is over
 * itself. */
static int place_close(struct kb *kb, struct order_place *p, size_t n, struct err *e)
{
	int rc = 0;

	if (p->below)
		return 0;
	if (p->open)
		return err_set(e, -ELOOP, "'%s' is over itself", p->name);
	p->open = true;
	for (const struct over *o = p->over; o && !rc; o = o->next) {
		rc = place_close(kb, o->place, n, e);
		if (rc == -ELOOP)
			rc = err_set(e, -EINVAL,
				     "%s line %d: the order has a cycle: '%s' is over '%s', which is over it",
				     o->file, o->line, p->name, o->name);
	}
	if (rc)
		return rc;
	p->below = pool_alloc(&kb->pool, WORDS(n) * sizeof(*p->below));
	for (const struct over *o = p->over; o; o = o->next) {
		p->below[o->place->number / 64] |= 1ull << (o->place->number % 64);
		for (size_t i = 0; i < WORDS(n); i++)
			p->below[i] |= o->place->below[i];
	}
	return 0;
}

static int order_names(struct kb *kb, struct err *e)
{
	for (struct cause *c = kb->first; c; c = c->next) {
		if (names_resolve(kb, c->place.over, e) || names_resolve(kb, c->explains, e))
			return -EINVAL;
		stand_alone(&c->place);
		for (struct when *w = c->when; w; w = w->next) {
			if (names_resolve(kb, w->place.over, e))
				return -EINVAL;
			stand_alone(&w->place);
		}
	}
	return 0;
}

int order_resolve(struct kb *kb, struct err *e)
{
	int rc = order_names(kb, e);
	size_t n = 0;

	for (struct cause *c = kb->first; c; c = c->next) {
		c->place.number = n++;
		for (struct when *w = c->when; w; w = w->next)
			w->place.number = w->place.alone ? n++ : 0;
	}
	for (struct cause *c = kb->first; c && !rc; c = c->next) {
		rc = place_close(kb, &c->place, n, e);
		for (struct when *w = c->when; w && !rc; w = w->next)
			rc = w->place.alone ? place_close(kb, &w->place, n, e) : 0;
	}
	return rc;
}

static const struct order_place *place_of_match(const struct match *m)
{
	return m->when && m->when->place.alone ? &m->when->place : &m->cause->place;
}

bool order_is_over(const struct match *a, const struct match *b)
{
	const struct order_place *x = place_of_match(a), *y = place_of_match(b);

	return x->below && (x->below[y->number / 64] >> (y->number % 64) & 1);
}
