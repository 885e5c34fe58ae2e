/* SPDX-License-Identifier: Apache-2.0
 * Trees for the tests of read/machine/pyenv: files below a scratch folder, and ELF files made byte by byte.
 */
#ifndef CUWHY_PYENV_MAKE_H
#define CUWHY_PYENV_MAKE_H

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"

#define LIST 8

struct elf_spec {
	const char *soname, *rpath, *runpath;
	const char *needed[LIST], *undefined[LIST], *defined[LIST];
	bool fatbin, other_class;
};

static char make_root[64];

static inline void make_begin(void)
{
	snprintf(make_root, sizeof(make_root), "/tmp/cuwhy-pyenv-XXXXXX");
	if (!mkdtemp(make_root))
		abort();
}

static inline void make_end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", make_root);
	if (system(command) != 0)
		abort();
}

static inline const char *make_path(const char *path)
{
	static char full[4][4096];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(full[turn], sizeof(full[0]), "%s%s", make_root, path);
	return full[turn];
}

static inline void make_parents(const char *path)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s", make_path(path));
	*strrchr(dir, '/') = '\0';
	if (fs_mkdirs(dir, NULL) != 0)
		abort();
}

static inline void make_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *f;

	make_parents(path);
	f = fopen(make_path(path), "w");
	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		abort();
}

static inline void make_file(const char *path, const char *text)
{
	make_bytes(path, text, strlen(text));
}

static inline void make_dir(const char *path)
{
	if (fs_mkdirs(make_path(path), NULL) != 0)
		abort();
}

static inline void make_link(const char *path, const char *target)
{
	make_parents(path);
	if (symlink(target, make_path(path)) != 0)
		abort();
}

static inline uint64_t elf_word(struct buf *strings, const char *text)
{
	uint64_t at = strings->len;

	buf_add(strings, text, strlen(text) + 1);
	return at;
}

static inline void elf_dyn(struct buf *b, int64_t tag, uint64_t value)
{
	Elf64_Dyn d = {.d_tag = tag, .d_un.d_val = value};

	buf_add(b, &d, sizeof(d));
}

static inline void elf_sym(struct buf *syms, struct buf *strings, const char *name, uint16_t section)
{
	Elf64_Sym s = {.st_name = (uint32_t)elf_word(strings, name), .st_shndx = section,
		       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};

	buf_add(syms, &s, sizeof(s));
}

/* Symbols, one bucket with all of them in one chain, and the texts. */
static inline void elf_tables(const struct elf_spec *e, struct buf *dyn, struct buf *strings, struct buf *syms,
			      struct buf *hash)
{
	uint32_t n, head[3] = {1, 0, 0};

	buf_add(strings, "", 1);
	for (int i = 0; i < LIST && e->needed[i]; i++)
		elf_dyn(dyn, DT_NEEDED, elf_word(strings, e->needed[i]));
	if (e->soname)
		elf_dyn(dyn, DT_SONAME, elf_word(strings, e->soname));
	if (e->rpath)
		elf_dyn(dyn, DT_RPATH, elf_word(strings, e->rpath));
	if (e->runpath)
		elf_dyn(dyn, DT_RUNPATH, elf_word(strings, e->runpath));
	elf_sym(syms, strings, "", 0);
	for (int i = 0; i < LIST && e->undefined[i]; i++)
		elf_sym(syms, strings, e->undefined[i], SHN_UNDEF);
	for (int i = 0; i < LIST && e->defined[i]; i++)
		elf_sym(syms, strings, e->defined[i], 1);
	n = (uint32_t)(syms->len / sizeof(Elf64_Sym));
	head[1] = n;
	head[2] = n > 1 ? 1 : 0;
	buf_add(hash, head, sizeof(head));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = i && i + 1 < n ? i + 1 : 0;

		buf_add(hash, &next, sizeof(next));
	}
}

static inline void elf_sections(struct buf *out, bool fatbin)
{
	static const char names[] = "\0.shstrtab\0.nv_fatbin";
	uint64_t at = out->len;
	Elf64_Shdr s[3] = {0};

	buf_add(out, names, sizeof(names));
	s[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof(names)};
	s[2] = (Elf64_Shdr){.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_size = 16};
	at = out->len;
	buf_add(out, s, sizeof(s));
	((Elf64_Ehdr *)out->data)->e_shoff = at;
	((Elf64_Ehdr *)out->data)->e_shnum = fatbin ? 3 : 2;
	((Elf64_Ehdr *)out->data)->e_shstrndx = 1;
	((Elf64_Ehdr *)out->data)->e_shentsize = sizeof(s[0]);
}

static inline void make_elf(const char *path, const struct elf_spec *e)
{
	Elf64_Ehdr h = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1, .e_phoff = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2, .e_ehsize = sizeof(h)};
	Elf64_Phdr ph[2] = {{.p_type = PT_LOAD}, {.p_type = PT_DYNAMIC}};
	struct buf out, dyn, strings, syms, hash;
	uint64_t at = sizeof(h) + sizeof(ph), n_dyn;

	buf_init(&out, 1 << 20), buf_init(&dyn, 1 << 16), buf_init(&strings, 1 << 16);
	buf_init(&syms, 1 << 16), buf_init(&hash, 1 << 16);
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = e->other_class ? ELFCLASS32 : ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	elf_tables(e, &dyn, &strings, &syms, &hash);
	n_dyn = dyn.len + 5 * sizeof(Elf64_Dyn);
	ph[1].p_offset = ph[1].p_vaddr = at;
	ph[1].p_filesz = n_dyn;
	elf_dyn(&dyn, DT_SYMTAB, at + n_dyn);
	elf_dyn(&dyn, DT_HASH, at + n_dyn + syms.len);
	elf_dyn(&dyn, DT_STRTAB, at + n_dyn + syms.len + hash.len);
	elf_dyn(&dyn, DT_STRSZ, strings.len);
	elf_dyn(&dyn, DT_NULL, 0);
	ph[0].p_filesz = at + n_dyn + syms.len + hash.len + strings.len;
	buf_add(&out, &h, sizeof(h)), buf_add(&out, ph, sizeof(ph)), buf_add(&out, dyn.data, dyn.len);
	buf_add(&out, syms.data, syms.len), buf_add(&out, hash.data, hash.len), buf_add(&out, strings.data, strings.len);
	elf_sections(&out, e->fatbin);
	make_bytes(path, out.data, out.len);
	buf_release(&out), buf_release(&dyn), buf_release(&strings), buf_release(&syms), buf_release(&hash);
}

static inline void make_library(const char *path, const char *soname)
{
	make_elf(path, &(struct elf_spec){.soname = soname});
}

#endif
