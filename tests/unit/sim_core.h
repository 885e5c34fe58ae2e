/* SPDX-License-Identifier: Apache-2.0
 * A small checker for the simulated GPU's core dumps, independent of cuwhy's own reader so that one
 * mistake cannot hide in both. */
#ifndef CUWHY_TEST_SIM_CORE_H
#define CUWHY_TEST_SIM_CORE_H

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "sim_child.h"
#include "sim/cuda/sim_dump.h"

struct core {
	unsigned char *data;
	size_t size;
	const Elf64_Ehdr *file;
	const Elf64_Shdr *sections;
	const char *names;
};

/* Everything that a reader relies on is inside the file. */
static inline void core_open(struct core *c, const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf64_Shdr *sections;
	struct stat st;

	CHECK(fd >= 0 && !fstat(fd, &st) && st.st_size > (off_t)sizeof(Elf64_Ehdr));
	c->size = (size_t)st.st_size;
	c->data = malloc(c->size);
	CHECK(c->data && read(fd, c->data, c->size) == st.st_size);
	close(fd);
	c->file = (const void *)c->data;
	CHECK(!memcmp(c->data, "\177ELF\2\1\1\x33\7", 9));
	CHECK(c->file->e_type == ET_CORE && c->file->e_machine == 190);
	CHECK(c->file->e_shoff + c->file->e_shnum * sizeof(Elf64_Shdr) <= c->size);
	/* malloc aligns the file, not its contents: copy the headers */
	sections = malloc(c->file->e_shnum * sizeof(Elf64_Shdr));
	CHECK(sections);
	memcpy(sections, c->data + c->file->e_shoff, c->file->e_shnum * sizeof(Elf64_Shdr));
	c->sections = sections;
	for (int i = 0; i < c->file->e_shnum; i++) {
		CHECK(sections[i].sh_offset + sections[i].sh_size <= c->size);
		CHECK(sections[i].sh_link < c->file->e_shnum);
	}
	c->names = (const char *)c->data + sections[c->file->e_shstrndx].sh_offset;
}

static inline void core_close(struct core *c)
{
	free((void *)(uintptr_t)c->sections);
	free(c->data);
}

/* The section of this type under that parent row; 0: none. Parent 0: any parent. */
static inline unsigned int core_find(const struct core *c, enum sim_table type, unsigned int parent,
				     unsigned int row)
{
	for (unsigned int i = 1; i < c->file->e_shnum; i++)
		if (c->sections[i].sh_type == 0x80000000u + (unsigned int)type &&
		    (!parent || (c->sections[i].sh_link == parent && c->sections[i].sh_info == row)))
			return i;
	return 0;
}

static inline unsigned int core_rows(const struct core *c, unsigned int section)
{
	const Elf64_Shdr *s = &c->sections[section];

	return s->sh_entsize ? (unsigned int)(s->sh_size / s->sh_entsize) : 0;
}

static inline void core_row(const struct core *c, unsigned int section, unsigned int row, void *out,
			    size_t bytes)
{
	const Elf64_Shdr *s = &c->sections[section];

	CHECK(section && (!s->sh_entsize || s->sh_entsize == bytes));
	CHECK((row + 1) * bytes <= s->sh_size);
	memcpy(out, c->data + s->sh_offset + row * bytes, bytes);
}

#define CORE_ROW(c, section, row, out) core_row(c, section, row, out, sizeof(*(out)))

/* What a dump says about its failure: the first lane with an exception, else the first lane. */
struct culprit {
	struct sim_row_grid grid;
	struct sim_row_sm sm;
	struct sim_row_cta cta;
	struct sim_row_warp warp;
	struct sim_row_lane lane;
	unsigned int lanes, failing;	/* in that warp */
	unsigned long long address;	/* registers 2 and 3 */
	uint64_t insn[2];		/* at the faulting, else the lane's address */
	char symbol[256];
};

static inline void core_insn(const struct core *c, struct culprit *out, uint64_t pc)
{
	unsigned int modules = core_find(c, SIM_TAB_MODULE, 0, 0);

	for (unsigned int row = 0; row < core_rows(c, modules); row++) {
		const unsigned char *image = c->data + c->sections[core_find(c, SIM_TAB_RELF, modules, row)].sh_offset;
		Elf64_Ehdr file;
		Elf64_Shdr table, strings, text;
		Elf64_Sym symbol;

		memcpy(&file, image, sizeof(file));
		CHECK(file.e_machine == 190 && file.e_type == ET_EXEC);
		memcpy(&table, image + file.e_shoff + (file.e_shnum - 2u) * sizeof(table),
		       sizeof(table));
		CHECK(table.sh_type == SHT_SYMTAB);
		memcpy(&strings, image + file.e_shoff + table.sh_link * sizeof(table),
		       sizeof(strings));
		for (size_t i = 1; i < table.sh_size / sizeof(symbol); i++) {
			memcpy(&symbol, image + table.sh_offset + i * sizeof(symbol), sizeof(symbol));
			if (pc < symbol.st_value || pc >= symbol.st_value + symbol.st_size)
				continue;
			memcpy(&text, image + file.e_shoff + symbol.st_shndx * sizeof(text),
			       sizeof(text));
			CHECK(text.sh_addr == symbol.st_value);
			memcpy(out->insn, image + text.sh_offset + (pc - symbol.st_value), 16);
			snprintf(out->symbol, sizeof(out->symbol), "%s",
				 (const char *)image + strings.sh_offset + symbol.st_name);
		}
	}
}

static inline void core_lanes(const struct core *c, struct culprit *out, unsigned int warps,
			      unsigned int row)
{
	unsigned int lanes = core_find(c, SIM_TAB_LANE, warps, row), best = 0;
	struct sim_row_lane lane;
	uint32_t regs[4];

	out->lanes = core_rows(c, lanes);
	for (unsigned int i = out->lanes; i-- > 0;) {
		CORE_ROW(c, lanes, i, &lane);
		if (lane.exception)
			best = i;
		out->failing += lane.exception != 0;
	}
	CORE_ROW(c, lanes, best, &out->lane);
	memcpy(regs, c->data + c->sections[core_find(c, SIM_TAB_REGS, lanes, best)].sh_offset, 16);
	out->address = regs[2] | (unsigned long long)regs[3] << 32;
}

static inline void core_culprit(const struct core *c, struct culprit *out)
{
	unsigned int sms = core_find(c, SIM_TAB_SM, 0, 0), warps = 0, ctas = 0;
	unsigned int sm = 0;

	memset(out, 0, sizeof(*out));
	CORE_ROW(c, core_find(c, SIM_TAB_GRID, 0, 0), 0, &out->grid);
	for (; sm < core_rows(c, sms); sm++) {
		CORE_ROW(c, sms, sm, &out->sm);
		CHECK(out->sm.id == sm);
		ctas = core_find(c, SIM_TAB_CTA, sms, sm);
		CHECK(ctas);
		if (core_rows(c, ctas))
			break;
	}
	CHECK(sm < core_rows(c, sms));
	CORE_ROW(c, ctas, 0, &out->cta);
	CHECK(out->cta.grid == out->grid.id);
	warps = core_find(c, SIM_TAB_WARP, ctas, 0);
	CORE_ROW(c, warps, 0, &out->warp);
	core_lanes(c, out, warps, 0);
	core_insn(c, out, out->warp.pc_valid ? out->warp.pc : out->sm.pc_valid ? out->sm.pc : out->lane.pc);
}

#endif
