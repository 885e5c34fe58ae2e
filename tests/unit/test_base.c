/* SPDX-License-Identifier: Apache-2.0
 * The small helpers under everything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/children.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/opt.h"
#include "base/outfile.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/term.h"

static void err__keeps_code_message_and_hint(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(err_set(&e, -ENOENT, "no '%s'", "x"), -ENOENT);
	assert_int_equal(err_hint(&e, "try %d", 2), -ENOENT);
	assert_string_equal(e.msg, "no 'x'");
	assert_string_equal(e.hint, "try 2");
	assert_int_equal(err_set(NULL, -1, "nobody asks"), -1);
}

static void err__a_long_message_is_cut(void **state)
{
	struct err e = {0};
	char text[1000];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	err_set(&e, -1, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
}

static void assert_plain(const char *text, const char *plain)
{
	char copy[64];

	assert_true(str_copy(copy, sizeof(copy), text));
	str_make_plain(copy);
	assert_string_equal(copy, plain);
}

static void str__nothing_that_controls_a_terminal_is_plain(void **state)
{
	(void)state;
	assert_plain("a\tb\nc", "a\tb\nc");
	assert_plain("naïve … 日本 😀", "naïve … 日本 😀");
	assert_plain("\033]0;title\a\r\b\177", "?]0;title????");
	assert_plain("\x9b" "31m", "?31m");			/* a C1 byte alone */
	assert_plain("\xc2\x9b" "31m\xc2\x85", "?31m?");	/* and as UTF-8 */
	assert_plain("a\xe2\x80\xae" "b\xe2\x81\xa6\xe2\x80\xa8", "a?b??");	/* bidi overrides, line separator */
	assert_plain("\xc0\x8a\xe0\x80\x8a\xed\xa0\x80\xf8\xff", "??????????");	/* overlong, surrogate, no UTF-8 */
	assert_plain("cut \xe2\x80", "cut ??");
}

