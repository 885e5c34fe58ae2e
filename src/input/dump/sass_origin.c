/* SPDX-License-Identifier: Apache-2.0
 * Which parameters of the kernel an address was computed from (see sass_eval.h).
 *
 * An address is a pointer plus what is far less than one. So only sums are followed, backwards along the straight line:
 * what was multiplied, shifted or subtracted is an index, and what comes out of memory or of code that is not known is
 * taken for one. If that was the pointer, no parameter is found, and that is the answer.
 */
#include "input/dump/sass_eval_priv.h"
#include "base/banned.h"

#define DEPTH_MAX	24

struct origin {
	struct sass_eval *e;
	uint64_t params_offset, words;
	unsigned depth;
};

static void of_register(struct origin *o, bool uniform, int reg, size_t at);

static void of_bank(struct origin *o, unsigned bank, uint64_t off)
{
	if (bank == 0 && off >= o->params_offset && (off - o->params_offset) / 8 < 64)
		o->words |= 1ull << (off - o->params_offset) / 8;
}

static void of_source(struct origin *o, const struct sass_source *s, unsigned half, size_t at)
{
	if (s->minus)
		return;
	if (s->from == SASS_FROM_BANK)
		of_bank(o, s->bank, s->offset + half * 4ull);
	else if ((s->from == SASS_FROM_REG || s->from == SASS_FROM_UREG) && s->reg >= 0)
		of_register(o, s->from == SASS_FROM_UREG, s->reg + (int)half, at);
}

static bool is_one(const struct sass_source *s)
{
	return s->from == SASS_FROM_NUMBER && s->number == 1;
}

/* `half`: of a result of two registers. */
static void of_math(struct origin *o, const struct sass_math *m, unsigned half, size_t at)
{
	unsigned ab = m->ab_64 ? half : 0, c = m->c_64 ? half : 0;

	switch (m->op) {
	case SASS_ADD:
	case SASS_LOGIC:
		of_source(o, &m->a, ab, at);
		of_source(o, &m->b, ab, at);
		of_source(o, &m->c, c, at);
		break;
	case SASS_LEA:
		of_source(o, &m->b, ab, at);
		break;
	case SASS_MAD:
		of_source(o, &m->c, c, at);
		if (is_one(&m->b))
			of_source(o, &m->a, ab, at);
		break;
	case SASS_COPY:
		of_source(o, &m->b, ab, at);
		break;
	default:
		break;
	}
}

static void of_move(struct origin *o, const struct sass_move *m, unsigned half, size_t at)
{
	if (m->from == SASS_FROM_BANK && m->reg < 0)
		of_bank(o, m->bank, m->offset + half * 4ull);
	else if ((m->from == SASS_FROM_REG || m->from == SASS_FROM_UREG) && m->reg >= 0)
		of_register(o, m->from == SASS_FROM_UREG, m->reg + (int)half, at);
}

static void of_register(struct origin *o, bool uniform, int reg, size_t at)
{
	const struct sass_line *l;
	size_t found;

	if (o->depth >= DEPTH_MAX || !sass_value_writer(o->e, uniform, reg, at, &found))
		return;
	o->depth++;
	l = &o->e->lines.line[found];
	if (l->value == SASS_VALUE_MATH)
		of_math(o, &l->as.math, (unsigned)(reg - l->dest), found);
	else if (l->value == SASS_VALUE_MOVE)
		of_move(o, &l->as.move, (unsigned)(reg - l->dest), found);
	o->depth--;
}

uint64_t sass_eval_origin(struct sass_eval *e, const struct sass *s, uint64_t params_offset)
{
	struct origin o = {.e = e, .params_offset = params_offset};

	e->work = SASS_WORK;
	if (s->reg >= 0)
		of_register(&o, false, s->reg, e->lines.access);
	if (s->ureg >= 0)
		of_register(&o, true, s->ureg, e->lines.access);
	return params_offset ? o.words : 0;
}
