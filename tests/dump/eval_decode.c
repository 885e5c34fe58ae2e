/* SPDX-License-Identifier: Apache-2.0
 * For check_eval.py. "math ARCH LOW HIGH" on standard input: the predicates that the instruction may write, and its
 * text as far as it is understood. "address ARCH PC LANE PARAMS_OFFSET PARAMS THREAD BLOCK BLOCK_DIM GRID_DIM": the
 * address of the access at PC, from the code of the image that is the program's argument alone; the thread is at LANE
 * and has no registers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/fault/sass_run.c"
#include "find/fault/sass_line.h"
#include "find/fault/sass_math.h"
#include "decode.h"

static void source(const struct sass_source *s, bool inverted)
{
	printf(", %s", !s->minus ? "" : inverted ? "~" : "-");
	if (s->from == SASS_FROM_NUMBER)
		printf("0x%" PRIx32, s->number);
	else if (s->from == SASS_FROM_BANK)
		printf("c[0x%x][0x%x]", s->bank, s->offset);
	else if (s->reg < 0)
		printf("%sRZ", s->from == SASS_FROM_UREG ? "U" : "");
	else
		printf("%sR%d", s->from == SASS_FROM_UREG ? "U" : "", s->reg);
}

static void predicate(const struct sass_math *m, int p, bool not)
{
	printf(", %s%sP%c", not ? "!" : "", m->uniform ? "U" : "", p == SASS_PT ? 'T' : '0' + p);
}

static void name(const struct sass_math *m)
{
	static const char *const type[] = {"S64", "U64", "S32", "U32"};
	const char *u = m->uniform ? "U" : "", *x = m->extended ? ".X" : "";

	if (m->op == SASS_ADD && m->ab_64)
		printf("%s.64", m->uniform ? "UIADD3" : "IADD");
	else if (m->op == SASS_ADD)
		printf("%s%s%s", u, m->c.from == SASS_FROM_NUMBER ? "VIADD" : "IADD3", x);
	else if (m->op == SASS_LEA)
		printf("%sLEA%s%s%s", u, m->high ? ".HI" : "", x, m->is_signed ? ".SX32" : "");
	else if (m->op == SASS_MAD)
		printf("%sIMAD%s%s%s%s", u, m->c_64 ? ".WIDE" : "", m->high ? ".HI" : "", m->is_signed ? "" : ".U32", x);
	else if (m->op == SASS_SHIFT)
		printf("%sSHF.%s%s.%s%s", u, m->right ? "R" : "L", m->wrap ? ".W" : "",
		       type[(m->shift_64 ? 0 : 2) + !m->is_signed], m->high ? ".HI" : "");
	else if (m->op == SASS_LOGIC)
		printf("%sLOP3.LUT", u);
	else if (m->op == SASS_COPY)
		printf("%sMOV%s", u, m->n == 2 ? ".64" : "");
	else
		printf("S2%sR", u);
}

static void sources(const struct sass_math *m)
{
	if (m->op != SASS_COPY)
		source(&m->a, m->extended);
	source(&m->b, m->extended);
	if (m->op == SASS_LEA	? m->high && !m->is_signed
	    : m->op == SASS_ADD ? m->c.from != SASS_FROM_NUMBER
				: m->op != SASS_COPY)
		source(&m->c, m->extended);
	if (m->op == SASS_LEA)
		printf(", 0x%x", m->shift);
	if (m->op == SASS_LOGIC)
		printf(", 0x%x, !%sPT", m->table, m->uniform ? "U" : "");
	if (m->extended)
		predicate(m, m->in[0], m->in_not[0]);
	if (m->extended && m->op == SASS_ADD)
		predicate(m, m->in[1], m->in_not[1]);
}

static void math(unsigned arch, const uint64_t word[2])
{
	static const char *const special[] = {"TID.X", "TID.Y", "TID.Z", "?", "CTAID.X", "CTAID.Y", "CTAID.Z"};
	uint8_t code[SASS_BYTES];
	struct sass_effect e;
	struct sass_math m;

	memcpy(code, word, sizeof(code));
	sass_effect(code, arch, &e);
	printf("%x ", e.preds | e.upreds);
	if (!sass_math(code, arch, &m)) {
		puts("-");
		return;
	}
	name(&m);
	printf(m.dest < 0 ? " %sRZ" : " %sR%d", m.uniform ? "U" : "", m.dest);
	if (m.op == SASS_SPECIAL) {
		printf(", SR_%s\n", m.shift == 0 ? "LANEID" : m.shift >= SASS_TID && m.shift < SASS_TID + 7 ?
		       special[m.shift - SASS_TID] : "?");
		return;
	}
	predicate(&m, m.out[0], false);
	predicate(&m, m.out[1], false);
	sources(&m);
	puts("");
}

static void three(uint32_t *to)
{
	if (scanf("%" SCNu32 ",%" SCNu32 ",%" SCNu32, &to[0], &to[1], &to[2]) != 3)
		exit(2);
}

static bool some_memory(void *arg, uint64_t address, void *to, size_t n)
{
	(void)arg;
	memset(to, (int)(address >> 2 & 0x7f), n);
	return true;
}

/* The registers that a dump would have: the thread is executed from the kernel's entry to the access, which then clears its destination. */
static bool registers_at(const struct sass_thread *t, uint64_t pc, const struct sass *s, uint32_t regs[2][CELL_REGS])
{
	struct ways *ways = xcalloc(1, sizeof(*ways));
	struct cell_state *state = xcalloc(1, sizeof(*state));
	struct sass_found f = {0};
	bool there;

	ways->found = &f;
	ways->steps = 20000;
	ways->pc = pc;
	ways->access = true;
	open_code(ways, t);
	start(ways, state);
	for (size_t i = 0; i < CELL_REGS; i++)
		state->r[i] = state->u[i] = cell_number(0x5a5a0000u + (uint32_t)i);
	there = follow(ways, state) == SASS_END_THERE;
	for (size_t i = 0; i < CELL_REGS; i++) {
		/* no address depends on a descriptor of memory */
		there = there && state->r[i].known &&
			(state->u[i].known || (s->descriptor >= 0 && (int)i / 2 == s->descriptor / 2));
		regs[0][i] = state->r[i].v;
		regs[1][i] = state->u[i].v;
	}
	for (size_t i = 0; s->dest >= 0 && i < s->dest_regs; i++)
		regs[0][(size_t)s->dest + i] = 0;
	while (ways->n_open)
		free(ways->open[--ways->n_open]);
	free(state);
	free(ways);
	return there;
}

