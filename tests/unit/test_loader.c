/* SPDX-License-Identifier: Apache-2.0
 * The loader's rules on generated trees, and on this program itself as `ldd` sees it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pool.h"
#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/loader_session.h"
#include "pyenv_make.h"

static struct pool pool;
static struct loader_session session;

static int setup(void **state)
{
	(void)state;
	make_begin();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (session.pool)
		loader_end(&session);
	pool_release(&pool);
	make_end();
	return 0;
}

static void begin(const char *library_path, const char *preload)
{
	make_elf("/bin/program", &(struct elf_spec){0});
	assert_int_equal(loader_begin(&session, &pool, make_root, "/home", "/bin/program", library_path, preload), 0);
}

static const struct loader_object *loaded(const char *name)
{
	int i = loader_loaded(&session, name);

	assert_true(i >= 0);
	return &session.object[i];
}

static void looks_in_rpath_before_library_path(void **state)
{
	(void)state;
	make_elf("/a/liba.so", &(struct elf_spec){.soname = "liba.so", .rpath = "$ORIGIN/own", .needed = {"libx.so"}});
	make_library("/a/own/libx.so", "libx.so");
	make_library("/other/libx.so", "libx.so");
	begin("/other", NULL);
	assert_true(loader_open(&session, "/a/liba.so", 0, LOADER_PATH, false) >= 0);
	assert_string_equal(loaded("libx.so")->path, "/a/own/libx.so");
	assert_int_equal(loaded("libx.so")->why, LOADER_RPATH);
	assert_string_equal(loaded("libx.so")->because, "/a/liba.so: $ORIGIN/own");
}

static void looks_in_library_path_before_runpath(void **state)
{
	(void)state;
	make_elf("/a/liba.so",
		 &(struct elf_spec){.soname = "liba.so", .runpath = "${ORIGIN}/own", .needed = {"libx.so"}});
	make_library("/a/own/libx.so", "libx.so");
	make_library("/other/libx.so", "libx.so");
	begin("/nowhere:/other", NULL);
	assert_true(loader_open(&session, "/a/liba.so", 0, LOADER_PATH, false) >= 0);
	assert_string_equal(loaded("libx.so")->path, "/other/libx.so");
	assert_int_equal(loaded("libx.so")->why, LOADER_LIBRARY_PATH);
	assert_string_equal(loaded("libx.so")->because, "/other");
}

/* A DT_RPATH applies to everything loaded below it; a DT_RUNPATH only to its own file. */
static void hands_rpath_down_but_not_runpath(void **state)
{
	(void)state;
	make_elf("/a/liba.so", &(struct elf_spec){.soname = "liba.so", .rpath = "/deep", .needed = {"libb.so"}});
	make_elf("/deep/libb.so", &(struct elf_spec){.soname = "libb.so", .needed = {"libc1.so"}});
	make_library("/deep/libc1.so", "libc1.so");
	make_elf("/r/liba2.so", &(struct elf_spec){.soname = "liba2.so", .runpath = "/deep2", .needed = {"libb2.so"}});
	make_elf("/deep2/libb2.so", &(struct elf_spec){.soname = "libb2.so", .needed = {"libc2.so"}});
	make_library("/deep2/libc2.so", "libc2.so");
	begin(NULL, NULL);
	assert_true(loader_open(&session, "/a/liba.so", 0, LOADER_PATH, false) >= 0);
	assert_string_equal(loaded("libc1.so")->because, "/a/liba.so: /deep");
	assert_int_equal(loader_open(&session, "/r/liba2.so", 0, LOADER_PATH, false), -1);
	assert_int_equal(loader_loaded(&session, "libb2.so"), -1);	/* all or nothing */
	assert_int_equal(loader_open(&session, "/r/liba2.so", 0, LOADER_PATH, true), -1);
	assert_null(session.object[session.n_objects - 1].path);
	assert_string_equal(session.object[session.n_objects - 1].name, "libc2.so");
}

/* For a file with a DT_RUNPATH, the loader ignores the DT_RPATH of those above it. */
static void forgets_rpath_above_a_runpath(void **state)
{
	(void)state;
	make_elf("/a/liba.so", &(struct elf_spec){.soname = "liba.so", .rpath = "/deep", .needed = {"libb.so"}});
	make_elf("/deep/libb.so", &(struct elf_spec){.soname = "libb.so", .runpath = "/run", .needed = {"libx.so"}});
	make_library("/deep/libx.so", "libx.so");
	make_library("/run/libx.so", "libx.so");
	begin(NULL, NULL);
	assert_true(loader_open(&session, "/a/liba.so", 0, LOADER_PATH, false) >= 0);
	assert_string_equal(loaded("libx.so")->path, "/run/libx.so");
	assert_int_equal(loaded("libx.so")->why, LOADER_RUNPATH);
}

