/* SPDX-License-Identifier: Apache-2.0
 * Executes single instructions (see sass_cell.h): moves and memory here, the others in sass_decide.c and sass_arith.c. Layouts are the
 * same from 7.5 to 12.1 and were checked with kernels of our own (tests/dump/check_run.py). An instruction that is not here has unknown
 * results.
 */
#include "find/fault/sass_exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct cell moved(const struct cell_run *run, const struct cell_state *s, const struct sass_move *m, unsigned i)
{
	struct cell index;

	switch (m->from) {
	case SASS_FROM_NUMBER:
		return i ? cell_unknown() : cell_number(m->number);
	case SASS_FROM_REG:
	case SASS_FROM_UREG:
		return cell_reg(s, m->from == SASS_FROM_UREG, m->reg < 0 ? -1 : m->reg + (int)i);
	case SASS_FROM_BANK:
		index = cell_reg(s, m->reg_uniform, m->reg);
		return index.known ? cell_constant(run, m->bank, (uint64_t)m->offset + index.v + i * 4ull)
				   : cell_unknown();
	default:
		return cell_unknown();
	}
}

static void run_move(const struct cell_run *run, struct cell_state *s, const struct sass_move *m)
{
	struct cell value[8];
	unsigned i, n = m->n < 8 ? m->n : 8;

	for (i = 0; i < n; i++)		/* all are read before any is written */
		value[i] = moved(run, s, m, i);
	for (i = 0; i < n; i++)
		cell_set_reg(s, m->uniform, m->dest < 0 ? -1 : m->dest + (int)i, value[i]);
}

/* The last parameter may be shorter than a word. */
static struct cell small_parameter(const struct cell_run *run, unsigned bank, uint64_t off, unsigned n)
{
	const struct sass_thread *t = run->t;
	uint64_t at = off - t->params_offset;
	struct cell c;

	if (bank == 0 && t->params_offset && off >= t->params_offset) {
		if (!t->params.data || at > t->params.len || n > t->params.len - at)
			return cell_unknown();
		return cell_number(t->params.data[at] | (n == 2 ? (uint32_t)t->params.data[at + 1] << 8 : 0));
	}
	c = cell_constant(run, bank, off & ~3ull);
	c.v = c.v >> 8 * (off % 4) & (n == 1 ? 0xff : 0xffff);
	return c;
}

/* LDC and ULDC of one or two bytes. */
static bool run_small_constant(const struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform)
{
	unsigned size = (unsigned)bits(w, 73, 3), n = size < 2 ? 1 : 2;
	struct cell index = cell_number(0), c;
	uint64_t off = bits(w, 38, 15);

	if (size > 3 || modifiers(w) & ~0xeu || bits(w, 53, 1) || bits(w, 32, 6) || bits(w, 59, 5) || bits(w, 64, 8))
		return false;
	if (!uniform)
		index = cell_reg(s, false, reg_at(w, 24));
	if (!index.known)
		return false;
	off += index.v;
	if (off % 4 + n > 4)
		return false;
	c = small_parameter(run, (unsigned)bits(w, 54, 5), off, n);
	if (size == 1)
		c.v = (uint32_t)(int8_t)c.v;
	else if (size == 3)
		c.v = (uint32_t)(int16_t)c.v;
	c.base = 0;
	cell_set_reg(s, uniform, uniform ? ureg_at(w, 16, run->t->arch) : reg_at(w, 16), c);
	return true;
}

/* ULDC with a uniform register in the address. */
static bool run_uldc(const struct cell_run *run, struct cell_state *s, const struct word *w)
{
	uint32_t mods = modifiers(w);
	struct cell index = cell_reg(s, true, ureg_at(w, 24, run->t->arch));
	uint64_t off = bits(w, 38, 15);
	int to = ureg_at(w, 16, run->t->arch);
	unsigned i;

	if (bits(w, 0, 12) != OPCODE(OP_ULDC_AT, 5) || run->t->arch >= 100 || (mods != 8 && mods != 10) ||
	    bits(w, 53, 1) || bits(w, 32, 6) || bits(w, 59, 5) || bits(w, 64, 8) || !bits(w, 91, 1) || !index.known)
		return false;
	for (i = 0; i < (mods == 8 ? 1u : 2u); i++)
		cell_set_reg(s, true, to < 0 ? -1 : to + (int)i,
			     cell_constant(run, (unsigned)bits(w, 54, 5), (uint64_t)(uint32_t)(off + index.v) + 4 * i));
	return true;
}

struct cell cell_address(const struct cell_state *s, const struct sass *a, uint64_t *address)
{
	struct cell lo = cell_reg(s, false, a->reg), hi = cell_reg(s, false, a->reg < 0 ? -1 : a->reg + 1);
	struct cell ulo = cell_reg(s, true, a->ureg), uhi = cell_reg(s, true, a->ureg < 0 ? -1 : a->ureg + 1), all;
	uint64_t reg = lo.v, ureg = ulo.v;

