/* SPDX-License-Identifier: Apache-2.0
 * CUDA toolkits and compilers for the host, from their files: no program is run to get its version. And signs that CUDA
 * extensions are built on this machine.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "read/machine/look.h"

#define PATH_ENTRIES	64

/* {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, ...} */
static const char *toolkit_version_in_json(const struct looking *l, const char *file)
{
	const char *text = look_file(l, file, 1 << 16, NULL);
	json_t *o = text ? json_loads(text, 0, NULL) : NULL;
	const char *v = json_string_value(json_object_get(json_object_get(o, "cuda"), "version"));
	const char *version = v ? look_version(l, v) : NULL;

	json_decref(o);
	return version;
}

/* #define CUDA_VERSION 12040 */
static const char *toolkit_version_in_header(const struct looking *l, const char *file)
{
	const char *text = look_file(l, file, 1 << 20, NULL);
	const char *line = text ? strstr(text, "#define CUDA_VERSION ") : NULL;
	long n = line ? strtol(line + strlen("#define CUDA_VERSION "), NULL, 10) : 0;

	return n >= 1000 && n < 1000000 ? pool_printf(l->pool, "%ld.%ld", n / 1000, n % 1000 / 10) : NULL;
}

static const char *toolkit_version(const struct looking *l, const char *dir, const char **source)
{
	const char *slash = strrchr(dir, '/'), *version;

	*source = pool_printf(l->pool, "%s/version.json", dir);
	if ((version = toolkit_version_in_json(l, *source)))
		return version;
	*source = pool_printf(l->pool, "%s/version.txt", dir);
	if ((version = look_version(l, look_line(l, *source))))
		return version;
	*source = pool_printf(l->pool, "%s/include/cuda.h", dir);
	if ((version = toolkit_version_in_header(l, *source)))
		return version;
	*source = "its name";
	version = slash && str_starts(slash, "/cuda-") ? look_version(l, slash + 6) : NULL;
	if (!version)
		*source = NULL;
	return version;
}

/* An entry of the list for a folder; the folder may have several names. NULL: there is no toolkit. */
static const struct host_toolkit *toolkit_at(const struct looking *l, const char *dir)
{
	char real[TREE_PATH_MAX];
	struct host_toolkit *t;
	const char *version, *source;
	bool nvcc;

	if (dir[0] != '/' || strlen(dir) > 1024 || tree_resolve(l->root, dir, real) != 0)
		return NULL;
	for (ptrdiff_t i = 0; i < l->h->n_toolkit; i++)
		if (strcmp(l->h->toolkit[i].path, real) == 0)
			return &l->h->toolkit[i];
	version = toolkit_version(l, real, &source);
	nvcc = tree_is_file(l->root, pool_printf(l->pool, "%s/bin/nvcc", real));
	if (!nvcc && !version)
		return NULL;
	t = host_add(l->h, l->pool, HOST_LIST_toolkit);
	if (!t)
		return NULL;
	t->path = look_clean(l, real, strlen(real));
	t->version = version;
	t->source = source;
	t->nvcc = nvcc;
	t->is_default = 0;
	return t;
}

/* The first file of this name in PATH. */
static const char *program_in_path(const struct looking *l, const char *name)
{
	const char *list = look_env(l, "PATH");
	char *file;
	size_t n;

	for (int i = 0; list && *list && i < PATH_ENTRIES; i++) {
		n = strcspn(list, ":");
		if (n && n < 1024 && *list == '/') {
			file = pool_printf(l->pool, "%.*s/%s", (int)n, list, name);
			if (tree_is_file(l->root, file))
				return look_clean(l, file, strlen(file));
		}
		list += n + (list[n] != '\0');
	}
	return NULL;
}

static const char *folder_above(const struct looking *l, const char *path, int up)
{
	char *copy = pool_strdup(l->pool, path), *slash;

	while (up-- > 0 && (slash = strrchr(copy, '/')))
		*slash = '\0';
	return copy;
}

static void toolkit_take_nvcc(const struct looking *l)
{
	const char *nvcc = program_in_path(l, "nvcc");
	const struct host_toolkit *t;
	char real[TREE_PATH_MAX];

	if (!nvcc)
		return;
	l->h->tools.nvcc = nvcc;
	if (tree_resolve(l->root, nvcc, real) != 0)
		return;
	/* Debian's own package has its header in /usr/include, where all headers are */
	t = toolkit_at(l, folder_above(l, real, 2));
	l->h->tools.nvcc_version = t ? t->version : NULL;
}

