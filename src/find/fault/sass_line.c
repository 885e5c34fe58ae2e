/* SPDX-License-Identifier: Apache-2.0
 * Decodes the code around an access (see sass_line.h).
 */
#include "find/fault/sass_line.h"

#include <stdlib.h>

#include "base/mem.h"
#include "formats/image.h"

#define BEFORE		512			/* instructions */
#define BEHIND		64
#define CODE_MAX	((uint64_t)8 << 20)	/* bytes of one function */
#define ALL_PREDS	0x7fu

static void decode_memory(struct sass_line *l, const struct sass *s)
{
	l->dest = s->dest;
	l->n = s->dest_regs;
	/* the widest loads have a second destination */
	l->any = s->kind == SASS_LOAD && s->width > 16;
}

static void decode_math(struct sass_line *l, const struct sass_math *m)
{
	unsigned out = (1u << m->out[0] | 1u << m->out[1]) & ALL_PREDS;

	l->value = SASS_VALUE_MATH;
	l->as.math = *m;
	l->uniform = m->uniform;
	l->dest = m->dest;
	l->n = m->n;
	l->preds = m->uniform ? 0 : out;
	l->upreds = m->uniform ? out : 0;
}

static void decode_move(struct sass_line *l, const struct sass_move *m)
{
	l->any = m->from == SASS_FROM_ANYWHERE;
	l->uniform = m->uniform;
	l->dest = m->from == SASS_FROM_NOTHING ? -1 : m->dest;
	l->n = m->n;
	if (m->from == SASS_FROM_NOTHING || m->from >= SASS_FROM_ELSEWHERE)
		return;
	l->value = SASS_VALUE_MOVE;
	l->as.move = *m;
	l->preds = l->upreds = 0;	/* the exact forms write none */
}

static void decode_registers(struct sass_line *l, const uint8_t *code, unsigned arch)
{
	struct sass_move move;
	struct sass_math math;
	struct sass s;

	l->preds = l->upreds = sass_predicates(code, arch);
	if (sass_decode(code, arch, &s)) {
		decode_memory(l, &s);
		return;
	}
	sass_move(code, arch, &move);
	if ((move.from >= SASS_FROM_ELSEWHERE || move.from == SASS_FROM_NOTHING) && sass_math(code, arch, &math))
		decode_math(l, &math);
	else
		decode_move(l, &move);
}

static void decode_line(struct sass_line *l, const uint8_t *code, unsigned arch, uint64_t pc)
{
	uint64_t target;

	l->dest = -1;
	l->stop = sass_step(code, arch, pc, &target) != SASS_STEP_ON;
	l->branch = target != 0;
	if (l->stop) {
		l->any = true;
		l->preds = l->upreds = ALL_PREDS;
	} else {
		decode_registers(l, code, arch);
	}
}

/* Marks where branches of the function lead to. False when one may lead anywhere. */
static bool mark_entries(struct sass_lines *l, const uint8_t *code, unsigned arch, const struct image_function *in)
{
	uint64_t at, target;

	for (at = 0; in->size - at >= SASS_BYTES; at += SASS_BYTES) {
		if (sass_step(code + at, arch, in->start + at, &target) == SASS_STEP_ANYWHERE)
			return false;
		/* a target inside an instruction counts as that instruction */
		if (target >= l->start && target - l->start < l->n * SASS_BYTES)
			l->line[(target - l->start) / SASS_BYTES].entered = true;
	}
	return true;
}

bool sass_lines_open(struct sass_lines *l, struct bytes image, unsigned arch, uint64_t pc)
{
	struct image_function in;
	const uint8_t *code;
	uint64_t before, behind;
	size_t i;

	if (!image_find(image, pc, &in) || in.size > CODE_MAX || pc - in.start >= in.size ||
	    (pc - in.start) % SASS_BYTES)
		return false;
	code = image_code(image, in.start, in.size);
	if (!code)
		return false;
	before = (pc - in.start) / SASS_BYTES;
	behind = (in.start + in.size - pc) / SASS_BYTES;
	l->access = before < BEFORE ? before : BEFORE;
	l->n = l->access + (behind < BEHIND ? behind : BEHIND);
	l->start = pc - l->access * SASS_BYTES;
	l->line = xcalloc(l->n + 1, sizeof(*l->line));
	for (i = 0; i < l->n; i++)
		decode_line(&l->line[i], code + (l->start - in.start) + i * SASS_BYTES, arch, l->start + i * SASS_BYTES);
	return mark_entries(l, code, arch, &in);
}

void sass_lines_close(struct sass_lines *l)
{
	free(l->line);
	l->line = NULL;
}

bool sass_line_writes(const struct sass_line *l, bool uniform, int reg)
{
	return l->any || (l->dest >= 0 && l->uniform == uniform && reg >= l->dest && reg - l->dest < (int)l->n);
}
