/* SPDX-License-Identifier: Apache-2.0
 * Compiled libraries in the folders of an environment: who holds GPU code, who is linked to torch.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "input/machine/pyenv/extension_pure.h"
#include "input/machine/pyenv/extension_torch.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "base/banned.h"

#define DEPTH_MAX	10
#define ENTRIES_MAX	2000000u
#define LIBRARIES_MAX	6000u
#define KEPT_MAX	400u

struct search {
	struct env_work *w;
	struct torch_symbols symbols;
	struct pure_folders pure;
	size_t entries, libraries;
	size_t n, cap;
	struct py_extension *item;
	const char *package;		/* of everything in this folder; NULL: ask the RECORDs */
};

static bool is_library(const char *name)
{
	const char *so = strstr(name, ".so");

	while (so && so[3] && so[3] != '.')
		so = strstr(so + 3, ".so");
	return so && strspn(so + 3, ".0123456789") == strlen(so + 3);
}

/* Folders that hold thousands of files and no library of this environment. */
static bool skip_folder(const char *name)
{
	static const char *const names[] = {"__pycache__", "include", ".git", "node_modules", NULL};

	for (const char *const *n = names; *n; n++)
		if (strcmp(name, *n) == 0)
			return true;
	return str_ends(name, ".dist-info") || str_ends(name, ".egg-info") || name[0] == '~';
}

/* "_C.cpython-310-x86_64-linux-gnu.so" under Python 3.12 is never imported. */
static const char *other_python(struct search *x, const char *name)
{
	const char *tag = strstr(name, ".cpython-"), *digits = tag ? tag + 9 : NULL;
	char own[24];
	size_t n;

	if (!digits || x->w->e->minor < 0)
		return NULL;
	n = strspn(digits, "0123456789");
	snprintf(own, sizeof(own), "%d%d", x->w->e->major, x->w->e->minor);
	if (n == 0 || n > 5 || (strlen(own) == n && memcmp(digits, own, n) == 0))
		return NULL;
	return pool_printf(x->w->s->pool, "cpython-%.*s", (int)n, digits);
}

/* Some packages bring one library per CUDA version ("libx_cuda117.so") and load that of torch's: the others are idle. */
static bool for_other_cuda(struct search *x, const char *name)
{
	const char *cuda = x->w->e->torch.cuda, *at = strstr(name, "_cuda"), *dot = cuda ? strchr(cuda, '.') : NULL;
	size_t n = at ? strspn(at + 5, "0123456789") : 0;
	char own[24];

	if (!dot || n < 2 || n > 4 || (at[5 + n] != '.' && at[5 + n] != '_'))
		return false;
	snprintf(own, sizeof(own), "%.*s%.*s", (int)(dot - cuda), cuda, (int)strspn(dot + 1, "0123456789"), dot + 1);
	return strlen(own) != n || memcmp(own, at + 5, n) != 0;
}

static void name_owner(struct search *x, struct py_extension *e, const char *folder)
{
	const char *top = e->path + strlen(folder) + 1;
	char name[PY_NAME_MAX];
	const struct py_package *p;
	int owner = x->package ? -1 : env_owner(x->w, e->path);

	if (owner < 0 && py_normalise(top, strcspn(top, "/."), name, sizeof(name))) {
		p = pyenv_package(x->w->e, name);
		e->package = x->package ? x->package : pool_strdup(x->w->s->pool, name);
		e->version = p && !x->package ? p->version : NULL;
	} else if (owner >= 0) {
		e->package = x->w->e->package[owner].name;
		e->version = x->w->e->package[owner].version;
	}
	e->vendor = (e->package && str_starts(e->package, "nvidia-")) || str_starts(top, "nvidia/");
}

static bool needs_torch(const struct elf_file *f)
{
	for (unsigned i = 0; i < f->n_needed; i++)
		if (str_starts(f->needed[i], "libtorch") || str_starts(f->needed[i], "libc10"))
			return true;
	return false;
}

static void look_at(struct search *x, const char *folder, const char *path, const char *name)
{
	struct py_extension e = {.path = path, .cxx11_abi = -1, .n_unresolved = -1};
	struct elf_file f;

	if (++x->libraries > LIBRARIES_MAX || x->n == KEPT_MAX) {
		x->w->e->cut = true;
		return;
	}
	if (for_other_cuda(x, name) || elf_open(&f, x->w->s->pool, x->w->s->root, path, 0) != 0)
		return;
	e.reason = f.foreign ? "made for another kind of machine" : f.broken;
	e.torch = needs_torch(&f);
	/* linker scripts are text and no matter; a library that is cut short or empty is one */
	if (!e.reason)
		e.fatbin = elf_has_section(&f, ".nv_fatbin") || elf_has_section(&f, "__nv_relfatbin");
	if (e.torch || e.fatbin || (e.reason && !f.foreign && strcmp(e.reason, "not an ELF file") != 0)) {
		e.path = pool_strdup(x->w->s->pool, path);
		e.python = other_python(x, name);
		name_owner(x, &e, folder);
		if (e.torch && !e.reason)
			torch_symbols_check(&x->symbols, x->w, &f, &e);
		x->item = xgrow(x->item, x->n, &x->cap, sizeof(*x->item));
		x->item[x->n++] = e;
	}
	elf_close(&f);
}

