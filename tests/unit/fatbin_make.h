/* SPDX-License-Identifier: Apache-2.0
 * Makes libraries with fat binaries in memory, for tests and fuzzing: headers as NVIDIA's tools write them, no code.
 */
#ifndef CUWHY_FATBIN_MAKE_H
#define CUWHY_FATBIN_MAKE_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct lib_make {
	uint8_t *data;
	size_t len, cap;
	size_t binary;		/* where the fat binary being written begins */
	Elf64_Shdr section[8];
	unsigned sections;
};

static const char lib_names[] = "\0.shstrtab\0.nv_fatbin\0__nv_relfatbin\0.text";
#define NAME_SHSTRTAB	1
#define NAME_FATBIN	11
#define NAME_RELFATBIN	22
#define NAME_TEXT	37

static inline void lib_bytes(struct lib_make *m, const void *bytes, size_t n)
{
	while (m->len + n > m->cap) {
		m->cap = m->cap ? m->cap * 2 : 4096;
		m->data = realloc(m->data, m->cap);
		if (!m->data)
			abort();
	}
	if (bytes)
		memcpy(m->data + m->len, bytes, n);
	else
		memset(m->data + m->len, 0, n);
	m->len += n;
}

static inline void lib_begin(struct lib_make *m)
{
	*m = (struct lib_make){.sections = 1};
	lib_bytes(m, NULL, sizeof(Elf64_Ehdr));
}

static inline void lib_section(struct lib_make *m, uint32_t name)
{
	lib_bytes(m, NULL, (64 - m->len % 64) % 64);
	m->section[m->sections] = (Elf64_Shdr){
		.sh_name = name, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_offset = m->len, .sh_addralign = 8};
	m->sections++;
}

static inline void lib_section_end(struct lib_make *m)
{
	Elf64_Shdr *s = &m->section[m->sections - 1];

	s->sh_size = m->len - s->sh_offset;
}

static inline void lib_binary(struct lib_make *m)
{
	static const uint8_t header[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};

	m->binary = m->len;
	lib_bytes(m, header, sizeof(header));
}

#define LIB_PTX		1
#define LIB_CUBIN	2
#define LIB_LTO		8

/* An entry of a fat binary with `payload` bytes after it. ptx: 87 is 8.7. */
static inline void lib_entry_sized(struct lib_make *m, uint16_t kind, uint32_t arch, char suffix, int ptx,
				   uint64_t payload)
{
	uint8_t h[72] = {0};
	uint32_t header = sizeof(h);
	uint64_t flags = 0x11 | (suffix == 'a' ? 0x100000 : suffix == 'f' ? 0x200000 : 0), size;
	uint16_t major = kind == LIB_PTX ? (uint16_t)(ptx / 10) : 1, minor = kind == LIB_PTX ? (uint16_t)(ptx % 10) : 8;

	memcpy(h, &kind, 2);
	h[2] = h[3] = 1;
	memcpy(h + 4, &header, 4);
	memcpy(h + 8, &payload, 8);
	memcpy(h + 24, &minor, 2);
	memcpy(h + 26, &major, 2);
	memcpy(h + 28, &arch, 4);
	memcpy(h + 40, &flags, 8);
	lib_bytes(m, h, sizeof(h));
	lib_bytes(m, NULL, payload);
	size = m->len - m->binary - 16;
	memcpy(m->data + m->binary + 8, &size, 8);
}

static inline void lib_entry(struct lib_make *m, uint16_t kind, uint32_t arch, char suffix, int ptx)
{
	lib_entry_sized(m, kind, arch, suffix, ptx, 40);
}

/* A whole fat binary: "75 80 90a p120" (p: PTX, of version 9.0). */
static inline void lib_binary_of(struct lib_make *m, const char *targets)
{
	char *end;

	lib_binary(m);
	while (*targets) {
		int is_ptx = *targets == 'p';
		unsigned long arch = strtoul(targets + is_ptx, &end, 10);
		char suffix = *end == 'a' || *end == 'f' ? *end++ : '\0';

		lib_entry(m, is_ptx ? LIB_PTX : LIB_CUBIN, (uint32_t)arch, suffix, is_ptx ? 90 : 0);
		targets = *end == ' ' ? end + 1 : end;
	}
}

/* The list of sections and the header of the file. */
static inline void lib_end(struct lib_make *m)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
			.e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr)};

	lib_section(m, NAME_SHSTRTAB);
	m->section[m->sections - 1].sh_type = SHT_STRTAB;
	lib_bytes(m, lib_names, sizeof(lib_names));
	lib_section_end(m);
	lib_bytes(m, NULL, (8 - m->len % 8) % 8);
	h.e_shoff = m->len;
	h.e_shnum = (uint16_t)m->sections;
	h.e_shstrndx = (uint16_t)(m->sections - 1);
	lib_bytes(m, m->section, m->sections * sizeof(Elf64_Shdr));
	memcpy(m->data, &h, sizeof(h));
}

/* A library with one section of these fat binaries; the list ends with NULL. */
static inline void lib_of(struct lib_make *m, const char *const *binaries)
{
	lib_begin(m);
	lib_section(m, NAME_FATBIN);
	for (; *binaries; binaries++)
		lib_binary_of(m, *binaries);
	lib_section_end(m);
	lib_end(m);
}

static inline Elf64_Ehdr *lib_header(struct lib_make *m)
{
	return (Elf64_Ehdr *)(void *)m->data;
}

#endif