/* Text may reach the guard in any pieces. */
static void term__the_guard_passes_text_and_stops_commands(void **state)
{
	static const char all[] = "é \033[1m\xc2\x9b x\xe2\x82\xac\n";
	char got[64] = "";
	int pipes[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		term_guard();
		for (size_t i = 0; i + 1 < sizeof(all); i++)
			fputc(all[i], stderr);
		term_look(stderr, LOOK_BOLD);
		fputs("b\033", stderr);
		_exit(0);
	}
	close(pipes[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(read(pipes[0], got, sizeof(got) - 1) > 0);
	assert_string_equal(got, "é ?[1m? x€\n\033[1mb?");
	close(pipes[0]);
}

static void buf__grows_up_to_its_ceiling_and_says_so(void **state)
{
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, 1000);
	for (i = 0; i < 300; i++)
		buf_adds(&b, "abcd");
	assert_int_equal(b.len, 1000);
	assert_true(b.full);
	assert_int_equal(b.data[1000], 0);
	buf_release(&b);
}

static void buf__printf_appends(void **state)
{
	struct buf b;
	char *s;

	(void)state;
	buf_init(&b, 100);
	buf_printf(&b, "%d-%s", 7, "x");
	buf_printf(&b, "!");
	s = buf_take(&b);
	assert_string_equal(s, "7-x!");
	free(s);
}

static void str__words_are_found_in_either_case(void **state)
{
	static const char line[] = "A CUDA kernel Hung; CUDA hung again";

	(void)state;
	assert_ptr_equal(str_find_case(line, "cuda KERNEL"), line + 2);
	assert_ptr_equal(str_find_case(line, "hung;"), line + 14);
	assert_ptr_equal(str_find_case(line, "AGAIN"), line + 30);
	assert_ptr_equal(str_find_case(line, ""), line);
	assert_null(str_find_case(line, "againx"));
	assert_null(str_find_case("", "a"));
	/* the same as strcasestr(), in every part of a text of few letters */
	for (unsigned text = 0; text < 729; text++)
		for (unsigned word = 0; word < 27; word++) {
			char t[7] = "", w[4] = "";

			for (unsigned i = 0, n = text; i < 6; i++, n /= 3)
				t[i] = "aAb"[n % 3];
			for (unsigned i = 0, n = word; i < 3; i++, n /= 3)
				w[i] = "aBb"[n % 3];
			assert_ptr_equal(str_find_case(t, w), strcasestr(t, w));
		}
}

static void str__copy_always_ends(void **state)
{
	char to[4];

	(void)state;
	assert_true(str_copy(to, sizeof(to), "abc"));
	assert_string_equal(to, "abc");
	assert_false(str_copy(to, sizeof(to), "abcd"));
	assert_string_equal(to, "abc");
	assert_false(str_copy(to, 0, "x"));
}

static void str__distance_counts_edits(void **state)
{
	(void)state;
	assert_int_equal(str_distance("run", "run"), 0);
	assert_int_equal(str_distance("rnu", "run"), 1);
	assert_int_equal(str_distance("kitten", "sitting"), 3);
	assert_int_equal(str_distance("", "abc"), 3);
}

static void str__nearest_offers_only_what_is_near(void **state)
{
	static const char *const words[] = {"run", "explain", "doctor", NULL};

	(void)state;
	assert_string_equal(str_nearest("rnu", words), "run");
	assert_string_equal(str_nearest("explian", words), "explain");
	assert_string_equal(str_nearest("doc", words), "doctor");
	assert_null(str_nearest("xyzzy", words));
	assert_null(str_nearest("", words));
}

static void str__sizes_have_units(void **state)
{
	static const struct { const char *text; uint64_t bytes; } sizes[] = {
		{"24GiB", 24ull << 30}, {"24G", 24ull << 30}, {"1.5T", 3ull << 39}, {"512m", 512ull << 20}, {"7", 7}};
	static const char *const none[] = {"", "GiB", "24X", "24Gi B", "-3G", "0", "1e30", "nan"};
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_true(str_bytes(sizes[i].text, &n));
		assert_int_equal(n, sizes[i].bytes);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(str_bytes(none[i], &n));
}

static void str__u64_wants_a_whole_number(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(str_u64("18446744073709551615", &v));
	assert_true(v == UINT64_MAX);
	assert_false(str_u64("18446744073709551616", &v));
	assert_false(str_u64("12x", &v));
	assert_false(str_u64("-1", &v));
	assert_false(str_u64("", &v));
}

static char *scratch(void)
{
	char *dir = strdup("/tmp/cuwhy-test-XXXXXX");

	assert_non_null(dir);
	assert_non_null(mkdtemp(dir));
	return dir;
}

/* Programs that outlive a run load what is at a path. */
static void fs__a_path_is_trusted_if_nobody_else_can_replace_any_part_of_it(void **state)
{
	static const struct {
		mode_t mode;
		enum fs_trust want;
	} cases[] = {{0700, FS_NOBODY_ELSE},
		     {0755, FS_NOBODY_ELSE},
		     {0757, FS_OTHERS},
		     {01777, FS_NOT_NOW},
		     {01755, FS_NOBODY_ELSE}};
	char *dir = scratch(), *sub = fs_join(dir, "sub"), *file = fs_join(sub, "file"), *link = fs_join(dir, "link"),
	     *through = fs_join(link, "file");
	size_t i;

	(void)state;
	assert_int_equal(fs_trust("/"), FS_NOBODY_ELSE);
	assert_int_equal(fs_trust("/proc/self/cmdline"), FS_OTHERS);	/* through a link */
	assert_int_equal(fs_trust("/nonexistent/x"), FS_OTHERS);
	assert_int_equal(fs_trust("relative"), FS_OTHERS);
	assert_int_equal(fs_trust(""), FS_OTHERS);
	assert_int_equal(fs_mkdirs(sub, NULL), 0);
	assert_int_equal(fs_write(file, "x", 1, NULL), 0);
	assert_int_equal(symlink("sub", link), 0);
	assert_int_equal(fs_trust("/tmp"), FS_NOT_NOW);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(chmod(sub, cases[i].mode), 0);
		/* everything in /tmp is at best trusted for now */
		assert_int_equal(fs_trust(file), cases[i].want == FS_NOBODY_ELSE ? FS_NOT_NOW : cases[i].want);
		assert_int_equal(fs_trust(sub), fs_trust(file));
	}
	assert_int_equal(fs_trust(through), FS_OTHERS);
	assert_int_equal(chmod(file, 0666), 0);
	assert_int_equal(fs_trust(file), FS_OTHERS);
	fs_remove_dir(dir, 3);
	free(through);
	free(link);
	free(file);
	free(sub);
	free(dir);
}

