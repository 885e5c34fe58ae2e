/* SPDX-License-Identifier: Apache-2.0
 * Follows constants through the straight line of code before a call (see assert_args.h).
 *
 * A value is known when every path to the call sets it to that: where a branch can come in, everything is forgotten, and
 * also after instructions that may write any register. "Unknown" is a valid answer, a wrong value is not.
 */
#include "find/fault/assert_args.h"

#include <string.h>

#include "formats/image.h"
#include "find/fault/sass_move.h"

#define WINDOW		128			/* instructions before the call */
#define CODE_MAX	((uint64_t)8 << 20)	/* bytes of one function */
#define BANK		4			/* where the compiler keeps addresses */
#define REGS		256
#define MOST		8			/* registers that one instruction writes */

struct reg {
	bool known;
	uint32_t value;
};

struct follow {
	struct bytes image, bank;
	unsigned arch;
	uint64_t start, call;		/* the window: first instruction, and the call after it */
	bool entered[WINDOW];		/* a branch may come in here */
	struct reg r[REGS], u[REGS];
};

/* Where the arguments are: from register 4 on, by size. */
static const struct {
	uint8_t reg;
	bool pair;
} place[ASSERT_ARGS] = {
	[ASSERT_MESSAGE] = {4, true}, [ASSERT_FILE] = {6, true}, [ASSERT_LINE] = {8, false},
	[ASSERT_FUNCTION] = {10, true},
};

static void forget_registers(struct follow *f)
{
	memset(f->r, 0, sizeof(f->r));
	memset(f->u, 0, sizeof(f->u));
}

static struct reg known_reg(const struct reg *file, int i)
{
	return i < 0 ? (struct reg){.known = true} : i < REGS ? file[i] : (struct reg){.known = false};
}

static struct reg known_bank(const struct follow *f, const struct sass_move *m, unsigned i)
{
	struct reg at = known_reg(m->reg_uniform ? f->u : f->r, m->reg), v = {.known = false};
	uint64_t off = (uint64_t)m->offset + at.value + i * 4ull;

	if (m->bank == BANK && at.known && off % 4 == 0)
		v.known = dump_word(f->bank, off / 4, &v.value);
	return v;
}

static struct reg moved_value(const struct follow *f, const struct sass_move *m, unsigned i)
{
	switch (m->from) {
	case SASS_FROM_NUMBER:
		return (struct reg){.known = true, .value = m->number};
	case SASS_FROM_REG:
		return known_reg(f->r, m->reg < 0 ? -1 : m->reg + (int)i);
	case SASS_FROM_UREG:
		return known_reg(f->u, m->reg < 0 ? -1 : m->reg + (int)i);
	case SASS_FROM_BANK:
		return known_bank(f, m, i);
	default:
		return (struct reg){.known = false};
	}
}

static void follow_instruction(struct follow *f, const uint8_t *code)
{
	struct reg value[MOST] = {{.known = false}}, *file;
	struct sass_move m;
	unsigned i;

	sass_move(code, f->arch, &m);
	if (m.from == SASS_FROM_ANYWHERE)
		forget_registers(f);
	if (m.from == SASS_FROM_ANYWHERE || m.from == SASS_FROM_NOTHING || m.dest < 0)
		return;
	file = m.uniform ? f->u : f->r;
	for (i = 0; i < m.n && i < MOST; i++)	/* all are read before any is written */
		value[i] = moved_value(f, &m, i);
	for (i = 0; i < m.n && i < MOST && m.dest + (int)i < REGS; i++)
		file[m.dest + (int)i] = value[i];
}

/* Marks where branches of the function enter the window. False when one may lead anywhere. */
static bool find_entries(struct follow *f, uint64_t from, uint64_t size)
{
	const uint8_t *code = image_code(f->image, from, size);
	uint64_t at, target;

	for (at = 0; code && size - at >= SASS_BYTES; at += SASS_BYTES) {
		if (sass_step(code + at, f->arch, from + at, &target) == SASS_STEP_ANYWHERE)
			return false;
		if (target >= f->start && target < f->call)
			f->entered[(target - f->start) / SASS_BYTES] = true;
		if (target == f->call)	/* then nothing before it counts */
			return false;
	}
	return code;
}

static void follow_window(struct follow *f, const uint8_t *code)
{
	uint64_t at, target;

	for (at = 0; at < f->call - f->start; at += SASS_BYTES) {
		if (f->entered[at / SASS_BYTES])
			forget_registers(f);
		if (sass_step(code + at, f->arch, f->start + at, &target) == SASS_STEP_ON)
			follow_instruction(f, code + at);
		else
			forget_registers(f);
	}
}

static bool window_set(struct follow *f, uint64_t back, struct image_function *in)
{
	uint64_t target, most = (uint64_t)WINDOW * SASS_BYTES;
	const uint8_t *code;

	f->call = back - SASS_BYTES;
	code = image_code(f->image, f->call, SASS_BYTES);
	if (back < SASS_BYTES || !code || sass_step(code, f->arch, f->call, &target) != SASS_STEP_CALL ||
	    !image_find(f->image, f->call, in) || in->size > CODE_MAX || (f->call - in->start) % SASS_BYTES)
		return false;
	f->start = f->call - in->start > most ? f->call - most : in->start;
	return true;
}

bool assert_args_find(struct bytes image, unsigned arch, uint64_t back, struct assert_args *args)
{
	struct follow f = {.image = image, .arch = arch};
	struct image_function in;
	const uint8_t *code;
	size_t i;

	*args = (struct assert_args){.known = {false}};
	if (!window_set(&f, back, &in))
		return false;
	image_section(image, ".nv.constant4", &f.bank);
	code = image_code(image, f.start, f.call - f.start + SASS_BYTES);
	if (!code || !find_entries(&f, in.start, in.size))
		return true;
	follow_window(&f, code);
	for (i = 0; i < ASSERT_ARGS; i++) {
		struct reg lo = f.r[place[i].reg], hi = f.r[place[i].reg + 1];

		args->known[i] = lo.known && (!place[i].pair || hi.known);
		args->value[i] = args->known[i] ? lo.value | (place[i].pair ? (uint64_t)hi.value << 32 : 0) : 0;
	}
	return true;
}