static void keeps_what_is_loaded_by_soname(void **state)
{
	(void)state;
	make_library("/wheel/libx.so.1", "libx.so.1");
	make_elf("/a/liba.so", &(struct elf_spec){.soname = "liba.so", .rpath = "/system", .needed = {"libx.so.1"}});
	make_library("/system/libx.so.1", "libx.so.1");
	begin(NULL, NULL);
	assert_true(loader_open(&session, "/wheel/libx.so.1", 0, LOADER_CTYPES, false) >= 0);
	assert_true(loader_open(&session, "/a/liba.so", 0, LOADER_PATH, false) >= 0);
	assert_string_equal(loaded("libx.so.1")->path, "/wheel/libx.so.1");
	assert_int_equal(loaded("libx.so.1")->why, LOADER_CTYPES);
}

static void loads_one_file_once_through_links(void **state)
{
	size_t before;

	(void)state;
	make_library("/lib64/real.so.1.2", "libx.so.1");
	make_link("/lib64/one.so", "real.so.1.2");
	make_link("/lib64/two.so", "/lib64/real.so.1.2");	/* inside the root, not on this machine */
	begin(NULL, NULL);
	before = session.n_objects;
	assert_int_equal(loader_open(&session, "one.so", 0, LOADER_PATH, false), (int)before);
	assert_int_equal(loader_open(&session, "two.so", 0, LOADER_PATH, false), (int)before);
	assert_true(session.object[before + 1].again);
	assert_int_equal(loaded("one.so")->why, LOADER_DEFAULT);
}

static void passes_over_other_machines_and_stops_at_broken_files(void **state)
{
	struct loader_object o;

	(void)state;
	make_elf("/32/libx.so", &(struct elf_spec){.soname = "libx.so", .other_class = true});
	make_library("/64/libx.so", "libx.so");
	make_file("/empty/libx.so", "");
	make_file("/text/libx.so", "INPUT(libreal.so) and more than a header of text, so that it is long enough for one");
	begin("/32:/64", NULL);
	loader_look(&session, "libx.so", 0, &o);
	assert_string_equal(o.path, "/64/libx.so");
	assert_string_equal(o.skipped, "/32/libx.so");
	session.library_path = "/empty:/64";
	loader_look(&session, "libx.so", 0, &o);
	assert_string_equal(o.path, "/empty/libx.so");
	assert_string_equal(o.broken, "empty file");
	session.library_path = "/text:/64";
	loader_look(&session, "libx.so", 0, &o);
	assert_string_equal(o.broken, "not an ELF file");
}

static void notices_a_library_that_was_cut_short(void **state)
{
	struct loader_object o;

	(void)state;
	make_elf("/64/libx.so", &(struct elf_spec){.soname = "libx.so", .needed = {"libc.so.6"}});
	begin("/64", NULL);
	assert_int_equal(truncate(make_path("/64/libx.so"), 200), 0);
	loader_look(&session, "libx.so", 0, &o);
	assert_string_equal(o.broken, "cut short");
}

static void preloads_first(void **state)
{
	(void)state;
	make_library("/pre/libx.so.1", "libx.so.1");
	make_library("/etc-pre/liby.so", "liby.so");
	make_file("/etc/ld.so.preload", "# a comment\n/etc-pre/liby.so\n");
	begin(NULL, "/pre/libx.so.1 /not/there.so");
	assert_int_equal(loaded("libx.so.1")->why, LOADER_PRELOAD);
	assert_int_equal(loaded("liby.so")->why, LOADER_PRELOAD);
	assert_int_equal(session.n_objects, 3);
}

static void takes_an_empty_entry_for_the_current_folder(void **state)
{
	struct loader_object o;

	(void)state;
	make_library("/home/libx.so", "libx.so");
	begin("/nowhere:", NULL);
	loader_look(&session, "libx.so", 0, &o);
	assert_string_equal(o.path, "/home/libx.so");
}

static void prefers_hwcaps_folders_that_the_cpu_can_use(void **state)
{
	struct loader_object o;

	(void)state;
	make_file("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3\n");
	make_library("/l/libx.so", "libx.so");
	make_library("/l/glibc-hwcaps/x86-64-v2/libx.so", "libx.so");
	make_library("/l/glibc-hwcaps/x86-64-v3/libx.so", "libx.so");
	begin("/l", NULL);
	assert_int_equal(session.level, 2);
	loader_look(&session, "libx.so", 0, &o);
	assert_string_equal(o.path, "/l/glibc-hwcaps/x86-64-v2/libx.so");
}

