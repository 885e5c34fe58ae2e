/* SPDX-License-Identifier: Apache-2.0
 * Where the scan for Python environments looks (see scan.h).
 */
#include "read/machine/pyenv/scan.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/tree.h"
#include "read/machine/variables.h"

const char *scan_variable(const struct scan *s, const char *name)
{
	return environ_get(s->in->environ, name);
}

char *scan_text(const struct scan *s, const char *path, size_t max, size_t *len)
{
	struct buf b;
	char *text = NULL;

	buf_init(&b, max);
	if (tree_read(s->root, path, &b) == 0)
		text = pool_copy(s->pool, b.data, b.len);
	if (len)
		*len = b.len;
	buf_release(&b);
	return text;
}

const char *scan_join(const struct scan *s, const char *dir, const char *name)
{
	return pool_printf(s->pool, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
}

const char *scan_parent(const struct scan *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash > path ? pool_copy(s->pool, path, (size_t)(slash - path)) : "/";
}

const char *scan_absolute(const struct scan *s, const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (path[0] == '/')
		return pool_copy(s->pool, path, n);
	if (str_starts(path, "~/") && scan_variable(s, "HOME"))
		return pool_printf(s->pool, "%s%.*s", scan_variable(s, "HOME"), (int)n - 1, path + 1);
	while (n > 2 && path[0] == '.' && path[1] == '/') {
		path += 2;
		n -= 2;
	}
	if (!s->in->cwd || n == 0)
		return NULL;
	return n == 1 && path[0] == '.' ? s->in->cwd : pool_printf(s->pool, "%s/%.*s", s->in->cwd, (int)n, path);
}

bool library_is_one(const char *name, size_t len)
{
	const char *so = memmem(name, len, ".so", 3), *end = name + len;

	while (so && so + 3 < end && so[3] != '.')
		so = memmem(so + 3, (size_t)(end - so) - 3, ".so", 3);
	return so && strspn(so + 3, ".0123456789") >= (size_t)(end - so) - 3;
}

const char *library_version(struct pool *pool, const char *path)
{
	const char *slash = strrchr(path, '/'), *so, *p;
	int dots = 0;

	so = strstr(slash ? slash : path, ".so.");
	if (!so || !isdigit((unsigned char)so[4]))
		return NULL;
	for (p = so + 4; *p; p++) {
		if (!isdigit((unsigned char)*p) && *p != '.')
			return NULL;
		dots += *p == '.';
	}
	return dots > 0 ? pool_strdup(pool, so + 4) : NULL;	/* "libcudart.so.12" names an interface, not a version */
}
