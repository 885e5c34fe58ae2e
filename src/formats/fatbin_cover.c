/* SPDX-License-Identifier: Apache-2.0
 * Does a library have code for this GPU and this driver?
 */
#include "base/buf.h"
#include "compat/compat.h"
#include "formats/fatbin.h"

struct verdict_of_set {
	enum fatbin_cover cover;
	const struct fatbin_target *best;
	bool tegra;
};

/* The driver picks the best machine code, and PTX only where there is none. */
static void sass_judge(struct verdict_of_set *v, const struct fatbin_target *t, int cc)
{
	enum compat_code code = compat_sass_runs((struct compat_target){t->arch, t->suffix}, cc);

	if (code == COMPAT_CODE_TEGRA) {
		v->tegra = true;
		if (v->cover == FATBIN_COVER_NONE)
			v->cover = FATBIN_COVER_UNKNOWN;
	} else if (code == COMPAT_CODE_UNKNOWN && v->cover == FATBIN_COVER_NONE) {
		v->cover = FATBIN_COVER_UNKNOWN;
	} else if (code == COMPAT_CODE_RUNS &&
		   (v->cover != FATBIN_COVER_SASS || t->arch >= v->best->arch)) {
		v->cover = FATBIN_COVER_SASS;
		v->best = t;
	}
}

static void ptx_judge(struct verdict_of_set *v, const struct fatbin_target *t, int cc, int driver_cuda)
{
	if (v->cover == FATBIN_COVER_SASS)
		return;
	switch (compat_ptx_runs((struct compat_target){t->arch, t->suffix}, t->ptx, cc, driver_cuda)) {
	case COMPAT_CODE_RUNS:
		v->cover = FATBIN_COVER_JIT;
		v->best = t;
		break;
	case COMPAT_CODE_PTX_VERSION:
		if (v->cover != FATBIN_COVER_JIT)
			v->cover = FATBIN_COVER_PTX_NEW;
		break;
	case COMPAT_CODE_UNKNOWN:
		if (v->cover == FATBIN_COVER_NONE)
			v->cover = FATBIN_COVER_UNKNOWN;
		break;
	default:
		break;
	}
}

/* Machine code comes first in the list of targets. */
static struct verdict_of_set set_judge(const struct fatbin *f, const struct fatbin_set *s, int cc, int driver_cuda)
{
	struct verdict_of_set v = {.cover = FATBIN_COVER_NONE};

	for (size_t i = 0; i < s->n; i++) {
		const struct fatbin_target *t = &f->target[s->target[i]];

		if (t->kind == FATBIN_SASS)
			sass_judge(&v, t, cc);
		else if (t->kind == FATBIN_PTX)
			ptx_judge(&v, t, cc, driver_cuda);
	}
	return v;
}

/* Relocatable code is linked into another fat binary, which is what counts. For a library with nothing but special code, that
 * code counts. */
static bool decides(const struct fatbin *f, const struct fatbin_set *s)
{
	bool other = false;

	if (s->n == 0 || (f->general && !s->general))
		return false;
	if (!s->linked)
		return true;
	for (size_t i = 0; i < f->n_sets; i++)
		other |= !f->set[i].linked && f->set[i].n && (!f->general || f->set[i].general);
	return !other;
}

static enum fatbin_cover cover_of(const struct fatbin *f, const struct fatbin_coverage *c)
{
	uint32_t runs = c->sass + c->jit, fails = c->ptx_new + c->none;

	if (f->damaged || runs + fails + c->unknown == 0)
		return FATBIN_COVER_UNKNOWN;
	if (fails == 0)
		return c->unknown ? FATBIN_COVER_UNKNOWN : c->jit ? FATBIN_COVER_JIT : FATBIN_COVER_SASS;
	if (runs >= fails)
		return FATBIN_COVER_PART;
	if (c->unknown > fails)
		return FATBIN_COVER_UNKNOWN;
	return c->ptx_new >= c->none ? FATBIN_COVER_PTX_NEW : FATBIN_COVER_NONE;
}

static uint32_t *sets_with(struct fatbin_coverage *c, enum fatbin_cover cover)
{
	switch (cover) {
	case FATBIN_COVER_SASS:
		return &c->sass;
	case FATBIN_COVER_JIT:
		return &c->jit;
	case FATBIN_COVER_PTX_NEW:
		return &c->ptx_new;
	case FATBIN_COVER_NONE:
		return &c->none;
	default:
		return &c->unknown;
	}
}

struct fatbin_coverage fatbin_covers(const struct fatbin *f, int cc, int driver_cuda)
{
	struct fatbin_coverage c = {0};

	for (size_t i = 0; i < f->n_sets; i++) {
		const struct fatbin_set *s = &f->set[i];
		struct verdict_of_set v;

		if (!decides(f, s))
			continue;
		v = set_judge(f, s, cc, driver_cuda);
		/* the first set is the most frequent one */
		if (v.best && !c.best.arch)
			c.best = *v.best;
		c.tegra |= v.tegra;
		*sets_with(&c, v.cover) += s->count;
	}
	c.cover = cover_of(f, &c);
	return c;
}

/* sm_89 in one of four hundred kernel files does not make it an architecture of the library. */
static bool is_general(const struct fatbin *f, const struct fatbin_target *t)
{
	if (!f->general)
		return (uint64_t)t->in * 2 >= f->binaries;
	return (uint64_t)t->in_general * 2 >= f->general;
}

void fatbin_archs(const struct fatbin *f, bool general, struct buf *text)
{
	size_t before = text->len;

	for (size_t i = 0; i < f->n; i++) {
		const struct fatbin_target *t = &f->target[i];

		if ((t->kind != FATBIN_SASS && t->kind != FATBIN_PTX) || is_general(f, t) != general)
			continue;
		buf_printf(text, "%s%s_%d", text->len > before ? " " : "", t->kind == FATBIN_SASS ? "sm" : "compute",
			   t->arch);
		if (t->suffix)
			buf_add(text, &t->suffix, 1);
	}
}
