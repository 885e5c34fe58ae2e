/* SPDX-License-Identifier: Apache-2.0
 * Files below a root: links stay inside, and nothing that could block is opened.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pool.h"
#include "base/tree.h"
#include "pyenv_make.h"

static int setup(void **state)
{
	(void)state;
	make_begin();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	make_end();
	return 0;
}

static void resolves_to(const char *path, const char *want)
{
	char out[TREE_PATH_MAX];

	assert_int_equal(tree_resolve(make_root, path, out), 0);
	assert_string_equal(out, want);
}

static void keeps_links_inside_the_root(void **state)
{
	char out[TREE_PATH_MAX];

	(void)state;
	make_file("/etc/passwd", "ours");
	make_link("/a/absolute", "/etc/passwd");
	make_link("/a/up", "../../../../../../etc/passwd");
	make_link("/a/folder", "/etc");
	make_link("/a/chain", "folder/../a/./absolute");
	make_link("/a/gone", "/nowhere");
	make_link("/a/x", "y");
	make_link("/a/y", "x");
	resolves_to("/a/absolute", "/etc/passwd");
	resolves_to("/a/up", "/etc/passwd");
	resolves_to("/a/folder/passwd", "/etc/passwd");
	resolves_to("/a/chain", "/etc/passwd");
	resolves_to("//a/..//../etc/./passwd", "/etc/passwd");
	resolves_to("/../..", "/");
	assert_int_equal(tree_resolve(make_root, "/a/gone", out), -ENOENT);
	assert_int_equal(tree_resolve(make_root, "/a/x", out), -ELOOP);
	assert_int_equal(tree_resolve(make_root, "/etc/passwd/more", out), -ENOTDIR);
	assert_int_equal(tree_resolve(make_root, "relative", out), -EINVAL);
}

static void refuses_what_is_no_file(void **state)
{
	struct buf b;

	(void)state;
	make_dir("/d");
	make_link("/null", "/dev/null");
	assert_int_equal(mkfifo(make_path("/pipe"), 0644), 0);
	buf_init(&b, 100);
	assert_int_equal(tree_read(make_root, "/d", &b), -EISDIR);
	assert_int_equal(tree_read(make_root, "/pipe", &b), -EINVAL);
	assert_int_equal(tree_read(make_root, "/null", &b), -ENOENT);	/* this machine's file is not the tree's */
	assert_int_equal(tree_read("", "/dev/null", &b), -EINVAL);
	assert_int_equal(tree_read("", "/proc/self/status", &b), 0);
	assert_true(b.full);
	buf_release(&b);
}

static void lists_sorted_and_bounded(void **state)
{
	struct pool pool = {0};
	bool cut = false;
	char **names;

	(void)state;
	make_file("/d/b", "");
	make_file("/d/.hidden", "");
	make_file("/d/a", "");
	make_link("/e", "/d");
	assert_int_equal(tree_list(make_root, "/e", &pool, 10, &names, &cut), 3);
	assert_string_equal(names[0], ".hidden");
	assert_string_equal(names[2], "b");
	assert_false(cut);
	assert_int_equal(tree_list(make_root, "/d", &pool, 2, &names, &cut), 2);
	assert_true(cut);
	assert_int_equal(tree_list(make_root, "/d/a", &pool, 2, &names, &cut), -ENOTDIR);
	assert_int_equal(tree_list(make_root, "/x", &pool, 2, &names, &cut), -ENOENT);
	pool_release(&pool);
}

static void bears_paths_without_end(void **state)
{
	char path[3 * TREE_PATH_MAX], out[TREE_PATH_MAX];
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 2 ? 'a' : '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(tree_resolve(make_root, path, out), -ENAMETOOLONG);
	assert_int_equal(tree_stat("", path, &st), -ENAMETOOLONG);
	make_link("/grow", "grow/grow/grow");
	assert_int_equal(tree_resolve(make_root, "/grow", out), -ELOOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(keeps_links_inside_the_root),
		T(refuses_what_is_no_file),
		T(lists_sorted_and_bounded),
		T(bears_paths_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