static void fs__what_is_used_has_no_more_writers_than_the_program(void **state)
{
	char *dir = scratch(), *sub = fs_join(dir, "sub"), *file = fs_join(sub, "file"), *other = fs_join(dir, "other");

	(void)state;
	assert_int_equal(fs_mkdirs(sub, NULL), 0);
	assert_int_equal(fs_write(file, "x", 1, NULL), 0);
	assert_int_equal(fs_write(other, "x", 1, NULL), 0);
	assert_true(fs_no_more_writers(file, other));
	assert_true(fs_no_more_writers("/", file));
	assert_true(fs_no_more_writers(file, "/"));
	assert_int_equal(chmod(sub, 0777), 0);
	assert_false(fs_no_more_writers(file, other));
	assert_true(fs_no_more_writers(other, file));
	assert_true(fs_no_more_writers(file, file));	/* who can change the one can change the other */
	assert_int_equal(chmod(sub, 01777), 0);
	assert_true(fs_no_more_writers(file, other));
	assert_false(fs_no_more_writers("/nonexistent/x", other));
	assert_false(fs_no_more_writers("relative", other));
	if (geteuid() == 0) {
		assert_int_equal(chown(file, 54399, 54399), 0);
		assert_false(fs_no_more_writers(file, other));
		assert_int_equal(chown(other, 54399, 54399), 0);
		assert_true(fs_no_more_writers(file, other));
		assert_int_equal(chown(file, 0, 54399), 0);
		assert_int_equal(chmod(file, 0664), 0);
		assert_false(fs_no_more_writers(file, other));
	}
	fs_remove_dir(dir, 3);
	free(other);
	free(file);
	free(sub);
	free(dir);
}

static bool is_old_file(const char *name)
{
	return str_starts(name, "old");
}

static void fs__a_folder_is_emptied_of_our_own_files_or_not_at_all(void **state)
{
	char *dir = scratch(), *old = fs_join(dir, "old1"), *other = fs_join(dir, "other"),
	     *sub = fs_join(dir, "old-folder");

	(void)state;
	assert_int_equal(fs_write(old, "x", 1, NULL), 0);
	assert_int_equal(fs_write(other, "x", 1, NULL), 0);
	assert_false(fs_empty_if(dir, is_old_file));
	assert_true(fs_exists(old));
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_false(fs_empty_if(dir, is_old_file));
	assert_true(fs_exists(old));
	assert_int_equal(rmdir(sub), 0);
	assert_int_equal(symlink(dir, sub), 0);
	assert_false(fs_empty_if(sub, is_old_file));
	assert_int_equal(unlink(sub), 0);
	assert_true(fs_empty_if(dir, is_old_file));
	assert_true(fs_dir_empty(dir));
	assert_true(fs_empty_if(dir, is_old_file));
	rmdir(dir);
	free(sub);
	free(other);
	free(old);
	free(dir);
}

/* The name of the file that left the folder last. */
static void last_removed(int watch, char *name, size_t size)
{
	char bytes[4096] __attribute__((aligned(8)));
	ssize_t n = read(watch, bytes, sizeof(bytes));
	const struct inotify_event *e;

	for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(bytes + at);
		if (e->mask & IN_DELETE)
			str_copy(name, size, e->name);
	}
}

static bool is_any_file(const char *name)
{
	return name[0] != '\0';
}

/* Whoever is killed in the middle leaves a folder that a later run recognizes. */
static void fs__a_mark_is_removed_last(void **state)
{
	static const char *const names[] = {"s", ".mark", "core-1", "n", "z"};
	char *dir = scratch(), name[64];
	int watch = inotify_init1(IN_NONBLOCK);

	(void)state;
	if (watch < 0 || inotify_add_watch(watch, dir, IN_DELETE) < 0)
		skip();
	for (int way = 0; way < 2; way++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			char *path = fs_join(dir, names[i]);

			assert_int_equal(fs_write(path, "x", 1, NULL), 0);
			free(path);
		}
		if (way == 0)
			assert_true(fs_empty_if(dir, is_any_file));
		else
			fs_remove_dir(dir, 0);
		last_removed(watch, name, sizeof(name));
		assert_string_equal(name, ".mark");
	}
	assert_false(fs_exists(dir));
	close(watch);
	free(dir);
}

