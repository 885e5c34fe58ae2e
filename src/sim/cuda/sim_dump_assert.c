/* SPDX-License-Identifier: Apache-2.0
 * Assertions in the code of a core dump: the call to __assertfail, the constant bank with the addresses of its
 * arguments, and their texts, laid out as by the compiler and the driver. */
#include "sim/cuda/sim_dump_assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_AT 0x7c0000000000ull		/* where data appears to be loaded */
#define SYSCALL_AT 0x7d0000000000ull		/* __assertfail */
#define NO_REGISTER 0xffull

enum { DATA_STEP = 256, SLOTS = 3, NAME = 24 };	/* bytes apart; addresses of one assertion */

void sim_assert_words(const struct sim_func *f, struct sim_assert_words *w)
{
	const char *text = f->assertion, *function, *condition, *colon;
	char own[SIM_NAME_MAX];

	if (!*text) {
		snprintf(own, sizeof(own), "%s.cu:7: %s: %s", f->row->name, f->row->name,
			 strcmp(f->row->name, "gather") ? "value > 0" : "index >= 0 && index < size");
		text = own;
	}
	memset(w, 0, sizeof(*w));
	function = strstr(text, ": ");
	condition = function ? strstr(function + 2, ": ") : NULL;
	if (!condition)
		return;
	for (colon = function - 1; colon > text && *colon != ':'; colon--)
		;
	snprintf(w->file, sizeof(w->file), "%.*s", (int)(colon - text), text);
	snprintf(w->function, sizeof(w->function), "%.*s", (int)(condition - function - 2),
		 function + 2);
	snprintf(w->condition, sizeof(w->condition), "%s", condition + 2);
	w->line = (unsigned int)atoi(colon + 1);
}

/* ULDC.64 URd, c[0x4][offset] */
static struct sim_insn_word load_address(unsigned int dest, unsigned int offset)
{
	return (struct sim_insn_word){4ull << 54 | (uint64_t)offset << 38 | dest << 16 | 0x7ab9, 0x000fe20000000a00};
}

/* IMAD.U32 Rd, RZ, RZ, URs */
static struct sim_insn_word from_uniform(unsigned int dest, unsigned int source)
{
	return (struct sim_insn_word){(uint64_t)source << 32 | NO_REGISTER << 24 | dest << 16 | 0x7e24,
				      0x000fe2000f8e00ff};
}

/* IMAD.MOV.U32 Rd, RZ, RZ, number */
static struct sim_insn_word number(unsigned int dest, unsigned int value)
{
	return (struct sim_insn_word){(uint64_t)value << 32 | NO_REGISTER << 24 | dest << 16 | 0x7424,
				      0x000fe200078e00ff};
}

/* Message in registers 4 and 5, file in 6 and 7, line in 8, function in 10 and 11. The compiler chose this
 * order for one of PyTorch's kernels. */
void sim_assert_code(struct sim_insn_word out[SIM_ASSERT_INSNS], unsigned int index, unsigned int line)
{
	unsigned int at = 8 * (1 + SLOTS * index);
	const struct sim_insn_word code[SIM_ASSERT_INSNS] = {
		{0x0000000000027802, 0x000fe20000000f00}, /* MOV R2, 0x0 */
		load_address(4, at), load_address(6, at + 16), from_uniform(4, 4), from_uniform(5, 5),
		{0x0100000002027b82, 0x000e220000000a00}, /* LDC.64 R2, c[0x4][R2] */
		load_address(4, at + 8), from_uniform(10, 6), from_uniform(6, 4), from_uniform(7, 5),
		from_uniform(11, 7), number(8, line), number(12, 1), number(13, 0),
		{0x000000001014794e, 0x000fce0000000000}, /* LEPC R20, after the call */
		{0x0000000002007343, 0x001fea0003c00000}, /* CALL.ABS.NOINC R2 */
	};

	memcpy(out, code, sizeof(code));
}

struct object {
	char name[NAME], text[SIM_NAME_MAX];
	size_t size, slot;		/* including the terminating zero; number of its address in the bank */
};

static int by_size(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->size != y->size ? (x->size < y->size ? -1 : 1) : strcmp(x->name, y->name);
}

static size_t objects_of(const struct sim_module *mod, struct object *list)
{
	size_t n = 0, index = 0;

	for (const struct sim_func *f = mod->funcs; f; f = f->next, index++) {
		struct sim_assert_words w;
		const char *texts[SLOTS] = {w.condition, w.file, w.function};

		sim_assert_words(f, &w);
		for (unsigned int k = 0; k < SLOTS; k++, n++) {
			snprintf(list[n].name, sizeof(list[n].name), k < 2 ? "$str$%zu" : "__unnamed_%zu", n);
			snprintf(list[n].text, sizeof(list[n].text), "%s", texts[k]);
			list[n].size = strlen(list[n].text) + 1;
			list[n].slot = 1 + n;
		}
	}
	qsort(list, n, sizeof(*list), by_size);
	return n;
}

static void symbols_add(const struct object *list, size_t n, uint32_t section, bool relocated,
			struct sim_buf *symbols, struct sim_buf *strings)
{
	uint64_t offset = 0;

	for (size_t i = 0; i < n; offset += list[i++].size) {
		Elf64_Sym s = { .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), .st_size = list[i].size,
			       .st_shndx = (Elf64_Half)section,
			       .st_value = relocated ? DATA_AT + list[i].slot * DATA_STEP : offset};

		s.st_name = (uint32_t)sim_buf_add(strings, list[i].name, strlen(list[i].name) + 1);
		sim_buf_add(symbols, &s, sizeof(s));
	}
}

void sim_assert_data(struct sim_elf *elf, const struct sim_module *mod, bool relocated,
		     struct sim_buf *symbols, struct sim_buf *strings)
{
	struct sim_section bank = {.name = ".nv.constant4", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .align = 8};
	struct sim_section data = {
		.name = ".nv.global.init", .type = SHT_PROGBITS, .align = 1, .flags = SHF_ALLOC | SHF_WRITE};
	size_t funcs = 0, n;
	struct sim_buf texts = {0};
	struct object *list;
	uint64_t *slots;

	for (const struct sim_func *f = mod->funcs; f; f = f->next)
		funcs++;
	list = calloc(funcs * SLOTS + 1, sizeof(*list));
	slots = calloc(funcs * SLOTS + 1, sizeof(*slots));
	n = list && slots ? objects_of(mod, list) : 0;
	for (size_t i = 0; i < n; i++) {
		sim_buf_add(&texts, list[i].text, list[i].size);
		slots[list[i].slot] = DATA_AT + list[i].slot * DATA_STEP;
	}
	if (n) {
		slots[0] = SYSCALL_AT;
		if (!relocated)
			memset(slots, 0, (n + 1) * sizeof(*slots));
		bank.data = slots;
		bank.bytes = (n + 1) * sizeof(*slots);
		data.data = texts.data;
		data.bytes = texts.used;
		sim_elf_add(elf, &bank);
		symbols_add(list, n, sim_elf_add(elf, &data), relocated, symbols, strings);
	}
	sim_buf_free(&texts);
	free(list);
	free(slots);
}
