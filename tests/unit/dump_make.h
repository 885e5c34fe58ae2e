/* SPDX-License-Identifier: Apache-2.0
 * Builds small GPU core dumps in memory, for tests and as seeds of the fuzzer.
 */
#ifndef CUWHY_DUMP_MAKE_H
#define CUWHY_DUMP_MAKE_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "read/dump/dump.h"

#define MAKE_SECTIONS	128
#define MAKE_TEXT	0x7f0000001000ull	/* address of the kernel */
#define MAKE_OTHER	0x7f0000009000ull
#define MAKE_LANES	4

struct dump_make {
	uint8_t *data;
	size_t len;
	Elf64_Shdr section[MAKE_SECTIONS];
	uint32_t n;
	char strings[512];
	uint32_t strings_len;
	/* sections of the usual dump */
	uint32_t device, context, module, image, grid, params, sm, cta, warp, lane, regs[MAKE_LANES];
};

/* What the usual dump contains. Offsets are from the kernel's start. */
struct dump_plan {
	uint32_t lane_exception, lanes_hit;	/* mask of the lanes that carry it */
	uint32_t sm_exception, broken;
	uint64_t error_pc;			/* of warp and SM, 0 = not valid */
	uint64_t lane_pc;
	uint32_t valid;				/* lanes, 0 = all four; with `gone` there is no block */
	uint32_t inactive;			/* lanes that are waiting elsewhere */
	int gone;
	uint32_t call_depth;
	uint64_t code[16][2];			/* the kernel's instructions */
	uint32_t reg[MAKE_LANES][16];
	uint32_t pred[MAKE_LANES];		/* P0 */
	uint32_t ureg[8];
	uint32_t arch;				/* 0 = 90 */
	uint32_t grow;				/* rows are longer by this, as with a newer driver */
};

static inline void make_put(void *row, size_t off, uint64_t v, size_t bytes)
{
	memcpy((uint8_t *)row + off, &v, bytes);
}

static inline size_t make_append(struct dump_make *m, const void *bytes, size_t len)
{
	size_t at = m->len;

	m->data = realloc(m->data, m->len + len + 1);
	if (!m->data)
		abort();
	if (len)
		memcpy(m->data + at, bytes, len);
	m->len += len;
	return at;
}

static inline void dump_make_init(struct dump_make *m)
{
	Elf64_Ehdr h = {0};

	memset(m, 0, sizeof(*m));
	make_append(m, &h, sizeof(h));
	m->n = 1;
	m->strings_len = 1;
}

static inline uint32_t make_string_at(struct dump_make *m, const char *s)
{
	uint32_t at = m->strings_len;

	memcpy(m->strings + at, s, strlen(s) + 1);
	m->strings_len += (uint32_t)strlen(s) + 1;
	return at;
}

static inline uint32_t make_section(struct dump_make *m, uint32_t type, const void *bytes, size_t len,
				    size_t stride, uint32_t link, uint32_t info)
{
	Elf64_Shdr *s = &m->section[m->n];

	if (m->n >= MAKE_SECTIONS)
		abort();
	s->sh_type = type;
	s->sh_offset = make_append(m, bytes, len);
	s->sh_size = len;
	s->sh_entsize = stride;
	s->sh_link = link;
	s->sh_info = info;
	return m->n++;
}

static inline uint32_t make_table(struct dump_make *m, enum dump_table t, const void *bytes, size_t len,
				  size_t stride, uint32_t link, uint32_t info)
{
	return make_section(m, 0x80000000u + t, bytes, len, stride, link, info);
}

/* Closes the file. With `extended`, sections are counted as if they were too many for the header. */
static inline void dump_make_finish(struct dump_make *m, int extended)
{
	Elf64_Ehdr h = {.e_type = ET_CORE, .e_machine = 190, .e_version = 1, .e_ehsize = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr)};
	uint32_t names;

	make_section(m, SHT_STRTAB, m->strings, m->strings_len, 0, 0, 0);
	names = make_section(m, SHT_STRTAB, "", 1, 0, 0, 0);
	memcpy(h.e_ident, ELFMAG "\2\1\1\x33\7", 9);
	h.e_shnum = (uint16_t)m->n;
	h.e_shstrndx = (uint16_t)names;
	if (extended) {
		m->section[0].sh_size = m->n;
		m->section[0].sh_link = names;
		h.e_shnum = 0;
		h.e_shstrndx = SHN_XINDEX;
	}
	h.e_shoff = make_append(m, m->section, m->n * sizeof(Elf64_Shdr));
	memcpy(m->data, &h, sizeof(h));
}