static void survives_libraries_that_need_each_other(void **state)
{
	(void)state;
	make_elf("/l/liba.so", &(struct elf_spec){.soname = "liba.so", .needed = {"libb.so"}});
	make_elf("/l/libb.so", &(struct elf_spec){.soname = "libb.so", .needed = {"liba.so", "libb.so"}});
	make_link("/l/libc.so", "libd.so");
	make_link("/l/libd.so", "libc.so");
	begin("/l", NULL);
	assert_true(loader_open(&session, "liba.so", 0, LOADER_PATH, false) >= 0);
	assert_int_equal(session.n_objects, 3);
	assert_int_equal(loader_open(&session, "libc.so", 0, LOADER_PATH, false), -1);
}

struct entry { uint32_t flags; const char *key, *value; uint64_t hwcap; };

/* The new format with the name of one hwcaps folder, after `gap` bytes. */
static void make_cache(struct buf *b, const struct entry *e, uint32_t n, size_t gap)
{
	uint32_t texts = 48 + 24 * n, zero = 0, ext, magic = 0xeaa42174, one = 1, at;
	struct buf s;

	buf_init(&s, 1 << 16);
	buf_add(b, "glibc-ld.so.cache1.1", 20);
	buf_add(b, &n, 4);
	for (int i = 0; i < 6; i++)
		buf_add(b, &zero, 4);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t key = texts + (uint32_t)s.len, value;

		buf_add(&s, e[i].key, strlen(e[i].key) + 1);
		value = texts + (uint32_t)s.len;
		buf_add(&s, e[i].value, strlen(e[i].value) + 1);
		buf_add(b, &e[i].flags, 4), buf_add(b, &key, 4), buf_add(b, &value, 4), buf_add(b, &zero, 4);
		buf_add(b, &e[i].hwcap, 8);
	}
	at = texts + (uint32_t)s.len;
	buf_add(&s, "x86-64-v3", 10);
	while (s.len % 4)
		buf_add(&s, "", 1);
	ext = texts + (uint32_t)s.len;
	buf_add(b, s.data, s.len);
	memcpy(b->data + gap + 32, &ext, 4);
	buf_add(b, &magic, 4), buf_add(b, &one, 4);
	ext += 24;
	magic = 4;
	buf_add(b, &one, 4), buf_add(b, &zero, 4), buf_add(b, &ext, 4), buf_add(b, &magic, 4);
	buf_add(b, &at, 4);
	buf_release(&s);
}

static const struct entry entries[] = {
	{0x0303, "libx.so.1", "/v3/libx.so.1", 1ull << 62},
	{0x0003, "libx.so.1", "/i386/libx.so.1", 0},
	{0x0303, "libx.so.1", "/plain/libx.so.1", 0},
	{0x0303, "liby.so", "/plain/liby.so", 0},
	{0x0303, "liby.so", "/second/liby.so", 0},	/* never used: the first one wins */
};

#define N_ENTRIES (sizeof(entries) / sizeof(entries[0]))

static void reads_the_cache_in_both_formats(void **state)
{
	struct ldcache c;
	struct buf b;
	uint32_t none = 0;

	(void)state;
	for (int old = 0; old < 2; old++) {
		buf_init(&b, 1 << 16);
		if (old)
			buf_add(&b, "ld.so-1.7.0\0", 12), buf_add(&b, &none, 4);
		make_cache(&b, entries, N_ENTRIES, b.len);
		ldcache_parse(&c, b.data, b.len);
		assert_null(c.reason);
		assert_string_equal(ldcache_find(&c, "libx.so.1", EM_X86_64, 2), "/plain/libx.so.1");
		assert_string_equal(ldcache_find(&c, "libx.so.1", EM_X86_64, 3), "/v3/libx.so.1");
		assert_string_equal(ldcache_find(&c, "liby.so", EM_X86_64, 4), "/plain/liby.so");
		assert_null(ldcache_find(&c, "libz.so", EM_X86_64, 4));
		assert_null(ldcache_find(&c, "liby.so", EM_AARCH64, 1));
		buf_release(&b);
	}
}

static void reads_the_oldest_cache(void **state)
{
	uint32_t head[] = {1, 3, 0, 8};
	struct ldcache c;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	buf_add(&b, "ld.so-1.7.0\0", 12);
	buf_add(&b, head, sizeof(head));
	buf_add(&b, "libx.so\0/old/libx.so", 21);
	ldcache_parse(&c, b.data, b.len);
	assert_string_equal(ldcache_find(&c, "libx.so", EM_386, 1), "/old/libx.so");
	buf_release(&b);
}

