/* SPDX-License-Identifier: Apache-2.0
 * Architectures inside libraries: what is found, what it covers, and files that lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/fatbin.h"
#include "fatbin_make.h"

#define LIST(...)	((const char *const[]){__VA_ARGS__, NULL})

static struct fatbin *read_made(struct lib_make *m)
{
	struct fatbin *f = fatbin_from_bytes(m->data, m->len, NULL);

	assert_non_null(f);
	free(m->data);
	return f;
}

static struct fatbin *made(const char *const *binaries)
{
	struct lib_make m;

	lib_of(&m, binaries);
	return read_made(&m);
}

static void assert_archs(const struct fatbin *f, const char *general, const char *extra)
{
	struct buf text;

	buf_init(&text, 4096);
	fatbin_archs(f, true, &text);
	assert_string_equal(text.data ? text.data : "", general);
	buf_release(&text);
	buf_init(&text, 4096);
	fatbin_archs(f, false, &text);
	assert_string_equal(text.data ? text.data : "", extra);
	buf_release(&text);
}

static enum fatbin_cover covers(const struct fatbin *f, int cc, int cuda)
{
	return fatbin_covers(f, cc, cuda).cover;
}

static void read__targets_with_suffix_and_version(void **state)
{
	struct fatbin *f = made(LIST("120 90a 75 100f p120"));

	(void)state;
	assert_int_equal(f->binaries, 1);
	assert_int_equal(f->n, 5);
	assert_int_equal(f->target[0].arch, 75);
	assert_int_equal(f->target[1].suffix, 'a');
	assert_int_equal(f->target[2].suffix, 'f');
	assert_int_equal(f->target[4].kind, FATBIN_PTX);
	assert_int_equal(f->target[4].ptx, 90);
	assert_false(f->damaged || f->scanned);
	assert_archs(f, "sm_75 sm_90a sm_100f sm_120 compute_120", "");
	fatbin_free(f);
}

static void read__both_sections_and_padding(void **state)
{
	struct fatbin *f;
	struct lib_make m;

	(void)state;
	lib_begin(&m);
	lib_section(&m, NAME_RELFATBIN);
	lib_binary_of(&m, "70 80");
	lib_section_end(&m);
	lib_section(&m, NAME_FATBIN);
	lib_bytes(&m, NULL, 4000);
	lib_binary_of(&m, "75 90");
	lib_bytes(&m, NULL, 100000);
	lib_binary_of(&m, "75 90");
	lib_bytes(&m, NULL, 8);
	lib_section_end(&m);
	lib_end(&m);
	f = read_made(&m);
	assert_int_equal(f->binaries, 3);
	assert_int_equal(f->n_sets, 2);
	assert_int_equal(f->set[0].count, 2);
	assert_true(f->set[1].linked);
	assert_false(f->damaged);
	/* what is linked into another fat binary does not decide */
	assert_int_equal(covers(f, 75, 13000), FATBIN_COVER_SASS);
	fatbin_free(f);
}

static void read__without_sections(void **state)
{
	struct lib_make m;
	struct fatbin *f;

	(void)state;
	lib_of(&m, LIST("75 80", "75 80", "90a"));
	lib_header(&m)->e_shoff = 0;
	lib_header(&m)->e_shnum = 0;
	f = read_made(&m);
	assert_true(f->scanned);
	assert_false(f->damaged);
	assert_int_equal(f->binaries, 3);
	assert_archs(f, "sm_75 sm_80", "sm_90a");
	fatbin_free(f);
}