static void take_toolkits(const struct looking *l)
{
	static const char *const others[] = {"/opt/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"};
	const char *home = look_env(l, "CUDA_HOME");
	const struct host_toolkit *t;
	char **names, real[TREE_PATH_MAX];
	int i, n = look_list(l, "/usr/local", 512, &names);

	if (n >= 0)
		host_looked(l->h, HOST_LIST_toolkit);
	for (i = 0; i < n; i++)
		if (strcmp(names[i], "cuda") == 0 || str_starts(names[i], "cuda-"))
			toolkit_at(l, pool_printf(l->pool, "/usr/local/%s", names[i]));
	for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
		toolkit_at(l, others[k]);
	toolkit_take_nvcc(l);
	home = home ? home : look_env(l, "CUDA_PATH");
	if (home) {
		l->h->tools.cuda_home = look_clean(l, home, strlen(home));
		t = toolkit_at(l, home);
		l->h->tools.cuda_home_version = t ? t->version : NULL;
	}
	if (tree_resolve(l->root, "/usr/local/cuda", real) == 0)
		for (i = 0; i < l->h->n_toolkit; i++)
			l->h->toolkit[i].is_default = strcmp(l->h->toolkit[i].path, real) == 0;
}

/* "g++-12", "x86_64-linux-gnu-g++-12": the number after the last dash. */
static const char *compiler_version_in_name(const struct looking *l, const char *path)
{
	const char *dash = strrchr(path, '-');

	if (!dash || !isdigit((unsigned char)dash[1]) || dash[1 + strspn(dash + 1, "0123456789.")])
		return NULL;
	return look_clean(l, dash + 1, strlen(dash + 1));
}

/* Where the distribution has one version only, the folder of its parts has its number. */
static const char *compiler_version_by_folder(const struct looking *l, const char *part)
{
	static const char *const dirs[] = {"/usr/lib/gcc", "/usr/libexec/gcc"};
	const char *found = NULL;
	char **triples, **versions;
	int i, k, n, m;

	for (size_t d = 0; d < 2; d++) {
		n = look_list(l, dirs[d], 16, &triples);
		for (i = 0; i < n; i++) {
			m = look_list(l, pool_printf(l->pool, "%s/%s", dirs[d], triples[i]), 32, &versions);
			for (k = 0; k < m; k++) {
				if (!isdigit((unsigned char)versions[k][0]) ||
				    !look_exists(l, pool_printf(l->pool, "%s/%s/%s/%s", dirs[d], triples[i],
								versions[k], part)))
					continue;
				if (found && strcmp(found, versions[k]) != 0)
					return NULL;	/* several: it is unclear which one is meant */
				found = versions[k];
			}
		}
	}
	return found;
}

static const char *compiler_version(const struct looking *l, const char *path, const char *part)
{
	char real[TREE_PATH_MAX];
	const char *version;

	if (!path || tree_resolve(l->root, path, real) != 0)
		return NULL;
	version = compiler_version_in_name(l, real);
	return version || !part ? version : compiler_version_by_folder(l, part);
}

static void add_compiler(const struct looking *l, const char *dir, const char *file)
{
	static const char *const kinds[] = {"gcc", "g++", "clang", "clang++"};
	struct host_compiler *c;
	size_t n;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		n = strlen(kinds[i]);
		if (strncmp(file, kinds[i], n) != 0 || file[n] != '-' || !isdigit((unsigned char)file[n + 1]) ||
		    file[n + 1 + strspn(file + n + 1, "0123456789.")])
			continue;
		c = host_add(l->h, l->pool, HOST_LIST_compiler);
		if (!c)
			return;
		c->name = kinds[i];
		c->path = pool_printf(l->pool, "%s/%s", dir, file);
		c->version = compiler_version_in_name(l, file);
	}
}

static void take_compilers(const struct looking *l)
{
	char **names;
	int i, n = look_list(l, "/usr/bin", 16384, &names);

	if (n >= 0)
		host_looked(l->h, HOST_LIST_compiler);
	for (i = 0; i < n; i++)
		add_compiler(l, "/usr/bin", names[i]);
	l->h->tools.gcc = compiler_version(l, program_in_path(l, "gcc"), "cc1");
	l->h->tools.gxx_path = program_in_path(l, "g++");
	l->h->tools.gxx = compiler_version(l, l->h->tools.gxx_path, "cc1plus");
}

/* Where torch.utils.cpp_extension keeps what it built, if there is anything. */
static void build_take_cache(const struct looking *l)
{
	const char *dir = look_env(l, "TORCH_EXTENSIONS_DIR"), *cache = look_env(l, "XDG_CACHE_HOME"),
		   *home = look_env(l, "HOME");
	char **names;

	if (!dir && cache)
		dir = pool_printf(l->pool, "%s/torch_extensions", cache);
	else if (!dir && home)
		dir = pool_printf(l->pool, "%s/.cache/torch_extensions", home);
	if (dir && dir[0] == '/' && look_list(l, dir, 64, &names) > 0)
		l->h->tools.build_cache = look_clean(l, dir, strlen(dir));
}

static void build_take_setup(const struct looking *l)
{
	const char *file = l->cwd ? pool_printf(l->pool, "%s/setup.py", l->cwd) : NULL;
	const char *text = file ? look_file(l, file, 1 << 20, NULL) : NULL;

	if (text && strstr(text, "CUDAExtension"))
		l->h->tools.build_setup = look_clean(l, file, strlen(file));
}

void host_look_tools(const struct looking *l)
{
	take_toolkits(l);
	take_compilers(l);
	build_take_cache(l);
	build_take_setup(l);
}