/* A device or a pipe is written to; renaming a file over it would replace it for everyone. */
static void fs__what_is_no_file_stays_what_it_is(void **state)
{
	char *dir = scratch(), *pipe = fs_join(dir, "pipe"), *link = fs_join(dir, "link"), *file = fs_join(dir, "file"),
	     text[8] = "";
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_true(fs_write(pipe, "hello", 5, NULL) != 0);	/* no reader: an error, and no waiting */
	fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(fs_write(pipe, "hello", 5, NULL), 0);
	assert_int_equal(lstat(pipe, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	close(fd);
	assert_int_equal(fs_write(file, "long text", 9, NULL), 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(fs_write(link, "hello", 5, NULL), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_size, 5);
	fs_remove_dir(dir, 3);
	free(pipe);
	free(link);
	free(file);
	free(dir);
}

/* What anybody may have put there: pipes, devices, folders, sockets' kin and huge files are refused, without waiting. */
static void fs__only_regular_files_within_the_limit_are_read(void **state)
{
	char *dir = scratch(), *pipe = fs_join(dir, "pipe"), *file = fs_join(dir, "file"), *link = fs_join(dir, "link");
	char head[3];
	uint64_t size = 0;
	struct err e = {0};
	struct buf b;
	int fd;

	(void)state;
	assert_int_equal(fs_open_foreign(file, 100, NULL), -ENOENT);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(symlink("pipe", link), 0);
	assert_int_equal(fs_write(file, "hello", 5, NULL), 0);
	assert_int_equal(fs_open_foreign(pipe, 100, NULL), -EINVAL);
	assert_int_equal(fs_open_foreign(link, 100, NULL), -EINVAL);
	assert_int_equal(fs_open_foreign("/dev/zero", UINT64_MAX, NULL), -EINVAL);
	assert_int_equal(fs_open_foreign(dir, 100, NULL), -EISDIR);
	assert_int_equal(fs_open_foreign(file, 4, NULL), -EFBIG);
	fd = fs_open_foreign(file, 5, &size);
	assert_true(fd >= 0 && size == 5);
	close(fd);
	assert_int_equal(fs_read_head(file, head, sizeof(head)), 3);
	assert_memory_equal(head, "hel", 3);
	assert_int_equal(fs_read_head(pipe, head, sizeof(head)), 0);
	assert_int_equal(truncate(file, (off_t)1 << 40), 0);
	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(file, &b, &e), -EFBIG);
	assert_int_equal(b.len, 0);	/* not even begun */
	assert_int_equal(fs_read(pipe, &b, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "not a regular file"));
	buf_release(&b);
	fs_remove_dir(dir, 0);
	free(link);
	free(pipe);
	free(file);
	free(dir);
}

static void fs__files_are_private_and_whole(void **state)
{
	char *dir = scratch(), *sub = fs_join(dir, "a/b"), *path = fs_join(sub, "f");
	struct stat st;
	struct buf b;

	(void)state;
	umask(0);
	assert_int_equal(fs_mkdirs(sub, NULL), 0);
	assert_int_equal(fs_mkdirs(sub, NULL), 0);
	assert_int_equal(stat(sub, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(fs_write(path, "hello", 5, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	buf_init(&b, 100);
	assert_int_equal(fs_read(path, &b, NULL), 0);
	assert_string_equal(b.data, "hello");
	buf_release(&b);
	assert_false(fs_dir_empty(sub));
	fs_remove_dir(dir, 3);
	assert_false(fs_exists(dir));
	free(path);
	free(sub);
	free(dir);
}

static void fs__zeros_become_holes_and_come_back(void **state)
{
	enum { LEN = 8 << 20 };
	char *dir = scratch(), *path = fs_join(dir, "f"), *data = calloc(1, LEN);
	struct stat st;
	struct buf b;

	(void)state;
	data[0] = 1;
	data[5 << 20] = 2;
	data[LEN - 1] = 3;
	assert_int_equal(fs_write(path, data, LEN, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, LEN);
	assert_true(st.st_blocks * 512 < 1 << 20);
	buf_init(&b, LEN);
	assert_int_equal(fs_read(path, &b, NULL), 0);
	assert_memory_equal(b.data, data, LEN);
	buf_release(&b);
	fs_remove_dir(dir, 0);
	free(data);
	free(path);
	free(dir);
}

static void fs__a_folder_that_cannot_be_made_is_named(void **state)
{
	struct err e = {0};

	(void)state;
	assert_true(fs_mkdirs("/proc/nothing/here", &e) < 0);
	assert_non_null(strstr(e.msg, "/proc/nothing"));
	assert_true(fs_mkdirs("/dev/null/here", &e) < 0);
}

static void fs__remove_does_not_follow_links(void **state)
{
	char *dir = scratch(), *other = scratch(), *file = fs_join(other, "f");
	char *link = fs_join(dir, "link");

	(void)state;
	assert_int_equal(fs_write(file, "x", 1, NULL), 0);
	assert_int_equal(symlink(other, link), 0);
	fs_remove_dir(dir, 3);
	assert_false(fs_exists(dir));
	assert_true(fs_exists(file));
	fs_remove_dir(other, 0);
	free(link);
	free(file);
	free(other);
	free(dir);
}

/* In pieces or at once: a link stays a link, and nothing of the old contents is left. */
static void fs__a_link_is_written_through(void **state)
{
	char *dir = scratch(), *file = fs_join(dir, "f"), *link = fs_join(dir, "link");
	struct outfile f;
	struct buf b;

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		assert_int_equal(fs_write(file, "long before", 11, NULL), 0);
		assert_true(whole || symlink(file, link) == 0);
		if (whole) {
			assert_int_equal(fs_write(link, "now", 3, NULL), 0);
		} else {
			assert_int_equal(outfile_open(&f, link, NULL), 0);
			fputs("now", f.out);
			assert_int_equal(outfile_close(&f, true, NULL, NULL), 0);
		}
		assert_true(fs_is_special(link));
		buf_init(&b, 100);
		assert_int_equal(fs_read(file, &b, NULL), 0);
		assert_int_equal(b.len, 3);
		buf_release(&b);
	}
	fs_remove_dir(dir, 0);
	free(link);
	free(file);
	free(dir);
}

static void proc__a_pidfd_tells_of_the_end(void **state)
{
	int fds[2], fd;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char byte;

		close(fds[1]);
		_exit(read(fds[0], &byte, 1) != 0);
	}
	fd = proc_pidfd(pid);
	assert_true(fd >= 0);
	assert_false(proc_pidfd_ended(fd));
	assert_true(strchr("RS", proc_state(pid)) && proc_state(pid));
	close(fds[0]);
	close(fds[1]);
	waitpid(pid, NULL, 0);
	assert_true(proc_pidfd_ended(fd));
	close(fd);
	assert_int_equal(proc_pidfd(pid), -ESRCH);
	assert_int_equal(proc_state(pid), 0);
}

static void proc__a_process_that_has_its_pid_now_began_later(void **state)
{
	uint64_t before = proc_mono_ns() - 100000000u;	/* /proc counts in hundredths of a second */
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(proc_began_after(pid, before));
	assert_false(proc_began_after(pid, proc_mono_ns()));
	assert_true(child_signal(pid, SIGKILL));
	waitpid(pid, NULL, 0);
	assert_false(proc_began_after(pid, before));	/* gone: nothing is known */
}

static void children__only_a_child_that_was_not_reaped_gets_a_signal(void **state)
{
	int status, fd;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	fd = proc_pidfd(pid);
	assert_false(child_signal(0, SIGWINCH));
	assert_false(child_signal(-1, SIGWINCH));
	assert_false(child_signal(-pid, SIGWINCH));
	assert_false(child_signal(getpid(), SIGWINCH));
	assert_false(child_signal(getppid(), SIGWINCH));
	assert_true(child_signal(pid, SIGUSR1));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	assert_false(child_signal(pid, SIGWINCH));
	assert_false(pidfd_signal(fd, SIGWINCH));
	assert_false(pidfd_signal(-1, SIGWINCH));
	close(fd);
}

static void children__an_ignored_sigchld_hides_no_end(void **state)
{
	struct sigaction old, now;
	int status = 0;
	pid_t pid;

	(void)state;
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, &old);
	children_begin();
	pid = fork();
	if (pid == 0)
		_exit(3);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 3);
	children_inherit();
	sigaction(SIGCHLD, &old, &now);
	assert_true(now.sa_handler == SIG_IGN);
}

static void term__color_is_the_users_choice(void **state)
{
	enum color c;

	(void)state;
	assert_true(term_parse_color("always", &c));
	assert_true(term_color(-1, c));
	assert_true(term_parse_color("never", &c));
	assert_false(term_color(-1, c));
	assert_false(term_parse_color("maybe", &c));
	assert_false(term_color(-1, COLOR_AUTO));
}

static bool flag;
static const char *value;
static const struct opt opts[] = {
	{"flag", 'f', NULL, "a flag", &flag, NULL},
	{"value", 0, "X", "a value", NULL, &value},
	{0},
};
static const struct opt repeated[] = {
	{"flag", 'f', NULL, "a flag", &flag, NULL},
	{"value", 0, "X ...", "a value", NULL, &value},
	{0},
};
static const struct opt_usage use = {.command = "test", .synopsis = "...", .summary = "A test."};

static int parse(char **argv, struct err *e)
{
	int argc = 0;

	flag = false;
	value = NULL;
	while (argv[argc])
		argc++;
	return opt_parse(&use, opts, argc, argv, e);
}

static void opt__the_first_operand_ends_the_options(void **state)
{
	char *argv[] = {"test", "--value=3", "prog", "-f", NULL};
	char *dashes[] = {"test", "-f", "--", "--value", NULL};
	struct err e = {0};

	(void)state;
	assert_int_equal(parse(argv, &e), 2);
	assert_string_equal(value, "3");
	assert_false(flag);
	assert_int_equal(parse(dashes, &e), 3);
	assert_true(flag);
	assert_null(value);
}

static void opt__of_a_recording_may_follow_it_and_be_repeated(void **state)
{
	static const struct opt_usage recordings = {.command = "test", .synopsis = "RECORDING", .summary = "A test."};
	char *argv[] = {"test", "--value=3", "out", "-f", "--value", "4", NULL};
	struct err e = {0};

	(void)state;
	value = NULL;
	assert_int_equal(opt_parse(&recordings, repeated, 6, argv, &e), 5);
	assert_string_equal(argv[5], "out");
	assert_string_equal(value, "3;4");
	assert_true(flag);
	free((char *)value);	/* joined: a command keeps it until it ends */
	value = NULL;
}

static void opt__mistakes_are_told_with_the_nearest_option(void **state)
{
	char *unknown[] = {"test", "--vlaue", "3", NULL}, *bare[] = {"test", "--value", NULL};
	char *letter[] = {"test", "-x", NULL}, *extra[] = {"test", "--flag=3", NULL};
	struct err e = {0};

	(void)state;
	assert_true(parse(unknown, &e) < 0);
	assert_non_null(strstr(e.hint, "--value"));
	assert_true(parse(bare, &e) < 0);
	assert_string_equal(e.msg, "option '--value' needs an argument");
	assert_true(parse(letter, &e) < 0);
	assert_string_equal(e.msg, "unknown option '-x'");
	assert_true(parse(extra, &e) < 0);
	assert_string_equal(e.msg, "option '--flag' takes no argument");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err__keeps_code_message_and_hint),
		cmocka_unit_test(err__a_long_message_is_cut),
		cmocka_unit_test(buf__grows_up_to_its_ceiling_and_says_so),
		cmocka_unit_test(buf__printf_appends),
		cmocka_unit_test(fs__a_link_is_written_through),
		cmocka_unit_test(str__words_are_found_in_either_case),
		cmocka_unit_test(str__copy_always_ends),
		cmocka_unit_test(str__distance_counts_edits),
		cmocka_unit_test(str__nearest_offers_only_what_is_near),
		cmocka_unit_test(str__sizes_have_units),
		cmocka_unit_test(str__u64_wants_a_whole_number),
		cmocka_unit_test(fs__only_regular_files_within_the_limit_are_read),
		cmocka_unit_test(fs__files_are_private_and_whole),
		cmocka_unit_test(fs__a_path_is_trusted_if_nobody_else_can_replace_any_part_of_it),
		cmocka_unit_test(fs__a_mark_is_removed_last),
		cmocka_unit_test(fs__what_is_used_has_no_more_writers_than_the_program),
		cmocka_unit_test(fs__a_folder_is_emptied_of_our_own_files_or_not_at_all),
		cmocka_unit_test(fs__what_is_no_file_stays_what_it_is),
		cmocka_unit_test(fs__zeros_become_holes_and_come_back),
		cmocka_unit_test(fs__a_folder_that_cannot_be_made_is_named),
		cmocka_unit_test(fs__remove_does_not_follow_links),
		cmocka_unit_test(proc__a_pidfd_tells_of_the_end),
		cmocka_unit_test(proc__a_process_that_has_its_pid_now_began_later),
		cmocka_unit_test(children__only_a_child_that_was_not_reaped_gets_a_signal),
		cmocka_unit_test(children__an_ignored_sigchld_hides_no_end),
		cmocka_unit_test(str__nothing_that_controls_a_terminal_is_plain),
		cmocka_unit_test(term__the_guard_passes_text_and_stops_commands),
		cmocka_unit_test(term__color_is_the_users_choice),
		cmocka_unit_test(opt__the_first_operand_ends_the_options),
		cmocka_unit_test(opt__of_a_recording_may_follow_it_and_be_repeated),
		cmocka_unit_test(opt__mistakes_are_told_with_the_nearest_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