static void read__a_constant_in_code_is_no_fat_binary(void **state)
{
	static const uint8_t magic[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
	struct lib_make m;
	struct fatbin *f;

	(void)state;
	lib_begin(&m);
	lib_section(&m, NAME_TEXT);
	lib_bytes(&m, magic, sizeof(magic));
	lib_bytes(&m, NULL, 256);
	lib_section_end(&m);
	lib_end(&m);
	lib_header(&m)->e_shoff = 0;
	lib_header(&m)->e_shnum = 0;
	f = read_made(&m);
	assert_int_equal(f->binaries, 0);
	assert_int_equal(covers(f, 75, 13000), FATBIN_COVER_UNKNOWN);
	fatbin_free(f);
}

static void read__no_gpu_code(void **state)
{
	struct lib_make m;
	struct fatbin *f;

	(void)state;
	lib_begin(&m);
	lib_section(&m, NAME_TEXT);
	lib_bytes(&m, NULL, 256);
	lib_section_end(&m);
	lib_end(&m);
	f = read_made(&m);
	assert_int_equal(f->binaries, 0);
	assert_false(f->scanned || f->damaged);
	assert_archs(f, "", "");
	fatbin_free(f);
}

static void read__other_files_are_refused_with_words(void **state)
{
	char folder[] = "/tmp/cuwhy-fatbin-XXXXXX", path[64];
	struct err e = {0};

	(void)state;
	assert_null(fatbin_from_bytes("hello", 5, &e));
	assert_true(e.code < 0 && e.msg[0]);
	assert_null(fatbin_from_bytes("", 0, NULL));
	e = (struct err){0};
	assert_null(fatbin_read("/nonexistent/lib.so", &e));
	assert_non_null(strstr(e.msg, "/nonexistent/lib.so"));
	assert_non_null(mkdtemp(folder));
	assert_null(fatbin_read(folder, &e));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(fatbin_read(path, &e));		/* and does not wait for a writer */
	unlink(path);
	rmdir(folder);
}

static void cover__machine_code(void **state)
{
	struct fatbin *f = made(LIST("75 80 86 90", "75 80 86 90"));
	struct fatbin_coverage c = fatbin_covers(f, 89, 13000);

	(void)state;
	assert_int_equal(c.cover, FATBIN_COVER_SASS);
	assert_int_equal(c.best.arch, 86);
	assert_int_equal(c.sass, 2);
	assert_int_equal(covers(f, 70, 13000), FATBIN_COVER_NONE);
	assert_int_equal(covers(f, 120, 13000), FATBIN_COVER_NONE);
	assert_int_equal(covers(f, 0, 13000), FATBIN_COVER_UNKNOWN);
	c = fatbin_covers(f, 87, 13000);
	assert_true(c.tegra);
	assert_int_equal(c.cover, FATBIN_COVER_UNKNOWN);
	fatbin_free(f);
}

static void cover__ptx(void **state)
{
	struct fatbin *f = made(LIST("75 p90"));
	struct fatbin_coverage c = fatbin_covers(f, 120, 13000);

	(void)state;
	assert_int_equal(c.cover, FATBIN_COVER_JIT);
	assert_int_equal(c.best.kind, FATBIN_PTX);
	assert_int_equal(covers(f, 120, 12080), FATBIN_COVER_PTX_NEW);
	assert_int_equal(covers(f, 120, 0), FATBIN_COVER_UNKNOWN);
	assert_int_equal(covers(f, 80, 13000), FATBIN_COVER_NONE);
	assert_int_equal(covers(f, 75, 12080), FATBIN_COVER_SASS);
	fatbin_free(f);
}

static void cover__special_fat_binaries_do_not_decide(void **state)
{
	struct fatbin *f = made(LIST("70 75 80", "70 75 80", "70 75 80", "70 75 80 90a", "90a", "80", "80 86"));

	(void)state;
	assert_int_equal(f->general, 4);
	assert_archs(f, "sm_70 sm_75 sm_80", "sm_86 sm_90a");
	assert_int_equal(covers(f, 75, 13000), FATBIN_COVER_SASS);
	assert_int_equal(covers(f, 90, 13000), FATBIN_COVER_NONE);
	fatbin_free(f);
}

static void cover__a_library_for_one_gpu(void **state)
{
	struct fatbin *one = made(LIST("90", "90")), *specific = made(LIST("90a", "90a"));

	(void)state;
	assert_archs(one, "sm_90", "");
	assert_int_equal(covers(one, 90, 13000), FATBIN_COVER_SASS);
	assert_int_equal(covers(one, 80, 13000), FATBIN_COVER_NONE);
	assert_archs(specific, "sm_90a", "");
	assert_int_equal(covers(specific, 90, 13000), FATBIN_COVER_SASS);
	assert_int_equal(covers(specific, 100, 13000), FATBIN_COVER_NONE);
	fatbin_free(one);
	fatbin_free(specific);
}

static void cover__some_kernels_are_missing(void **state)
{
	struct fatbin *f = made(LIST("75 80", "75 80", "80 90", "80 90", "80 90"));

	(void)state;
	assert_int_equal(covers(f, 80, 13000), FATBIN_COVER_SASS);
	assert_int_equal(covers(f, 90, 13000), FATBIN_COVER_PART);
	assert_int_equal(fatbin_covers(f, 90, 13000).none, 2);
	assert_int_equal(covers(f, 75, 13000), FATBIN_COVER_NONE);
	fatbin_free(f);
}

static void cover__link_time_code_does_not_run(void **state)
{
	struct lib_make m;
	struct fatbin *f;

	(void)state;
	lib_begin(&m);
	lib_section(&m, NAME_FATBIN);
	lib_binary(&m);
	lib_entry(&m, LIB_LTO, 75, '\0', 0);
	lib_section_end(&m);
	lib_end(&m);
	f = read_made(&m);
	assert_archs(f, "", "");
	assert_int_equal(covers(f, 75, 13000), FATBIN_COVER_NONE);
	fatbin_free(f);
}

static void damage__every_cut_is_survived_and_seen(void **state)
{
	struct fatbin *whole, *f;
	struct lib_make m;
	uint8_t *copy;

	(void)state;
	lib_of(&m, LIST("75 80 p90", "75 80 p90"));
	whole = fatbin_from_bytes(m.data, m.len, NULL);
	assert_false(whole->damaged);
	for (size_t n = sizeof(Elf64_Ehdr); n < m.len; n += 8) {
		copy = malloc(n);	/* so that a sanitizer detects a read past the end */
		memcpy(copy, m.data, n);
		f = fatbin_from_bytes(copy, n, NULL);
		assert_non_null(f);
		assert_true(f->damaged && f->why[0]);
		assert_int_equal(covers(f, 75, 13000), FATBIN_COVER_UNKNOWN);
		fatbin_free(f);
		free(copy);
	}
	fatbin_free(whole);
	free(m.data);
}

/* Each header in turn is absurd: no crash, and the library is not reported as fine. */
static void damage__absurd_headers(void **state)
{
	static const struct {
		size_t at, bytes;	/* in the first fat binary */
		uint64_t value;
	} lies[] = {
		{8, 8, UINT64_MAX},
		{8, 8, 1 << 30},
		{16 + 4, 4, 0},
		{16 + 4, 4, 60},
		{16 + 4, 4, 0xfffffff8},
		{16 + 8, 8, UINT64_MAX},
		{16 + 8, 8, UINT64_MAX - 71}, {16 + 28, 4, 0}, {16 + 28, 4, 0x7fffffff},
	};
	struct lib_make m;
	struct fatbin *f;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		lib_of(&m, LIST("75 80", "75 80"));
		memcpy(m.data + m.section[1].sh_offset + lies[i].at, &lies[i].value, lies[i].bytes);
		f = read_made(&m);
		if (!f->damaged)
			fail_msg("lie %zu was believed", i);
		fatbin_free(f);
	}
}

