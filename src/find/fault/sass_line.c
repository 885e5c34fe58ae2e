/* SPDX-License-Identifier: Apache-2.0
 * Executes the straight line to an instruction (see sass_line.h).
 *
 * A register that nothing can have written between an instruction and where the thread stopped has the dump's value there. All others
 * are computed. Where the last instruction that writes a register is on the line, both are known and are compared; what is computed from
 * the register carries the result, so it is known of the address whether anything behind it was compared, and whether it differed.
 */
#include "find/fault/sass_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/image.h"
#include "find/fault/sass_exec.h"

#define BEFORE	 512		       /* instructions */
#define BEHIND	 64
#define CODE_MAX ((uint64_t)8 << 20) /* bytes of one function */

struct insn {
	struct sass_effect writes;
	bool entered;  /* a branch may come in before it */
	bool stop;     /* the next one is not always reached from here, or not with the same registers */
	bool branch;   /* it may also go elsewhere */
	bool constant; /* it only writes a number */
	bool skip;     /* its results are not known */
};

struct sass_line {
	const uint8_t *code; /* of the first instruction */
	uint64_t start;	     /* its address */
	struct insn *insn;
	size_t n, first, access; /* the line is from `first` to before `access` */
	size_t stopped;		 /* what `last` is for */
	int last[2][CELL_REGS];	 /* the last instruction before the thread stopped that may write the register, -1 = none */
	struct cell_run run;
	struct cell_state s;
	struct cell put[2][CELL_REGS]; /* by the last instruction of the line that writes the register, as computed */
	struct sass_thread anyone;
};

static void decode(struct insn *in, const uint8_t *code, unsigned arch, uint64_t pc)
{
	struct word w = word_of(code);
	struct sass_move move;
	struct sass s;
	uint64_t target;

	in->stop = sass_step(code, arch, pc, &target) != SASS_STEP_ON;
	in->branch = target != 0;
	sass_effect(code, arch, &in->writes);
	in->writes.any = in->writes.any || in->stop;
	sass_move(code, arch, &move);
	in->constant = move.from == SASS_FROM_NUMBER;
	in->skip = is_control(&w) || operation_of(&w) == OP_MUFU || sass_decode(code, arch, &s);
}

/* Marks where branches of the function lead to. False when one may lead anywhere. */
static bool mark_entries(struct sass_line *l, const uint8_t *code, unsigned arch, const struct image_function *in)
{
	uint64_t at, target;

	for (at = 0; in->size - at >= SASS_BYTES; at += SASS_BYTES) {
		if (sass_step(code + at, arch, in->start + at, &target) == SASS_STEP_ANYWHERE)
			return false;
		/* a target inside an instruction counts as that instruction */
		if (target >= l->start && target - l->start < l->n * SASS_BYTES)
			l->insn[(target - l->start) / SASS_BYTES].entered = true;
	}
	return true;
}

static bool decode_around(struct sass_line *l, struct bytes image, unsigned arch, uint64_t pc)
{
	struct image_function in;
	const uint8_t *code;
	uint64_t before, behind;

	if (!image_find(image, pc, &in) || in.size > CODE_MAX || pc - in.start >= in.size || (pc - in.start) % SASS_BYTES)
		return false;
	code = image_code(image, in.start, in.size);
	if (!code)
		return false;
	before = (pc - in.start) / SASS_BYTES;
	behind = (in.start + in.size - pc) / SASS_BYTES;
	l->access = before < BEFORE ? before : BEFORE;
	l->n = l->access + (behind < BEHIND ? behind : BEHIND);
	l->start = pc - l->access * SASS_BYTES;
	l->code = code + (l->start - in.start);
	l->insn = xcalloc(l->n + 1, sizeof(*l->insn));
	for (size_t i = 0; i < l->n; i++)
		decode(&l->insn[i], l->code + i * SASS_BYTES, arch, l->start + i * SASS_BYTES);
	if (!mark_entries(l, code, arch, &in))
		return false;
	l->first = l->access;
	while (l->first > 0 && !l->insn[l->first].entered && !l->insn[l->first - 1].stop)
		l->first--;
	return true;
}

