/* SPDX-License-Identifier: Apache-2.0
 * Which library crashed (see crash.h).
 */
#include "find/words/crash.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "read/text/said.h"

static void keep_name(struct text_crash *c, const char *s, size_t n, bool by_file)
{
	if (!n || (c->library[0] && (c->by_file || !by_file)))
		return;
	str_copy(c->library, n + 1 < sizeof(c->library) ? n + 1 : sizeof(c->library), s);
	c->by_file = by_file;
}

/* A path to a shared library up to `end`: the name of its file. */
static bool keep_file(struct text_crash *c, const char *path, const char *end)
{
	const char *name = path;

	for (const char *s = path; s < end; s++)
		if (*s == '/')
			name = s + 1;
	/* the C library and the interpreter are in every crash: the frames behind them say whose it is */
	if (!memmem(name, (size_t)(end - name), ".so", 3) || says_in(name, (size_t)(end - name), SAID_everywhere))
		return false;
	keep_name(c, name, (size_t)(end - name), true);
	return true;
}

/* "python[4711]: segfault at 0 ip 00007f… sp 00007f… error 4 in libtorch_cuda.so[7f…+1000]": it names the library itself. */
static void kernel_line(struct text_crash *c, const char *s)
{
	const char *in;

	if (says_at(s, SAID_segfault, &in))
		keep_file(c, in, in + strcspn(in, "[ "));
}

/* "[ 3] /opt/lib/libnccl.so.2(+0x5a3c0)[0x7f…]", "#1  0x00007f… in f () from /opt/lib/libnccl.so.2", "libfoo.so(+0x12)". */
static void native_frame(struct text_crash *c, const char *s)
{
	const char *from = s[0] == '#' && isdigit((unsigned char)s[1]) ? strstr(s, " from /") : NULL;
	const char *open = strchr(s, '(');

	if (from)
		keep_file(c, from + 6, from + 6 + strcspn(from + 6, " "));
	else if (s[0] == '[' && (s[1] == ' ' || isdigit((unsigned char)s[1])) && open && strchr(s, '/') &&
		 strchr(s, '/') < open)
		keep_file(c, strchr(s, '/'), open);
}

/* `File "/opt/lib/python3.11/site-packages/torchcodec/_core.py", line 3 in f`: the package, or the file of a program. */
static void python_frame(struct text_crash *c, const char *s)
{
	const char *path = s + strlen("File \""), *end = strchr(path, '"');

	c->python = false;
	if (end && says_in(path, (size_t)(end - path), SAID_packages)) {
		says_at(path, SAID_packages, &path);
		keep_name(c, path, strcspn(path, "/\\\"."), false);
	}
}

void crash_line(struct text_crash *c, const char *s)
{
	if (says(s, SAID_fatal)) {
		c->python = true;
		return;
	}
	if (c->python && str_starts(s, "File \"")) {
		python_frame(c, s);
		return;
	}
	kernel_line(c, s);
	native_frame(c, s);
}