static bool is_folder(const char *full, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;	/* links to folders are not followed: they may lead round in circles */
	return lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

/* `real` is where `path` lies for the kernel. */
static void walk(struct search *x, const char *folder, const char *real, const char *path, int depth)
{
	char deeper[TREE_PATH_MAX], shown[TREE_PATH_MAX];
	DIR *dir = opendir(real);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (++x->entries > ENTRIES_MAX) {
			x->w->e->cut = true;
			break;
		}
		if (d->d_type == DT_REG && !is_library(d->d_name))
			continue;
		if (snprintf(deeper, sizeof(deeper), "%s/%s", real, d->d_name) >= (int)sizeof(deeper) ||
		    snprintf(shown, sizeof(shown), "%s/%s", path, d->d_name) >= (int)sizeof(shown))
			continue;
		if (is_library(d->d_name) && !is_folder(deeper, d))
			look_at(x, folder, shown, d->d_name);
		else if (depth < DEPTH_MAX && is_folder(deeper, d) && !skip_folder(d->d_name) &&
			 !(strcmp(path, folder) == 0 && pure_folders_has(&x->pure, folder, d->d_name)) &&
			 !(x->w->e->torch.dir && strcmp(shown, x->w->e->torch.dir) == 0))
			walk(x, folder, deeper, shown, depth + 1);
	}
	if (dir)
		closedir(dir);
}

static void walk_folder(struct search *x, const char *path, int depth)
{
	char inside[TREE_PATH_MAX], real[TREE_PATH_MAX];

	if (tree_resolve(x->w->s->root, path, inside) == 0 &&
	    snprintf(real, sizeof(real), "%s%s", x->w->s->root, inside) < (int)sizeof(real))
		walk(x, path, real, path, depth);
}

/* Extensions that torch compiled on the fly for this Python: ~/.cache/torch_extensions/py311_cu121/NAME/NAME.so */
static void walk_cache(struct search *x)
{
	struct scan *s = x->w->s;
	const char *dir = scan_variable(s, "TORCH_EXTENSIONS_DIR"), *home = scan_variable(s, "HOME"), *tag;
	char **names;
	int n;

	if (!dir && home)
		dir = scan_join(s, home, ".cache/torch_extensions");
	if (!dir || dir[0] != '/' || x->w->e->minor < 0)
		return;
	tag = pool_printf(s->pool, "py%d%d_", x->w->e->major, x->w->e->minor);
	n = tree_list(s->root, dir, s->pool, 64, &names, &x->w->e->cut);
	x->package = "torch-extensions-cache";
	for (int i = 0; i < n; i++)
		if (str_starts(names[i], tag))
			walk_folder(x, scan_join(s, dir, names[i]), 0);
	x->package = NULL;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct py_extension *)a)->path, ((const struct py_extension *)b)->path);
}

void env_extensions(struct env_work *w)
{
	struct search x = {.w = w};

	torch_symbols_open(&x.symbols, w);
	pure_folders_read(&x.pure, w);
	for (size_t i = 0; i < w->e->n_folders; i++) {
		enum py_folder_kind k = w->e->folder[i].kind;

		if (!w->e->folder[i].there || k == PY_FOLDER_CWD)
			continue;
		/* PYTHONPATH and .pth files may name a home folder: what lies deep in there is not Python's */
		walk_folder(&x, w->e->folder[i].path, k == PY_FOLDER_PYTHONPATH || k == PY_FOLDER_PTH ? DEPTH_MAX - 2 : 0);
	}
	walk_cache(&x);
	torch_symbols_close(&x.symbols);
	pure_folders_release(&x.pure);
	if (x.n)
		qsort(x.item, x.n, sizeof(*x.item), by_path);
	w->e->extension = pool_alloc(w->s->pool, (x.n + 1) * sizeof(*x.item));
	if (x.n)
		memcpy(w->e->extension, x.item, x.n * sizeof(*x.item));
	w->e->n_extensions = x.n;
	free(x.item);
}