	if (a->reg_64 && a->reg >= 0) {
		reg |= (uint64_t)hi.v << 32;
		lo = cell_merge(lo, hi);
	}
	if (a->ureg_64 && a->ureg >= 0) {
		ureg |= (uint64_t)uhi.v << 32;
		ulo = cell_merge(ulo, uhi);
	}
	all = cell_merge(lo, ulo);
	*address = sass_sum(a, reg, ureg);
	return all;
}

/* The newest of the thread's own stores that the bytes overlap. */
static const struct cell_store *stored(const struct cell_state *s, enum sass_space space, uint64_t at, unsigned n)
{
	size_t i;

	for (i = s->n_stores; i-- > 0;)
		if (s->store[i].space == space && at < s->store[i].address + s->store[i].n && s->store[i].address < at + n)
			return &s->store[i];
	return NULL;
}

static struct cell load_word(struct cell_run *run, struct cell_state *s, enum sass_space space, uint64_t at, unsigned n,
			     uint16_t base)
{
	const struct cell_store *mine = stored(s, space, at, n);
	struct cell c = {.at = at, .n = (uint8_t)n, .raw = true, .at_base = base};
	uint8_t bytes[4] = {0};

	if (mine)
		return mine->address == at && mine->n == n ? mine->value : cell_unknown();
	if (space != SASS_GLOBAL)
		return cell_unknown();
	if (run->t->memory && run->t->memory(run->t->arg, at, bytes, n)) {
		run->loaded = c.known = true;
		c.v = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
	} else {
		run->missing = true;
	}
	return c;
}

static uint32_t extended(uint32_t v, unsigned type)
{
	return type == 1 ? (uint32_t)(int8_t)v : type == 3 ? (uint32_t)(int16_t)v : v;
}

static void run_load(struct cell_run *run, struct cell_state *s, const struct sass *a, const struct word *w)
{
	/* a generic address is taken for global memory: the dump has nothing at others */
	enum sass_space space = a->space == SASS_GENERIC ? SASS_GLOBAL : a->space;
	unsigned i, n = a->width < 4 ? a->width : 4;
	struct cell at, c;
	uint64_t address;

	at = cell_address(s, a, &address);
	for (i = 0; a->dest >= 0 && i < a->dest_regs; i++) {
		c = at.known && (space == SASS_GLOBAL || space == SASS_LOCAL)
			    ? load_word(run, s, space, address + 4ull * i, n, at.base)
			    : cell_unknown();
		if (a->width < 4)
			c.v = extended(c.v, (unsigned)bits(w, 73, 3));
		cell_set_reg(s, false, a->dest + (int)i, c);
	}
}

/* The dump has what was stored to global memory long ago; to local memory only we have it. */
static bool drop_store(struct cell_state *s)
{
	size_t i = 0;

	while (i < s->n_stores && s->store[i].space != SASS_GLOBAL)
		i++;
	if (i == s->n_stores)
		return false;
	s->n_stores--;
	memmove(&s->store[i], &s->store[i + 1], (s->n_stores - i) * sizeof(s->store[0]));
	return true;
}

/* What is written to an unknown place may be anywhere. */
static bool run_store(struct cell_state *s, const struct sass *a, const struct word *w)
{
	enum sass_space space = a->space == SASS_GENERIC ? SASS_GLOBAL : a->space;
	unsigned i, n = a->width < 4 ? a->width : 4, words = a->width > 4 ? a->width / 4 : 1;
	/* the value is at 32 where the address has 24 bits from 40 on, else at 64 */
	int reg = bits(w, 9, 3) == 4 ? reg_at(w, 32) : reg_at(w, 64);
	struct cell at, c;
	uint64_t address;

	if (space == SASS_SHARED)
		return true;
	at = cell_address(s, a, &address);
	if (!at.known)
		return space == SASS_GLOBAL;
	for (i = 0; i < words; i++) {
		if (s->n_stores == CELL_STORES && !drop_store(s))
			return false;
		c = bits(w, 9, 3) == 4 ? cell_reg(s, false, reg < 0 ? -1 : reg + (int)i) : cell_unknown();
		if (n < 4) {
			c.v &= n == 1 ? 0xff : 0xffff;
			c = cell_part(c, 0, n);
		}
		s->store[s->n_stores++] = (struct cell_store){
			.address = address + 4ull * i, .space = space, .n = n, .value = c};
	}
	return true;
}

