/* SPDX-License-Identifier: Apache-2.0
 * The machine code of the built-in kernels, as core dumps carry it: an ELF image for each module.
 *
 * The kernels run on the CPU, so this code never does. It is encoded like real code for compute
 * capability 8.0 to 9.0, so that a reader of the instruction at the faulting address finds the
 * access that failed, with its address in registers 2 and 3. */
#include "sim/cuda/sim_dump_assert.h"
#include "sim/cuda/sim_fault.h"

#include <stdio.h>
#include <string.h>

enum { INSN = 16, LEAD = 5, CHECK = 9, PLACE = 7, ROOM = 1024 };	/* bytes, instructions, bytes */

#define CODE_AT 0x7b0000000000ull		/* where code appears to be loaded */
#define SECTION_EXEC (SHF_ALLOC | SHF_EXECINSTR)

static const struct sim_insn_word lead[LEAD] = {
	{0x00000a00ff017b82, 0x000fe20000000800}, /* R1 = stack pointer */
	{0x0000000000007919, 0x000e2e0000002100}, /* R0 = thread index x */
	{0x00008400ff027b82, 0x000e220000000a00}, /* R2:R3 = first parameter */
	{0x0000820000047ab9, 0x000fca0000000a00}, /* UR4 = memory descriptor */
	{0x3f800000ff057424, 0x000fe200078e00ff}, /* R5 = 1.0f */
};

static const struct sim_insn_word leave = {0x000000000000794d, 0x000fea0003800000};
static const struct sim_insn_word loop = {0xfffffffc00fc7947, 0x000fc0000383ffff};
static const struct sim_insn_word nop = {0x0000000000007918, 0x000fc00000000000};

/* Bits 0-11 operation, 16-23 target, 24-31 address register, 32-39 data register, 40-63 offset;
 * bits 73-75 (9-11 of the high word) width. */
static struct sim_insn_word insn_of(enum sim_insn what)
{
	switch (what) {
	case SIM_INSN_LOAD:	/* LDG.E R5, desc[UR4][R2.64] */
		return (struct sim_insn_word){0x0000000402057981, 0x000ea2000c1e1900};
	case SIM_INSN_STORE:	/* STG.E desc[UR4][R2.64], R5 */
		return (struct sim_insn_word){0x0000000502007986, 0x000fe2000c101904};
	case SIM_INSN_ATOMIC:	/* RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5 */
		return (struct sim_insn_word){0x000000050200798e, 0x000fe2000c10e184};
	case SIM_INSN_STACK:	/* STL [R2], R4 */
		return (struct sim_insn_word){0x0000000402007387, 0x0003e20000100800};
	case SIM_INSN_TRAP:	/* BPT.TRAP 4 */
		return (struct sim_insn_word){0x000000040000795c, 0x000fe20000300000};
	case SIM_INSN_LOOP:
		return loop;
	case SIM_INSN_CHECK:	/* more than one */
	case SIM_INSN_PLACE:
	case SIM_INSN_PLACE_SECOND:
	case SIM_INSN_PLACE_ALONE:
	case SIM_INSN_ASSERT:	/* more than one: sim_dump_assert.c */
	case SIM_INSN_ILLEGAL:
	case SIM_INSN_NONE:
		break;
	}
	return (struct sim_insn_word){0, 0};
}

/* Threads whose index is fine end here: index[i], 8 bytes each, is compared with the bound as an unsigned number. */
static void check_write(struct sim_insn_word out[CHECK])
{
	uint64_t params = sim.devices[0].model->major >= 9 ? SIM_PARAMS_AT_SM90 : SIM_PARAMS_AT_SM80;
	const struct sim_insn_word code[CHECK] = {
		{0x0000000000067919, 0x000e240000002500}, /* S2R R6, SR_CTAID.X */
		{0x0000000006067a24, 0x001fc800078e0200}, /* IMAD R6, R6, c[0x0][0x0], R0 */
		{(params + 16) << 38 | 0xff107b82, 0x000ea20000000a00}, /* LDC.64 R16, the third parameter */
		{0x0000000806107825, 0x000fcc00078e0210}, /* IMAD.WIDE R16, R6, 0x8, R16 */
		{0x0000000410107981, 0x000ea2000c1e1b00}, /* LDG.E.64 R16, desc[UR4][R16.64] */
		{(params + 28) << 38 | 0xff077b82, 0x000e620000000800}, /* LDC R7, the fifth parameter */
		{0x000000071000720c, 0x000fe40003f06070}, /* ISETP.GE.U32.AND P0, PT, R16, R7, PT */
		{0x000000ff1100720c, 0x000fda0003f06100}, /* ISETP.GE.U32.AND.EX P0, PT, R17, RZ, PT, P0 */
		{0x000000000000894d, 0x000fea0003800000}, /* @!P0 EXIT */
	};

	memcpy(out, code, sizeof(code));
}

/* R2:R3 = a parameter + 4 * (the next one, of 64 bits, if it counts, + the number of the thread). */
static void place_write(struct sim_insn_word out[PLACE], char what)
{
	uint64_t pointer = what == SIM_INSN_PLACE_SECOND ? 8 : 0;
	uint64_t params = sim.devices[0].model->major >= 9 ? SIM_PARAMS_AT_SM90 : SIM_PARAMS_AT_SM80;
	const struct sim_insn_word code[PLACE] = {
		{0x0000000000067919, 0x000e240000002500}, /* S2R R6, SR_CTAID.X */
		{0x0000000006067a24, 0x001fc800078e0200}, /* IMAD R6, R6, c[0x0][0x0], R0 */
		{(params + pointer) << 38 | 0xff027b82, 0x000ea20000000a00}, /* LDC.64 R2, the parameter */
		{(params + pointer + 8) << 38 | 0xff107b82, 0x000ea20000000a00}, /* LDC.64 R16, the next */
		{0x0000000210027211, 0x000fe200078010ff}, /* LEA R2, P0, R16, R2, 0x2 */
		{0x0000000310037211, 0x000fca00000f1411}, /* LEA.HI.X R3, R16, R3, R17, 0x2, P0 */
		{0x0000000406027825, 0x000fcc00078e0202}, /* IMAD.WIDE R2, R6, 0x4, R2 */
	};

	memcpy(out, code, sizeof(code));
	for (size_t i = 3; what == SIM_INSN_PLACE_ALONE && i < 6; i++)
		out[i] = nop;
}