struct sass_line *sass_line_open(struct bytes image, unsigned arch, uint64_t pc)
{
	struct sass_line *l = xcalloc(1, sizeof(*l));

	l->stopped = SIZE_MAX;
	l->run.stack = cell_unknown();
	l->anyone = (struct sass_thread){.image = image, .arch = arch};
	image_section(image, ".nv.constant4", &l->run.bank4);
	if (decode_around(l, image, arch, pc))
		return l;
	sass_line_close(l);
	return NULL;
}

void sass_line_close(struct sass_line *l)
{
	if (!l)
		return;
	free(l->insn);
	free(l);
}

/* Did the thread get to its pc without leaving the straight line from the access? */
static bool reaches(const struct sass_line *l, uint64_t pc)
{
	uint64_t access = l->start + l->access * SASS_BYTES;

	if (pc < access || (pc - access) % SASS_BYTES || (pc - l->start) / SASS_BYTES > l->n)
		return false;
	for (size_t i = l->access; i < (pc - l->start) / SASS_BYTES; i++)
		if (l->insn[i].stop || l->insn[i].branch)
			return false;
	return true;
}

bool sass_line_keeps(const struct sass_line *l, int predicate, uint64_t stopped)
{
	if (!reaches(l, stopped))
		return false;
	for (size_t i = l->access; i < (stopped - l->start) / SASS_BYTES; i++)
		if (l->insn[i].writes.preds >> predicate & 1)
			return false;
	return true;
}

typedef void reg_fn(struct sass_line *l, size_t i, bool uniform, size_t reg);

/* Calls fn for every register that the instruction may write. */
static void each_written(struct sass_line *l, size_t i, reg_fn *fn)
{
	const struct sass_effect *w = &l->insn[i].writes;

	for (size_t r = 0; w->any && r < CELL_REGS; r++) {
		fn(l, i, false, r);
		fn(l, i, true, r);
	}
	for (unsigned d = 0; d < 2 && !w->any; d++)
		for (size_t r = 0; w->dest[d] >= 0 && r < w->n && (size_t)w->dest[d] + r < CELL_REGS; r++)
			fn(l, i, w->uniform, (size_t)w->dest[d] + r);
}

static void is_last(struct sass_line *l, size_t i, bool uniform, size_t reg)
{
	l->last[uniform][reg] = (int)i;
}

static void find_last_writers(struct sass_line *l, uint64_t stopped)
{
	size_t n = (size_t)((stopped - l->start) / SASS_BYTES);

	if (l->stopped == n)
		return;
	l->stopped = n;
	for (size_t r = 0; r < CELL_REGS; r++)
		l->last[0][r] = l->last[1][r] = -1;
	for (size_t i = 0; i < n; i++)
		each_written(l, i, is_last);
}

/* The register before instruction `at`, from the dump. */
static bool survived(const struct sass_line *l, bool uniform, size_t reg, size_t at, uint32_t *value)
{
	return l->last[uniform][reg] < (int)at && dump_word(uniform ? l->run.t->uregs : l->run.t->regs, reg, value);
}

/* A register that survived must have what the code computes. A constant that matches proves nothing. */
static void keep(struct sass_line *l, size_t i, bool uniform, size_t reg)
{
	struct cell *c = &(uniform ? l->s.u : l->s.r)[reg], computed = *c;
	uint32_t value;

	l->put[uniform][reg] = computed;
	if (!survived(l, uniform, reg, i + 1, &value))
		return;
	*c = cell_number(value);
	c->words = computed.words;
	c->checked = computed.known && !l->insn[i].constant;
	c->differs = computed.known && computed.v != value;
}

