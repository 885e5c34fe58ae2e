/* SPDX-License-Identifier: Apache-2.0
 * For tests: module images with code, a bank of addresses and texts, laid out as by the compiler and the driver.
 */
#ifndef CUWHY_TEST_ASSERT_MAKE_H
#define CUWHY_TEST_ASSERT_MAKE_H

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/dump/dump.h"

#define AM_CODE		0x7d0000000000ull
#define AM_DATA		0x7f0000000000ull	/* the address in slot i is AM_DATA + i * 256 */
#define AM_OBJECTS	16

struct am_object {
	const char *name, *text;	/* its slot in the bank is its number + 1 */
};

struct am_plan {
	const uint64_t *code;		/* two words per instruction */
	size_t n_code;			/* words */
	struct am_object object[AM_OBJECTS];
	size_t n_slots;			/* of the bank; at least the objects' */
	int original;			/* before relocation: no addresses, offsets for symbols */
};

struct am {
	uint8_t bytes[1 << 16];
	size_t len;
};

static inline uint64_t am_add(struct am *m, const void *data, size_t len)
{
	size_t at = m->len;

	if (m->len + len > sizeof(m->bytes))
		abort();
	memcpy(m->bytes + at, data, len);
	m->len += len;
	return at;
}

static inline uint64_t am_back(const struct am_plan *p)
{
	return AM_CODE + p->n_code * 8;
}

/* Sections: 1 names, 2 code, 3 symbols, 4 their names, 5 bank, 6 texts. */
static inline struct bytes am_make(struct am *m, const struct am_plan *p)
{
	static const char names[] = "\0.nv.constant4\0.nv.global.init\0.text.k";
	char strings[1024] = "\0k";
	uint64_t slots[512] = {0}, text_at;
	Elf64_Sym sym[AM_OBJECTS + 2] = {{0}};
	Elf64_Ehdr h = {.e_type = ET_EXEC, .e_machine = 190, .e_shentsize = 64, .e_shnum = 7, .e_shstrndx = 1};
	Elf64_Shdr s[7] = {{0}};
	size_t i, n = 0, used = 3;

	memset(m, 0, sizeof(*m));
	am_add(m, &h, sizeof(h));
	s[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_size = sizeof(names)};
	s[1].sh_offset = am_add(m, names, sizeof(names));
	s[2] = (Elf64_Shdr){.sh_name = 31, .sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = AM_CODE,
			    .sh_size = p->n_code * 8, .sh_offset = am_add(m, p->code, p->n_code * 8)};
	sym[1] = (Elf64_Sym){
		.st_name = 1, .st_info = STT_FUNC, .st_shndx = 2, .st_value = AM_CODE, .st_size = p->n_code * 8};
	text_at = m->len;
	for (i = 0; i < AM_OBJECTS && p->object[i].name; i++, n++) {
		size_t len = strlen(p->object[i].text) + 1;
		uint64_t at = am_add(m, p->object[i].text, len);

		sym[i + 2] = (Elf64_Sym){.st_name = (uint32_t)used, .st_info = STT_OBJECT, .st_shndx = 6,
					 .st_size = len,
					 .st_value = p->original ? at - text_at : AM_DATA + (i + 1) * 256};
		memcpy(strings + used, p->object[i].name, strlen(p->object[i].name) + 1);
		used += strlen(p->object[i].name) + 1;
	}
	s[6] = (Elf64_Shdr){.sh_name = 15, .sh_type = SHT_PROGBITS, .sh_offset = text_at, .sh_size = m->len - text_at};
	for (i = 1; i < 512; i++)
		slots[i] = p->original ? 0 : AM_DATA + i * 256;
	s[5] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = (p->n_slots ? p->n_slots : n + 1) * 8};
	s[5].sh_offset = am_add(m, slots, s[5].sh_size);
	s[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = 4, .sh_entsize = 24, .sh_size = (n + 2) * 24,
			    .sh_offset = am_add(m, sym, (n + 2) * 24)};
	s[4] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_size = used, .sh_offset = am_add(m, strings, used)};
	h.e_shoff = am_add(m, s, sizeof(s));
	memcpy(h.e_ident, ELFMAG "\2\1\1\x41\x8", 9);
	memcpy(m->bytes, &h, sizeof(h));
	return (struct bytes){m->bytes, m->len};
}

#endif