static void survives_every_cut_and_flip_of_a_cache(void **state)
{
	struct ldcache c;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	make_cache(&b, entries, N_ENTRIES, 0);
	for (size_t n = 0; n <= b.len; n++) {
		char *copy = malloc(n ? n : 1);

		memcpy(copy, b.data, n);
		for (int flip = 0; flip < 2; flip++) {
			if (flip && n)
				copy[n / 2] = (char)~copy[n / 2];
			ldcache_parse(&c, copy, n);
			ldcache_find(&c, "libx.so.1", EM_X86_64, 4);
			ldcache_find(&c, "nothing", EM_X86_64, 4);
		}
		free(copy);
	}
	ldcache_parse(&c, "hello, I am no cache", 20);
	assert_non_null(c.reason);
	assert_null(ldcache_find(&c, "libx.so.1", EM_X86_64, 4));
	buf_release(&b);
}

static void uses_the_cache_before_default_folders(void **state)
{
	struct loader_object o;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	make_cache(&b, entries, N_ENTRIES, 0);
	make_bytes("/etc/ld.so.cache", b.data, b.len);
	buf_release(&b);
	make_library("/plain/libx.so.1", "libx.so.1");
	make_library("/usr/lib64/libx.so.1", "libx.so.1");
	make_library("/usr/lib64/liby.so", "liby.so");
	begin(NULL, NULL);
	loader_look(&session, "libx.so.1", 0, &o);
	assert_string_equal(o.path, "/plain/libx.so.1");
	assert_int_equal(o.why, LOADER_CACHE);
	loader_look(&session, "liby.so", 0, &o);	/* the cache's own file is gone */
	assert_string_equal(o.path, "/usr/lib64/liby.so");
	assert_int_equal(o.why, LOADER_DEFAULT);
}

static void finds_exported_symbols(void **state)
{
	struct elf_file f;
	struct loader_object o;

	(void)state;
	make_elf("/l/libx.so",
		 &(struct elf_spec){.soname = "libx.so", .undefined = {"wanted"}, .defined = {"one", "two"}});
	assert_int_equal(elf_open(&f, &pool, make_root, "/l/libx.so", 0), 0);
	assert_true(elf_exports(&f, "one") && elf_exports(&f, "two"));
	assert_false(elf_exports(&f, "wanted") || elf_exports(&f, "three"));
	elf_close(&f);
	assert_int_equal(loader_begin(&session, &pool, "", "/", "/proc/self/exe", NULL, NULL), 0);
	loader_look(&session, "libc.so.6", 0, &o);
	assert_non_null(o.path);
	assert_int_equal(elf_open(&f, &pool, "", o.path, 0), 0);	/* GNU hash table of a real library */
	assert_true(elf_exports(&f, "malloc") && elf_exports(&f, "fopen"));
	assert_false(elf_exports(&f, "cuwhy_no_such_function"));
	elf_close(&f);
}

static void agrees_with_ldd_about_this_program(void **state)
{
	char line[4096], exe[256], command[300], name[256], path[2048];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int seen = 0;
	FILE *f;

	(void)state;
	assert_true(n > 0);
	exe[n] = '\0';
	assert_int_equal(loader_begin(&session, &pool, "", "/", exe, getenv("LD_LIBRARY_PATH"), NULL), 0);
	snprintf(command, sizeof(command), "LD_PRELOAD= ldd '%s' 2>/dev/null", exe);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char real[TREE_PATH_MAX], ours[TREE_PATH_MAX];

		if (sscanf(line, " %255s => %2047s", name, path) != 2 || path[0] != '/')
			continue;
		assert_int_equal(tree_resolve("", path, real), 0);
		assert_int_equal(tree_resolve("", loaded(name)->path, ours), 0);
		assert_string_equal(ours, real);
		seen++;
	}
	pclose(f);
	if (seen == 0)
		skip();		/* no ldd here */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(looks_in_rpath_before_library_path),
		T(looks_in_library_path_before_runpath),
		T(hands_rpath_down_but_not_runpath),
		T(forgets_rpath_above_a_runpath),
		T(keeps_what_is_loaded_by_soname), T(loads_one_file_once_through_links),
		T(passes_over_other_machines_and_stops_at_broken_files),
		T(notices_a_library_that_was_cut_short),
		T(preloads_first),
		T(takes_an_empty_entry_for_the_current_folder), T(prefers_hwcaps_folders_that_the_cpu_can_use),
		T(survives_libraries_that_need_each_other), T(reads_the_cache_in_both_formats), T(reads_the_oldest_cache),
		T(survives_every_cut_and_flip_of_a_cache), T(uses_the_cache_before_default_folders), T(finds_exported_symbols),
		T(agrees_with_ldd_about_this_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