static void answer(enum sass_answer a, uint64_t found, char end)
{
	if (a >= SASS_COMPUTED)
		printf("%" PRIx64 "%c", found, end);
	else
		printf("%s%c", a == SASS_UNKNOWN ? "?" : "differs", end);
}

/* "?" also where not all registers can be known. */
static void with_registers(struct sass_line *e, const struct sass *s, struct sass_thread *t, uint64_t pc)
{
	uint32_t regs[2][CELL_REGS];
	enum sass_answer a = SASS_UNKNOWN;
	struct image_function in;
	uint64_t found = 0;

	t->memory = some_memory;
	if (image_find(t->image, pc, &in))
		t->entry = in.start;
	if (t->entry && registers_at(t, pc, s, regs)) {
		t->regs = (struct bytes){(const uint8_t *)regs[0], sizeof(regs[0])};
		t->uregs = (struct bytes){(const uint8_t *)regs[1], sizeof(regs[1])};
		a = sass_line_address(e, s, t, &found);
	}
	answer(a, found, '\n');
}

static void address(struct bytes image, unsigned arch, uint64_t pc)
{
	static uint8_t params[4096];
	struct sass_thread lane = {.image = image, .arch = arch, .params = {params, 0}};
	struct sass_line *e = sass_line_open(image, arch, pc);
	const uint8_t *at = NULL;
	uint64_t word[2], found = 0;
	enum sass_answer a;
	struct sass s;
	char hex[8193];
	size_t i;

	if (scanf("%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %8192s", &lane.stopped, &word[0], &word[1],
		  &lane.params_offset, hex) != 5)
		exit(2);
	for (i = 0; hex[i * 2] && hex[i * 2 + 1]; i++) {
		char two[3] = {hex[i * 2], hex[i * 2 + 1], 0};

		params[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	lane.params.len = i;
	three(lane.thread);
	three(lane.block);
	three(lane.block_dim);
	three(lane.grid_dim);
	at = (const uint8_t *)word;
	if (!e || !sass_decode(at, arch, &s)) {
		puts("? ?");
	} else {
		a = sass_line_address(e, &s, &lane, &found);
		answer(a, found, ' ');
		with_registers(e, &s, &lane, pc);
	}
	sass_line_close(e);
}

int main(int argc, char **argv)
{
	decode_orders(argc, argv, "address", address, math);
	return 0;
}
