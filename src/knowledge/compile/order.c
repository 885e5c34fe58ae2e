/* SPDX-License-Identifier: Apache-2.0
 * The partial order of causes and rules (struct order_place): who is over whom, directly or indirectly.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "knowledge/compile/compile.h"

#define WORDS(n) (((n) + 31) / 32)

static struct order_place *place_named(const struct kb *kb, const char *name)
{
	size_t len = strcspn(name, "/");

	for (struct cause *c = OWN(kb->first); c; c = OWN(c->next)) {
		if (strncmp(AT(c->id), name, len) != 0 || AT(c->id)[len])
			continue;
		if (!name[len])
			return &c->place;
		for (struct when *w = OWN(c->when); w; w = OWN(w->next))
			if (!strcmp(AT(w->id), name + len + 1))
				return &w->place;
	}
	return NULL;
}

/* Most likely the cause was deleted or renamed, and the person who did it sees this first. */
static int name_missing(const struct over *o, struct err *e)
{
	const char *name = AT(o->name), *file = AT(o->file);
	int len = (int)strcspn(name, "/");

	err_set(e, -EINVAL, "%s line %u names '%s', and there is no such %s in kb/causes/%.*s.md", file, o->line, name,
		name[len] ? "rule" : "cause", len, name);
	return err_hint(e, "remove '%s' from that line of %s, or bring kb/causes/%.*s.md back", name, file, len, name);
}

static int names_resolve(const struct kb *kb, struct over *list, struct err *e)
{
	for (struct over *o = list; o; o = OWN(o->next)) {
		REF_SET(o->place, place_named(kb, AT(o->name)));
		if (!AT(o->place))
			return name_missing(o, e);
	}
	return 0;
}

/* A rule that is over something, or that something is over, has its own place in the order, not its cause's. */
static void stand_alone(struct order_place *p)
{
	p->alone |= AT(p->over) != NULL;
	for (const struct over *o = AT(p->over); o; o = AT(o->next)) {
		struct order_place *below = OWN(o->place);

		below->alone = true;	/* no effect on a cause */
	}
}

static void put_below(uint32_t *below, const struct order_place *p, size_t n)
{
	const uint32_t *more = AT(p->below);

	below[p->number / 32] |= 1u << (p->number % 32);
	for (size_t i = 0; i < WORDS(n); i++)
		below[i] |= more[i];
}

/* Collects what `p` is over, directly or indirectly. Reaching `p` again while it is open means that it is over
 * itself. */
static int place_close(struct arena *a, struct order_place *p, size_t n, struct err *e)
{
	uint32_t *below;
	int rc = 0;

	if (AT(p->below))
		return 0;
	if (p->open)
		return err_set(e, -ELOOP, "'%s' is over itself", AT(p->name));
	p->open = true;
	for (const struct over *o = AT(p->over); o && !rc; o = AT(o->next)) {
		rc = place_close(a, OWN(o->place), n, e);
		if (rc == -ELOOP)
			rc = err_set(e, -EINVAL,
				     "%s line %u: the order has a cycle: '%s' is over '%s', which is over it",
				     AT(o->file), o->line, AT(p->name), AT(o->name));
	}
	if (rc)
		return rc;
	below = arena_alloc(a, WORDS(n) * sizeof(*below));
	REF_SET(p->below, below);
	for (const struct over *o = AT(p->over); o; o = AT(o->next))
		put_below(below, AT(o->place), n);
	return 0;
}

static int order_names(const struct kb *kb, struct err *e)
{
	for (struct cause *c = OWN(kb->first); c; c = OWN(c->next)) {
		if (names_resolve(kb, OWN(c->place.over), e) || names_resolve(kb, OWN(c->explains), e))
			return -EINVAL;
		stand_alone(&c->place);
		for (struct when *w = OWN(c->when); w; w = OWN(w->next)) {
			if (names_resolve(kb, OWN(w->place.over), e))
				return -EINVAL;
			stand_alone(&w->place);
		}
	}
	return 0;
}

int order_resolve(struct arena *a, const struct kb *kb, struct err *e)
{
	int rc = order_names(kb, e);
	size_t n = 0;

	for (struct cause *c = OWN(kb->first); c; c = OWN(c->next)) {
		c->place.number = (uint16_t)n++;
		for (struct when *w = OWN(c->when); w; w = OWN(w->next))
			w->place.number = (uint16_t)(w->place.alone ? n++ : 0);
	}
	for (struct cause *c = OWN(kb->first); c && !rc; c = OWN(c->next)) {
		rc = place_close(a, &c->place, n, e);
		for (struct when *w = OWN(c->when); w && !rc; w = OWN(w->next))
			rc = w->place.alone ? place_close(a, &w->place, n, e) : 0;
	}
	return rc;
}