static void forget_all(struct cell_state *s)
{
	for (size_t r = 0; r < CELL_REGS; r++)
		s->r[r] = s->u[r] = cell_unknown();
	for (size_t p = 0; p < CELL_PREDS; p++)
		s->p[p] = s->up[p] = cell_unknown();
	s->p[CELL_ALWAYS] = s->up[CELL_ALWAYS] = cell_number(1);
}

static void execute(struct sass_line *l, const struct sass_thread *t)
{
	uint32_t value;

	l->run.t = t;
	l->run.nobody = t == &l->anyone;
	forget_all(&l->s);
	for (size_t r = 0; r < CELL_REGS; r++)
		for (int u = 0; u < 2; u++) {
			l->put[u][r] = cell_unknown();
			if (survived(l, u, r, l->first, &value))
				(u ? l->s.u : l->s.r)[r] = cell_number(value);
		}
	for (size_t i = l->first; i < l->access; i++) {
		const uint8_t *code = l->code + i * SASS_BYTES;

		if (!(l->insn[i].skip ? cell_forget(&l->run, &l->s, code) : cell_step(&l->run, &l->s, code)))
			forget_all(&l->s);
		each_written(l, i, keep);
	}
}

/* A part of the address: computed, and compared with the register if it survived. Half of a pair is not trusted when the other half
 * cannot be compared; a register that is the whole address is. A uniform register has nothing to do with them. */
static bool part(const struct sass_line *l, bool uniform, bool pair, int reg, struct cell *all, uint32_t *value)
{
	struct cell c;
	uint32_t dump = 0;
	bool here;

	*value = 0;
	if (reg < 0 || reg >= CELL_REGS)
		return reg < 0;
	c = l->put[uniform][reg];
	here = survived(l, uniform, (size_t)reg, l->access, &dump);
	all->differs |= c.differs || (here && c.known && dump != c.v);
	all->checked |= c.checked || (here && (c.known || (!pair && !uniform)));
	*value = c.known ? c.v : dump;
	return c.known || (here && (uniform || !pair));
}

static bool parts(const struct sass_line *l, bool uniform, int reg, bool pair, struct cell *all, uint64_t *value)
{
	uint32_t lo, hi = 0;

	if (!part(l, uniform, pair, reg, all, &lo) || (pair && reg >= 0 && !part(l, uniform, pair, reg + 1, all, &hi)))
		return false;
	*value = (uint64_t)hi << 32 | lo;
	return true;
}

enum sass_answer sass_line_address(struct sass_line *l, const struct sass *s, const struct sass_thread *t,
				   uint64_t *address)
{
	struct cell all = cell_number(0);
	uint64_t reg = 0, ureg = 0;

	if (!reaches(l, t->stopped))
		return SASS_UNKNOWN;
	find_last_writers(l, t->stopped);
	execute(l, t);
	if (!parts(l, false, s->reg, s->reg_64, &all, &reg) || !parts(l, true, s->ureg, s->ureg_64, &all, &ureg))
		return all.differs ? SASS_DIFFERS : SASS_UNKNOWN;
	*address = sass_sum(s, reg, ureg);
	return all.differs ? SASS_DIFFERS : all.checked ? SASS_CHECKED : SASS_COMPUTED;
}

uint64_t sass_line_origin(struct sass_line *l, const struct sass *s, uint64_t params_offset)
{
	l->anyone.params_offset = params_offset;
	execute(l, &l->anyone);
	return cell_reg(&l->s, false, s->reg).words | cell_reg(&l->s, true, s->ureg).words;
}

bool sass_line_constant(struct sass_line *l, int reg, bool pair, uint64_t *value)
{
	struct cell lo, hi = cell_number(0);

	l->anyone.params_offset = 0;
	execute(l, &l->anyone);
	lo = cell_reg(&l->s, false, reg);
	if (pair)
		hi = cell_reg(&l->s, false, reg + 1);
	*value = (uint64_t)hi.v << 32 | lo.v;
	return lo.known && hi.known;
}