static void damage__a_list_of_sections_that_lies(void **state)
{
	struct lib_make m;
	struct fatbin *f;

	(void)state;
	lib_of(&m, LIST("75 80"));
	lib_header(&m)->e_shoff = UINT64_MAX - 8;
	f = read_made(&m);
	assert_true(f->damaged && f->scanned);
	assert_int_equal(f->binaries, 1);
	fatbin_free(f);
	lib_of(&m, LIST("75 80"));
	((Elf64_Shdr *)(void *)(m.data + lib_header(&m)->e_shoff))[1].sh_size = UINT64_MAX;
	f = read_made(&m);
	assert_true(f->damaged);
	assert_int_equal(f->binaries, 1);
	fatbin_free(f);
	lib_of(&m, LIST("75 80"));	/* two sections at one place */
	((Elf64_Shdr *)(void *)(m.data + lib_header(&m)->e_shoff))[2] =
		((Elf64_Shdr *)(void *)(m.data + lib_header(&m)->e_shoff))[1];
	f = read_made(&m);
	fatbin_free(f);
}

static void damage__endless_kinds_of_fat_binaries(void **state)
{
	struct lib_make m;
	struct fatbin *f;
	char targets[32];

	(void)state;
	lib_begin(&m);
	lib_section(&m, NAME_FATBIN);
	for (int i = 0; i < 1000; i++) {
		snprintf(targets, sizeof(targets), "%d %d", 10 + i, 2000 + i);
		lib_binary_of(&m, targets);
	}
	lib_section_end(&m);
	lib_end(&m);
	f = read_made(&m);
	assert_int_equal(f->binaries, 1000);
	assert_true(f->damaged);
	assert_true(f->n <= 256 && f->n_sets <= 256);
	fatbin_free(f);
}

