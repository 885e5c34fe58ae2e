/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as the code of a kernel, executed: to an instruction and to its end (src/find/fault/sass_run.c), and the straight
 * line that leads to an instruction (sass_line.c).
 *
 * The first byte chooses the architecture and whether there is memory, the next 48 are parameters; the rest is code.
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "find/fault/sass_line.h"
#include "tests/unit/assert_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARAMS		48
#define CODE_MAX	16384	/* bytes */
#define STEPS		4000

static volatile uint64_t sink;	/* what was found must have been found */

/* Some of it is there, always the same. */
static bool read_memory(void *arg, uint64_t address, void *to, size_t n)
{
	(void)arg;
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)((address + i) * 37 >> 3);
	return address % 256 < 192;
}

static void run(struct sass_thread *t, uint64_t pc, bool access)
{
	struct sass_found f;
	enum sass_end end = sass_run(t, pc, access, STEPS, &f);

	if (f.steps > STEPS || (end == SASS_END_THERE && f.from.n > 8 && f.from.n != SASS_SEVERAL))
		abort();
	sink += f.from.at + f.from.base + f.compare.a + f.compare.b;
}

static void see(void *arg, const struct sass_access *a)
{
	size_t *n = arg;

	if ((a->insn.space != SASS_GLOBAL && a->insn.space != SASS_GENERIC) || (a->base && !a->known))
		abort();
	(*n)++;
	sink += a->address + a->base + a->sure;
}

/* Whole threads, two after the other in one runner: what the first leaves behind must not matter to the second. */
static void trace(const struct sass_thread *t)
{
	struct sass_runner *r = sass_runner_open(t);
	size_t seen[3] = {0};
	unsigned used;

	if (!r)
		abort();
	for (int i = 0; i < 3; i++) {
		enum sass_end end = sass_runner_trace(r, t->block, (const uint32_t[3]){i == 1 ? 5 : 3, 1}, STEPS, see,
						      &seen[i], &used);

		if (used > STEPS || (used == STEPS) < (end == SASS_END_LONG))
			abort();
	}
	if (seen[0] != seen[2])
		abort();
	sass_runner_close(r);
}

/* With and without registers: where none could be compared, they make no difference to an address that the code alone says. */
static void follow(struct sass_thread *t, uint64_t pc, const uint8_t *code, struct bytes regs)
{
	struct sass_line *l = sass_line_open(t->image, t->arch, pc);
	uint64_t alone = 0, with = 0, constant;
	enum sass_answer a, b;
	struct sass s;

	if (!l)
		return;
	t->stopped = pc + SASS_BYTES;
	t->regs = t->uregs = (struct bytes){NULL, 0};
	if (sass_decode(code, t->arch, &s)) {
		a = sass_line_address(l, &s, t, &alone);
		t->regs = t->uregs = regs;
		b = sass_line_address(l, &s, t, &with);
		if (a == SASS_DIFFERS || a == SASS_CHECKED || (a == SASS_COMPUTED && b == SASS_COMPUTED && alone != with))
			abort();
		sink += alone + with + sass_line_origin(l, &s, t->params_offset);
	}
	for (int r = 4; r < 12; r += 2)
		sink += sass_line_constant(l, r, r % 4 == 0, &constant) ? constant : 0;
	sink += sass_line_keeps(l, code[0] & 7, pc + SASS_BYTES);
	sass_line_close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t archs[8] = {75, 80, 86, 89, 90, 100, 103, 120};
	static uint64_t code[CODE_MAX / 8];
	static struct am image;
	struct am_plan plan = {.code = code};
	size_t n;
	struct sass_thread t = {.entry = AM_CODE, .id = 3, .thread = {3, 1}, .block = {2}, .block_dim = {32, 4, 1}, .grid_dim = {8, 1, 1}};

	if (size < 1 + PARAMS + 16)
		return 0;
	n = (size - 1 - PARAMS) / 16 * 16;
	n = n < CODE_MAX ? n : CODE_MAX;
	memcpy(code, data + 1 + PARAMS, n);
	plan.n_code = n / 8;
	t.image = am_make(&image, &plan);
	t.arch = archs[data[0] & 7];
	t.params = (struct bytes){data + 1, PARAMS};
	t.params_offset = t.arch < 90 ? 0x160 : t.arch < 100 ? 0x210 : 0x380;
	t.memory = data[0] & 8 ? read_memory : NULL;
	run(&t, AM_CODE + n - 16, false);
	run(&t, AM_CODE + n / 32 * 16, true);
	follow(&t, AM_CODE + n - 16, (const uint8_t *)code + n - 16, (struct bytes){data, size});
	follow(&t, AM_CODE + n / 32 * 16, (const uint8_t *)code + n / 32 * 16, (struct bytes){data, size});
	if (t.arch <= SASS_RUN_ARCH_MAX)
		trace(&t);
	return 0;
}
