/* SPDX-License-Identifier: Apache-2.0
 * The sections of ELF files: found in memory and on disk, and nothing beyond the file is read, whatever it claims.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "formats/elf_sections.h"

#define UNUSED(state)	(void)(state)
#define SECTIONS	4

/* A header, names, four bytes of content, and the headers of sections: names, ".one", ".nobits". */
struct file {
	Elf64_Ehdr h;
	char names[32];
	uint8_t content[8];
	Elf64_Shdr s[SECTIONS];
};

static void make(struct file *f)
{
	*f = (struct file){
		.h = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_shoff = offsetof(struct file, s),
		      .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS, .e_shstrndx = 1},
		.names = "\0.names\0.one\0.nobits", .content = {1, 2, 3, 4},
		.s = {{0},
		      {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct file, names), .sh_size = 21},
		      {.sh_name = 8, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(struct file, content), .sh_size = 4},
		      {.sh_name = 13, .sh_type = SHT_NOBITS, .sh_size = 1 << 20}},
	};
	memcpy(f->h.e_ident, ELFMAG "\2\1\1", 7);
}

static struct elf_source source_of(const struct file *f)
{
	return elf_in_memory((struct bytes){(const uint8_t *)f, sizeof(*f)});
}

static bool sections_of(struct elf_sections *all, struct elf_source f)
{
	Elf64_Ehdr h;

	return elf_header(&f, &h) && elf_sections_open(all, f, &h);
}

static void header__other_word_sizes_and_byte_orders_are_refused(void **state)
{
	static const struct { int at; uint8_t value; } c[] = {{0, 0}, {EI_CLASS, ELFCLASS32}, {EI_DATA, ELFDATA2MSB}};
	struct elf_source f;
	struct file file;
	Elf64_Ehdr h;

	UNUSED(state);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		make(&file);
		file.h.e_ident[c[i].at] = c[i].value;
		f = source_of(&file);
		assert_false(elf_header(&f, &h));
	}
	f = elf_in_memory((struct bytes){NULL, 4096});
	assert_false(elf_header(&f, &h));
}

static void sections__are_found_by_name(void **state)
{
	struct elf_sections all;
	struct file file;
	struct bytes b;
	Elf64_Shdr s;

	UNUSED(state);
	make(&file);
	assert_true(sections_of(&all, source_of(&file)));
	assert_int_equal(elf_section_named(&all, ".one", &s), 2);
	b = elf_section_bytes(&all, &s);
	assert_int_equal(b.len, 4);
	assert_int_equal(b.data[3], 4);
	assert_int_equal(elf_section_named(&all, ".nobits", &s), 3);
	assert_null(elf_section_bytes(&all, &s).data);
	assert_int_equal(elf_section_named(&all, ".on", &s), 0);
	assert_int_equal(elf_section_named(&all, ".ones", &s), 0);
	assert_false(elf_section(&all, SECTIONS, &s));
}

static void sections__too_many_for_the_header_are_counted_in_section_zero(void **state)
{
	struct elf_sections all;
	struct file file;
	Elf64_Shdr s;

	UNUSED(state);
	make(&file);
	file.h.e_shnum = 0;
	file.h.e_shstrndx = SHN_XINDEX;
	file.s[0].sh_size = SECTIONS;
	file.s[0].sh_link = 1;
	assert_true(sections_of(&all, source_of(&file)));
	assert_int_equal(all.n, SECTIONS);
	assert_int_equal(elf_section_named(&all, ".one", &s), 2);
}

static void sections__a_file_on_disk_reads_like_its_bytes(void **state)
{
	char path[] = "/tmp/cuwhy-elf-XXXXXX";
	int fd = mkstemp(path);
	struct elf_sections all;
	struct file file;
	Elf64_Shdr s;
	uint8_t end[16];

	UNUSED(state);
	make(&file);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	unlink(path);
	assert_true(sections_of(&all, (struct elf_source){fd, NULL, sizeof(file)}));
	assert_int_equal(elf_section_named(&all, ".one", &s), 2);
	assert_int_equal(elf_read(&all.file, sizeof(file) - 8, end, sizeof(end)), 8);
	/* the file was truncated since */
	assert_int_equal(ftruncate(fd, 64), 0);
	assert_false(elf_section(&all, 1, &s));
	assert_int_equal(elf_section_named(&all, ".one", &s), 0);
	close(fd);
}

/* For the sanitizer: bytes of exactly that length. */
static void look_at_all(const void *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct elf_sections all;
	volatile uint8_t sink = 0;
	struct bytes b;
	Elf64_Shdr s;

	memcpy(copy, bytes, len);
	if (sections_of(&all, elf_in_memory((struct bytes){copy, len}))) {
		for (uint64_t i = 0; elf_section(&all, i, &s); i++) {
			b = elf_section_bytes(&all, &s);
			for (size_t k = 0; k < b.len; k++)
				sink = (uint8_t)(sink + b.data[k]);
		}
		elf_section(&all, UINT64_MAX, &s);
		elf_section_named(&all, ".nobits", &s);
	}
	free(copy);
}

static void sections__a_file_cut_anywhere_is_read_to_its_end_alone(void **state)
{
	struct file file;

	UNUSED(state);
	make(&file);
	for (size_t len = 0; len <= sizeof(file); len++)
		look_at_all(&file, len);
}

static void sections__claims_of_the_file_are_not_believed(void **state)
{
	static const uint64_t lies[] = {1, 63, 65, sizeof(struct file) - 1, sizeof(struct file), UINT32_MAX, INT64_MAX,
					UINT64_MAX - 63, UINT64_MAX};
	struct file file;

	UNUSED(state);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		make(&file);
		file.h.e_shoff = lies[i];
		look_at_all(&file, sizeof(file));
		make(&file);
		file.h.e_shentsize = (uint16_t)lies[i];
		look_at_all(&file, sizeof(file));
		make(&file);
		file.h.e_shnum = 0;
		file.s[0].sh_size = lies[i];
		look_at_all(&file, sizeof(file));
		for (int k = 1; k < SECTIONS; k++) {
			make(&file);
			file.s[k].sh_offset = lies[i];
			look_at_all(&file, sizeof(file));
			make(&file);
			file.s[k].sh_size = lies[i];
			look_at_all(&file, sizeof(file));
			make(&file);
			file.s[k].sh_name = (uint32_t)lies[i];
			look_at_all(&file, sizeof(file));
		}
		make(&file);
		file.h.e_shstrndx = (uint16_t)lies[i];
		look_at_all(&file, sizeof(file));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header__other_word_sizes_and_byte_orders_are_refused),
		cmocka_unit_test(sections__are_found_by_name),
		cmocka_unit_test(sections__too_many_for_the_header_are_counted_in_section_zero),
		cmocka_unit_test(sections__a_file_on_disk_reads_like_its_bytes),
		cmocka_unit_test(sections__a_file_cut_anywhere_is_read_to_its_end_alone),
		cmocka_unit_test(sections__claims_of_the_file_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
