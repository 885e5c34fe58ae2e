/* SPDX-License-Identifier: Apache-2.0
 * Files of the user-space driver (libcuda, NVML, the PTX compiler) where systems, hooks and toolkits put them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/tree.h"
#include "input/machine/host_priv.h"
#include "base/banned.h"

#define PATH_ENTRIES	64
#define CONF_FILES	64

static const char *const names[] = {"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"};

/* ELF: 64 or 32 bits; 0: something else, an empty file for one; -1: not readable. */
static int64_t bits_of(const struct looking *l, const char *path)
{
	int fd = tree_open(l->root, path);
	char head[5] = "";
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n < 0)
		return -1;
	if (n < (ssize_t)sizeof(head) || memcmp(head, "\177ELF", 4) != 0)
		return 0;
	return head[4] == 2 ? 64 : head[4] == 1 ? 32 : 0;
}

static const char *kind_of(const char *path, const char *real)
{
	if (strstr(path, "/stubs") || (real && strstr(real, "/stubs")))
		return "stub";
	if (strstr(path, "/compat") || (real && strstr(real, "/compat")))
		return "compat";
	return strstr(path, "/usr/lib/wsl/") || (real && strstr(real, "/usr/lib/wsl/")) ? "wsl" : "system";
}

/* "libcuda.so.580.65.06"; the "1.1" of the one in WSL is no driver version. */
static const char *version_of(const struct looking *l, const char *real)
{
	const char *so = real ? strstr(real, ".so.") : NULL;
	const char *version = so ? look_version(l, so + 4) : NULL;

	return version && strtol(version, NULL, 10) > 9 ? version : NULL;
}

static bool is_known(const struct looking *l, const char *name, const char *real, const char *path)
{
	for (ptrdiff_t i = 0; i < l->h->n_library; i++) {
		const struct host_library *b = &l->h->library[i];

		if (strcmp(b->name, name) != 0)
			continue;
		if (strcmp(b->path, path) == 0 || (real && b->real && strcmp(b->real, real) == 0))
			return true;
	}
	return false;
}

static void add_library(const struct looking *l, const char *dir, const char *name, bool in_path)
{
	char inside[TREE_PATH_MAX], *path = pool_printf(l->pool, "%s/%s", dir, name);
	struct host_library *b;
	const char *real = NULL, *from;
	struct stat st;

	if (tree_resolve(l->root, path, inside) == 0)
		real = look_clean(l, inside, strlen(inside));
	else if (!look_link_name(l, dir, name))
		return;		/* not even a broken link */
	if (is_known(l, name, real, path))
		return;
	b = host_add(l->h, l->pool, HOST_LIST_library);
	if (!b)
		return;
	b->name = name;
	b->path = look_clean(l, path, strlen(path));
	b->real = real;
	b->kind = kind_of(path, real);
	b->version = version_of(l, real);
	b->in_path = in_path;
	from = look_mounted(l, real ? real : path);
	b->mounted = l->mounts ? from != NULL : -1;
	if (!b->version && from)	/* mounted under the short name: outside it has the long one */
		b->version = version_of(l, from);
	if (real && tree_stat(l->root, path, &st) == 0) {
		b->bytes = st.st_size;
		b->bits = bits_of(l, path);
	}
}

static void add_dir(const struct looking *l, const char *dir, bool in_path)
{
	if (dir[0] != '/' || strlen(dir) > 1024 || !tree_is_dir(l->root, dir))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		add_library(l, dir, names[i], in_path);
}

static void add_path(const struct looking *l, const char *list)
{
	size_t n;

	for (int i = 0; list && *list && i < PATH_ENTRIES; i++) {
		n = strcspn(list, ":;");
		if (n && n < 1024)
			add_dir(l, pool_copy(l->pool, list, n), true);
		list += n + (list[n] != '\0');
	}
}

/* Folders that the loader was told of; how it joins them is another part's business. */
static void add_conf(const struct looking *l)
{
	const char *text;
	char **files;
	size_t len;
	int i, n = look_list(l, "/etc/ld.so.conf.d", CONF_FILES, &files);

	for (i = 0; i < n; i++) {
		text = look_file(l, pool_printf(l->pool, "/etc/ld.so.conf.d/%s", files[i]), 4096, NULL);
		for (; text && *text; text += len, text += *text == '\n') {
			len = strcspn(text, "\n");
			if (*text == '/')
				add_dir(l, look_clean(l, text, len), false);
		}
	}
}

static void add_toolkits(const struct looking *l)
{
	static const char *const below[] = {"compat", "compat/lib", "compat/lib.real", "lib64/stubs"};
	char **dirs;
	int i, n = look_list(l, "/usr/local", 512, &dirs);

	for (i = 0; i < n; i++) {
		if (!str_starts(dirs[i], "cuda"))
			continue;
		for (size_t k = 0; k < sizeof(below) / sizeof(below[0]); k++)
			add_dir(l, pool_printf(l->pool, "/usr/local/%s/%s", dirs[i], below[k]), false);
	}
}

void host_look_libraries(const struct looking *l)
{
	static const char *const dirs[] = {
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib/x86_64-linux-gnu", "/lib64",
		"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/run/opengl-driver/lib",
		"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia", "/usr/lib/i386-linux-gnu",
	};

	if (look_exists(l, "/usr") || look_exists(l, "/lib"))
		host_looked(l->h, HOST_LIST_library);
	add_path(l, look_env(l, "LD_LIBRARY_PATH"));
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		add_dir(l, dirs[i], false);
	add_conf(l);
	add_toolkits(l);
}