static bool is_place(char what)
{
	return what == SIM_INSN_PLACE || what == SIM_INSN_PLACE_SECOND || what == SIM_INSN_PLACE_ALONE;
}

static unsigned int insns_of(char what)
{
	if (what == SIM_INSN_ASSERT)
		return SIM_ASSERT_INSNS;
	if (what == SIM_INSN_CHECK)
		return CHECK;
	return is_place(what) ? PLACE : 1;
}

bool sim_code_has_place(const struct sim_kernel_row *row)
{
	return strchr(row->code, SIM_INSN_PLACE) != NULL;
}

/* The position of this kind of instruction in the kernel; after the first ones if it has none. */
unsigned int sim_code_offset(const struct sim_kernel_row *row, enum sim_insn insn)
{
	const char *at = insn ? strchr(row->code, (int)insn) : NULL;
	unsigned int n = LEAD;

	for (const char *p = row->code; at && p < at; p++)
		n += insns_of(*p);
	return (insn == SIM_INSN_ASSERT && at ? n + SIM_ASSERT_INSNS - 1 : n) * INSN;
}

uint64_t sim_code_entry(const struct sim_func *f)
{
	size_t index = (size_t)((const char *)f - atomic_load(&sim.funcs.base)) / sim.funcs.stride;

	return CODE_AT + index * ROOM;
}

/* The function's position in its module. */
static unsigned int index_of(const struct sim_func *f)
{
	unsigned int index = 0;

	for (const struct sim_func *g = f->module->funcs; g && g != f; g = g->next)
		index++;
	return index;
}

static void code_write(struct sim_insn_word *out, const struct sim_func *f)
{
	const struct sim_kernel_row *row = f->row;
	struct sim_assert_words words;
	size_t n = LEAD;

	memcpy(out, lead, sizeof(lead));
	sim_assert_words(f, &words);
	for (const char *p = row->code; *p; p++) {
		if (*p == SIM_INSN_ASSERT) {
			sim_assert_code(out + n, index_of(f), words.line);
			n += SIM_ASSERT_INSNS;
			continue;
		}
		if (*p == SIM_INSN_CHECK) {
			check_write(out + n);
			n += CHECK;
			continue;
		}
		if (is_place(*p)) {
			place_write(out + n, *p);
			n += PLACE;
			continue;
		}
		out[n] = insn_of((enum sim_insn) * p);
		if (*p == 's' && !strcmp(row->name, "misaligned"))
			out[n].low |= (uint64_t)1 << 40;	/* [R2.64+1] */
		n++;
	}
	out[n++] = leave;
	out[n++] = loop;
	while (n < ROOM / INSN)
		out[n++] = nop;
}

/* One section and one symbol for each kernel, with the names that the compiler uses. */
static void kernel_add(struct sim_elf *elf, const struct sim_func *f, bool relocated,
		       struct sim_buf *symbols, struct sim_buf *strings)
{
	struct sim_insn_word code[ROOM / INSN];
	char name[4096 + 8];		/* the longest name of a kernel, and .text. */
	struct sim_section text = { .name = name, .type = SHT_PROGBITS, .flags = SECTION_EXEC,
				   .address = relocated ? sim_code_entry(f) : 0,
				   .align = 128,
				   .data = code,
				   .bytes = sizeof(code)};
	Elf64_Sym symbol = { .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x10,
			    .st_size = ROOM,
			    .st_value = text.address};

	code_write(code, f);
	snprintf(name, sizeof(name), ".text.%s", f->name);
	symbol.st_shndx = (Elf64_Half)sim_elf_add(elf, &text);
	symbol.st_name = (uint32_t)sim_buf_add(strings, f->name, strlen(f->name) + 1);
	sim_buf_add(symbols, &symbol, sizeof(symbol));
}

bool sim_code_image(struct sim_elf *out, const struct sim_module *mod, bool relocated)
{
	struct sim_buf symbols = {0}, strings = {0};
	struct sim_section table = {
		.name = ".symtab", .type = SHT_SYMTAB, .align = 8, .info = 1, .stride = sizeof(Elf64_Sym)};
	struct sim_section texts = {.name = ".strtab", .type = SHT_STRTAB, .align = 1};
	bool ok;

	sim_elf_start(out);
	sim_buf_add(&symbols, NULL, sizeof(Elf64_Sym));
	sim_buf_add(&strings, "", 1);
	for (const struct sim_func *f = mod->funcs; f; f = f->next)
		kernel_add(out, f, relocated, &symbols, &strings);
	sim_assert_data(out, mod, relocated, &symbols, &strings);
	texts.data = strings.data;
	texts.bytes = strings.used;
	table.link = sim_elf_add(out, &texts);
	table.data = symbols.data;
	table.bytes = symbols.used;
	sim_elf_add(out, &table);
	ok = !symbols.failed && !strings.failed &&
	     sim_elf_finish(out, ET_EXEC, 0x41, 8,
			    0x06000004u | (uint32_t)mod->binary_version << 8);
	sim_buf_free(&symbols);
	sim_buf_free(&strings);
	return ok;
}