/* True when it was executed. */
static bool run_known(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	struct word w = word_of(code);

	switch (operation_of(&w)) {
	case OP_P2R:
		return bits(&w, 9, 3) == 4 && run_p2r(s, &w);
	case OP_R2P:
		return bits(&w, 9, 3) == 4 && run_r2p(s, &w);
	case OP_CS2R:	/* CS2R of zero */
		if (modifiers(&w) != 0x1ff && modifiers(&w) != 0x0ff)
			return false;
		cell_set_reg(s, false, reg_at(&w, 16), cell_number(0));
		if (modifiers(&w) == 0x1ff)
			cell_set_reg(s, false, reg_at(&w, 16) < 0 ? -1 : reg_at(&w, 16) + 1, cell_number(0));
		return true;
	case OP_SEL:
		return run_sel(run, s, &w, false, false);
	case OP_USEL:
		return run_sel(run, s, &w, true, false);
	case OP_FSEL:
		return run_sel(run, s, &w, false, true);
	case OP_FSETP:
		return run_fsetp(run, s, &w, false);
	case OP_DSETP:
		return run_fsetp(run, s, &w, true);
	case OP_ISETP:
		return run_isetp(run, s, &w, false);
	case OP_UISETP:
		return run_isetp(run, s, &w, true);
	case OP_LOP3:
		return run_lop3(run, s, code, false);
	case OP_ULOP3:
		return run_lop3(run, s, code, true);
	case OP_IABS:
		return run_abs(run, s, &w);
	case OP_PRMT:
		return run_prmt(run, s, &w, false);
	case OP_UPRMT:
		return run_prmt(run, s, &w, true);
	case OP_IMNMX:
	case OP_VIMNMX:
		return run_minmax(run, s, &w);
	case OP_PLOP3:
		return run_plop3(s, &w, false);
	case OP_UPLOP3:
		return run_plop3(s, &w, true);
	case OP_IMAD_HI:
		return run_mad_high(run, s, &w);
	case OP_HADD2:
		return run_widen(s, &w);
	case OP_F2I: case OP_I2F: case OP_MUFU: case OP_F2F_64: case OP_F2I_64: case OP_I2F_64:
		return run_convert(run, s, &w);
	case OP_ULDC:
		return bits(&w, 0, 12) == OPCODE(OP_ULDC, 5) && run_small_constant(run, s, &w, true);
	case OP_ULDC_AT:
		return run_uldc(run, s, &w);
	case OP_LDC:
		return bits(&w, 0, 12) == OPCODE(OP_LDC, 5) && run_small_constant(run, s, &w, false);
	default:
		return false;
	}
}

static bool run_plain(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	struct sass_move m;
	struct sass_math math;
	struct cell result;

	sass_move(code, run->t->arch, &m);
	if (m.from >= SASS_FROM_NUMBER && m.from <= SASS_FROM_BANK) {
		run_move(run, s, &m);
		return true;
	}
	return sass_math(code, run->t->arch, &math) && run_math(run, s, &math, &result);
}

/* Executes an instruction whose guard holds. */
static bool execute(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	uint8_t plain[SASS_BYTES];
	struct word w;
	struct sass a;

	/* without the guard, which holds */
	memcpy(plain, code, sizeof(plain));
	plain[1] = (uint8_t)((plain[1] & 0x0f) | CELL_ALWAYS << 4);
	w = word_of(plain);
	if (sass_decode(plain, run->t->arch, &a)) {
		if (a.kind == SASS_LOAD && a.name[0] == 'L' && a.name[1] == 'D' && strcmp(a.name, "LDGSTS") &&
		    strcmp(a.name, "LDSM") && a.width <= 16) {
			run_load(run, s, &a, &w);
			return true;
		}
		if (a.kind == SASS_STORE)
			return a.width <= 16 ? run_store(s, &a, &w) : false;
		return cell_forget(run, s, plain);
	}
	return run_plain(run, s, plain) || (run->t->arch <= SASS_RUN_ARCH_MAX && run_known(run, s, plain)) ||
	       cell_forget(run, s, plain);
}

/* What a register has when it is not known whether it was written. */
static struct cell either(struct cell before, struct cell after, struct cell guard)
{
	struct cell c = cell_merge(cell_merge(before, after), guard);

	c.base = before.base == after.base ? before.base : CELL_NO_BASE;
	c.words = before.words == after.words ? before.words : 0;
	c.known = before.known && after.known && before.v == after.v;
	c.v = after.v;
	c.compare = after.compare;
	return c;
}

static void either_of(struct cell *now, const struct cell *before, size_t n, struct cell guard)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&now[i], &before[i], sizeof(now[i])) != 0)
			now[i] = either(before[i], now[i], guard);
}

/* The same for a guard that is not known. */
static bool execute_perhaps(struct cell_run *run, struct cell_state *s, const uint8_t *code, struct cell guard)
{
	struct cell_state *before = xcalloc(1, sizeof(*before));
	bool ok;

	*before = *s;
	ok = execute(run, s, code);
	guard.compare = 0;
	either_of(s->r, before->r, CELL_REGS, guard);
	either_of(s->u, before->u, CELL_REGS, guard);
	either_of(s->p, before->p, CELL_PREDS, guard);
	either_of(s->up, before->up, CELL_PREDS, guard);
	/* where older ones were dropped, a few too many */
	for (size_t i = before->n_stores < CELL_STORES - 8 ? before->n_stores : CELL_STORES - 8; i < s->n_stores; i++)
		s->store[i].value = cell_unknown();
	free(before);
	return ok;
}

struct cell cell_guard(const struct cell_state *s, const uint8_t *code)
{
	struct word w = word_of(code);

	return cell_predicate(s, is_uniform(&w), (unsigned)bits(&w, 12, 4));
}

bool cell_step(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	struct cell guard = cell_guard(s, code);

	return !guard.known ? execute_perhaps(run, s, code, guard) : !guard.v || execute(run, s, code);
}