/* A relocated image with the kernel _Z4fillPfl and, nested in it, a function $fill$inner from 0x80 on. */
static inline size_t make_image(uint8_t *out, const struct dump_plan *p)
{
	static const char strings[] = "\0_Z4fillPfl\0$fill$inner";
	Elf64_Sym sym[3] = {
		{0},
		{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = MAKE_TEXT, .st_size = 256},
		{.st_name = 12, .st_info = STT_FUNC, .st_shndx = 1, .st_value = MAKE_TEXT + 0x80, .st_size = 128},
	};
	Elf64_Shdr s[4] = {
		{0},
		{.sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = MAKE_TEXT, .sh_offset = 64, .sh_size = 256},
		{.sh_type = SHT_SYMTAB, .sh_offset = 320, .sh_size = sizeof(sym), .sh_entsize = 24, .sh_link = 3},
		{.sh_type = SHT_STRTAB, .sh_offset = 320 + sizeof(sym), .sh_size = sizeof(strings)},
	};
	Elf64_Ehdr h = {.e_type = ET_EXEC, .e_machine = 190, .e_shoff = 448, .e_shentsize = 64, .e_shnum = 4};

	memcpy(h.e_ident, ELFMAG "\2\1\1\x41\x8", 9);
	memset(out, 0, 448);
	memcpy(out, &h, sizeof(h));
	memcpy(out + 64, p->code, 256);
	memcpy(out + 320, sym, sizeof(sym));
	memcpy(out + 320 + sizeof(sym), strings, sizeof(strings));
	memcpy(out + 448, s, sizeof(s));
	return 448 + sizeof(s);
}

static inline void make_host_side(struct dump_make *m, const struct dump_plan *p)
{
	uint8_t row[256] = {0}, image[1024];
	uint32_t arch = p->arch ? p->arch : 90;
	static const uint64_t params[2] = {0x7f1000000000ull, 0x10000000000ull};
	int i;

	make_put(row, 0, make_string_at(m, "NVIDIA Test"), 8);
	make_put(row, 16, make_string_at(m, "sm_test"), 8);
	make_put(row, 56, arch / 10, 4);
	make_put(row, 60, arch % 10, 4);
	m->device = make_table(m, DUMP_DEVICE, row, 88 + p->grow, 88 + p->grow, 0, 0);
	memset(row, 0, sizeof(row));
	make_put(row, 0, 0x1234, 8);
	make_put(row, 8, 0x7e0000000000ull, 8);
	make_put(row, 16, 0x7d0000000000ull, 8);
	m->context = make_table(m, DUMP_CONTEXT, row, 40, 40, m->device, 0);
	memset(row, 0, sizeof(row));
	make_put(row, 0, 0x77, 8);
	m->module = make_table(m, DUMP_MODULE, row, 8, 8, m->context, 0);
	m->image = make_table(m, DUMP_IMAGE, image, make_image(image, p), 0, m->module, 0);
	memset(row, 0, sizeof(row));
	make_put(row, 0, 42, 8);
	make_put(row, 8, 0x1234, 8);
	make_put(row, 24, MAKE_TEXT, 8);
	make_put(row, 32, 0x77, 8);
	make_put(row, 48, 0x210, 8);
	for (i = 0; i < 6; i++)
		make_put(row, 72 + 4 * (size_t)i, i == 3 ? 32 : i == 0 ? 4 : 1, 4);
	m->grid = make_table(m, DUMP_GRID, row, 136 + p->grow, 136 + p->grow, m->device, 0);
	m->params = make_table(m, DUMP_PARAMS, params, sizeof(params), 0, m->grid, 0);
}

static inline void make_lanes(struct dump_make *m, const struct dump_plan *p)
{
	uint8_t rows[MAKE_LANES][56] = {{0}};
	uint32_t preds[8] = {0, 0, 0, 0, 0, 0, 0, 1}, i;

	for (i = 0; i < MAKE_LANES; i++) {
		make_put(rows[i], 0, MAKE_TEXT + p->lane_pc, 8);
		make_put(rows[i], 8, p->lane_pc, 8);
		make_put(rows[i], 16, i, 4);
		make_put(rows[i], 20, i, 4);
		make_put(rows[i], 32, p->lanes_hit >> i & 1 ? p->lane_exception : 0, 4);
		make_put(rows[i], 36, p->call_depth, 4);
	}
	m->lane = make_table(m, DUMP_LANE, rows, sizeof(rows), 56, m->warp, 0);
	for (i = 0; i < MAKE_LANES; i++) {
		preds[0] = p->pred[i];
		m->regs[i] = make_table(m, DUMP_REGS, p->reg[i], sizeof(p->reg[i]), 4, m->lane, i);
		make_table(m, DUMP_PREDS, preds, sizeof(preds), 4, m->lane, i);
	}
}