/* A library of 600 MB, nearly all of it holes: the code between the headers must not be read. */
static void size__code_is_not_read(void **state)
{
	char path[] = "/tmp/cuwhy-fatbin-XXXXXX";
	struct rusage before, after;
	struct lib_make m, head;
	int fd = mkstemp(path);
	struct fatbin *f;
	uint64_t gap = 100u << 20, at, size;

	(void)state;
	assert_true(fd >= 0);
	lib_begin(&m);
	lib_section(&m, NAME_FATBIN);
	at = m.len;
	for (int i = 0; i < 6; i++, at += 16 + 72 + gap) {
		memset(&head, 0, sizeof(head));
		lib_binary(&head);
		lib_entry_sized(&head, LIB_CUBIN, 75, '\0', 0, 0);
		size = 72 + gap;
		memcpy(head.data + 8, &size, 8);
		memcpy(head.data + 16 + 8, &gap, 8);
		assert_int_equal(pwrite(fd, head.data, head.len, (off_t)at), head.len);
		free(head.data);
	}
	lib_section_end(&m);
	m.section[1].sh_size = at - m.section[1].sh_offset;
	lib_end(&m);
	/* what followed the section moves after it */
	size = m.len - m.section[1].sh_offset;
	for (unsigned i = 2; i < m.sections; i++)
		((Elf64_Shdr *)(void *)(m.data + lib_header(&m)->e_shoff))[i].sh_offset += at - m.section[1].sh_offset;
	assert_int_equal(pwrite(fd, m.data + m.section[1].sh_offset, size, (off_t)at), size);
	lib_header(&m)->e_shoff += at - m.section[1].sh_offset;
	assert_int_equal(pwrite(fd, m.data, m.section[1].sh_offset, 0), m.section[1].sh_offset);
	close(fd);
	free(m.data);
	getrusage(RUSAGE_SELF, &before);
	f = fatbin_read(path, NULL);
	getrusage(RUSAGE_SELF, &after);
	unlink(path);
	assert_non_null(f);
	assert_string_equal(f->why, "");
	assert_int_equal(f->binaries, 6);
	assert_true(f->bytes > 600u << 20);
	assert_true(after.ru_maxrss - before.ru_maxrss < 8 << 10);
	fatbin_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__targets_with_suffix_and_version),
		cmocka_unit_test(read__both_sections_and_padding),
		cmocka_unit_test(read__without_sections),
		cmocka_unit_test(read__a_constant_in_code_is_no_fat_binary),
		cmocka_unit_test(read__no_gpu_code),
		cmocka_unit_test(read__other_files_are_refused_with_words),
		cmocka_unit_test(cover__machine_code),
		cmocka_unit_test(cover__ptx),
		cmocka_unit_test(cover__special_fat_binaries_do_not_decide),
		cmocka_unit_test(cover__a_library_for_one_gpu),
		cmocka_unit_test(cover__some_kernels_are_missing),
		cmocka_unit_test(cover__link_time_code_does_not_run),
		cmocka_unit_test(damage__every_cut_is_survived_and_seen),
		cmocka_unit_test(damage__absurd_headers),
		cmocka_unit_test(damage__a_list_of_sections_that_lies),
		cmocka_unit_test(damage__endless_kinds_of_fat_binaries),
		cmocka_unit_test(size__code_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