static inline void make_device_side(struct dump_make *m, const struct dump_plan *p)
{
	uint8_t row[2 * 48] = {0};

	make_put(row, 48, 1, 4);	/* SM 0 is idle, SM 1 has the block */
	make_put(row, 56, p->sm_exception, 4);
	make_put(row, 60, p->sm_exception && p->error_pc, 4);
	make_put(row, 64, MAKE_TEXT + p->error_pc, 8);
	make_put(row, 88, make_string_at(m, p->sm_exception ? "in the driver's words" : ""), 8);
	m->sm = make_table(m, DUMP_SM, row, sizeof(row), 48, m->device, 0);
	if (p->gone)
		return;
	memset(row, 0, sizeof(row));
	make_put(row, 0, 42, 8);
	make_put(row, 8, 3, 4);
	m->cta = make_table(m, DUMP_CTA, row, 56, 56, m->sm, 1);
	memset(row, 0, sizeof(row));
	make_put(row, 0, MAKE_TEXT + p->error_pc, 8);
	make_put(row, 12, p->valid ? p->valid : 15, 4);
	make_put(row, 16, 15 & ~p->inactive, 4);
	make_put(row, 20, p->broken, 4);
	make_put(row, 24, p->lane_exception && p->error_pc, 4);
	m->warp = make_table(m, DUMP_WARP, row, 64, 64, m->cta, 0);
	make_table(m, DUMP_UREGS, p->ureg, sizeof(p->ureg), 4, m->warp, 0);
	make_lanes(m, p);
}

static inline void dump_make_usual(struct dump_make *m, const struct dump_plan *p)
{
	uint32_t meta[8] = {0, 0, 580, 159, 13, 0, 0, 0};

	dump_make_init(m);
	make_host_side(m, p);
	make_device_side(m, p);
	make_table(m, DUMP_META, meta, sizeof(meta), 0, 0, 0);
	dump_make_finish(m, 0);
}

/* Instructions of sm_90, as the assembler wrote them. */
#define MAKE_STG	{0x0000000502007986, 0x000fe2000c101904}	/* STG.E desc[UR4][R2.64], R5 */
#define MAKE_STG_64_1	{0x0000010402007986, 0x000fe2000c101b04}	/* STG.E.64 desc[UR4][R2.64+1], R4 */
#define MAKE_STG_P0	{0x0000000502000986, 0x000fe2000c101904}	/* @P0 STG.E desc[UR4][R2.64], R5 */
#define MAKE_LDG_OWN	{0x0000000402037981, 0x000ea2000c1e1900}	/* LDG.E R3, desc[UR4][R2.64] */
#define MAKE_LDC_R2	{0x00008400ff027b82, 0x000e220000000a00}	/* LDC.64 R2, c[0x0][0x210] */
#define MAKE_S2R_R5	{0x0000000000057919, 0x000e220000002100}	/* S2R R5, SR_TID.X */
#define MAKE_WIDE_R2	{0x0000000405027825, 0x001fcc00078e0202}	/* IMAD.WIDE R2, R5, 0x4, R2 */
#define MAKE_WIDE_R2_P0	{0x0000000405020825, 0x001fcc00078e0202}	/* @P0 IMAD.WIDE R2, R5, 0x4, R2 */
#define MAKE_LDG_64_OWN	{0x0000000402027981, 0x000ea2000c1e1b00}	/* LDG.E.64 R2, desc[UR4][R2.64] */
#define MAKE_IADD3	{0x0000000402027c10, 0x000fc8000ff1e0ff}	/* IADD3 R2, P0, R2, UR4, RZ */
#define MAKE_IADD3_X	{0x0000000503037c10, 0x000fe200087fe4ff}	/* IADD3.X R3, R3, UR5, RZ, P0, !PT */
#define MAKE_ULDC	{0x0000860000047ab9, 0x000fe20000000a00}	/* ULDC.64 UR4, c[0x0][0x218] */
#define MAKE_STL	{0x0000000402007387, 0x004fe80000100800}	/* STL [R2], R4 */
#define MAKE_MOV_R9	{0x0000000100097202, 0x000fe20000000f00}	/* MOV R9, R1 */
#define MAKE_MOV_R3	{0x0000000100037202, 0x000fe20000000f00}	/* MOV R3, R1 */
#define MAKE_BRA	{0xfffffffc00fc7947, 0x000fc0000383ffff}
#define MAKE_EXIT	{0x000000000000794d, 0x000fea0003800000}
#define MAKE_TRAP	{0x000000040000795c, 0x000fea0000300000}

#endif
