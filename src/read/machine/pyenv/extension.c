/* SPDX-License-Identifier: Apache-2.0
 * Compiled libraries in the folders of an environment: which have GPU code, which are linked to torch, and do they fit this torch?
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/packaging.h"
#include "read/machine/pyenv/scan.h"
#include "read/machine/pyenv/torch.h"

/* A large environment has tens of thousands of folders and a few hundred RECORDs, which say which folders have no library. */
#define TOPS_MAX 20000

struct top_folder { const char *folder, *name; size_t len; bool native; };

struct pure_folders {
	struct top_folder *item;
	size_t n, cap;
};

static struct top_folder *top_folder_find(const struct pure_folders *p, const char *folder, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n; i++) {
		struct top_folder *t = &p->item[i];

		if (t->len == len && memcmp(t->name, name, len) == 0 && strcmp(t->folder, folder) == 0)
			return t;
	}
	return NULL;
}

static void top_folder_note(struct pure_folders *p, const char *folder, const char *name, size_t len, bool native)
{
	struct top_folder *t = top_folder_find(p, folder, name, len);

	if (t) {
		t->native |= native;
		return;
	}
	if (p->n >= TOPS_MAX)
		return;
	p->item = xgrow(p->item, p->n, &p->cap, sizeof(*p->item));
	p->item[p->n++] = (struct top_folder){folder, name, len, native};
}

/* The first part of every path in a RECORD; lines of one folder are adjacent. */
static void top_folders_of_record(struct pure_folders *p, const struct py_package *package, const char *text)
{
	bool native = package->watched || strstr(text, ".so");
	const char *last = "";
	size_t last_len = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "/,\n");

		if (line[len] != '/' || (len == last_len && memcmp(line, last, len) == 0))
			continue;
		top_folder_note(p, package->folder, line, len, native);
		last = line;
		last_len = len;
	}
}

static void pure_folders_read(struct pure_folders *p, struct env_work *w)
{
	*p = (struct pure_folders){0};
	for (size_t i = 0; i < w->e->n_packages; i++) {
		const struct record *r = env_record(w, i);

		if (r->text)
			top_folders_of_record(p, &w->e->package[i], r->text);
	}
}

static bool pure_folders_has(const struct pure_folders *p, const char *folder, const char *name)
{
	const struct top_folder *t = top_folder_find(p, folder, name, strlen(name));

	return t && !t->native;
}

static void pure_folders_release(struct pure_folders *p)
{
	free(p->item);
	*p = (struct pure_folders){0};
}

#define TORCH_LIBRARIES_MAX 32
#define SYMBOLS_MAX	100000
#define COMPANIONS_MAX	8

struct torch_symbols {
	struct elf_file library[TORCH_LIBRARIES_MAX];
	const char *name[TORCH_LIBRARIES_MAX];
	int n;
	bool whole;		/* all required libraries are there */
};

/* CUDA's libraries, which old releases have in torch/lib too: they define none of torch's names. */
static bool is_cuda_library(const char *name)
{
	static const char *const starts[] = {"libcu",	  "libnccl",	"libnvrtc",  "libnvJitLink", "libnvToolsExt",
					     "libnvidia", "libnvshmem", "libnvperf", "libnvblas",    NULL};

	for (const char *const *p = starts; *p; p++)
		if (str_starts(name, *p))
			return true;
	return false;
}

static void torch_symbols_open(struct torch_symbols *t, struct env_work *w)
{
	struct scan *s = w->s;
	char **names;
	const char *dir;
	int n, wanted = 0;

	*t = (struct torch_symbols){0};
	if (!w->e->torch.dir)
		return;
	dir = scan_join(s, w->e->torch.dir, "lib");
	n = tree_list(s->root, dir, s->pool, LIST_MAX, &names, &w->e->cut);
	for (int i = 0; i < n && t->n < TORCH_LIBRARIES_MAX; i++) {
		struct elf_file *f = &t->library[t->n];

		if (is_cuda_library(names[i]) || !str_starts(names[i], "lib") || !str_ends(names[i], ".so") ||
		    elf_open(f, s->pool, s->root, scan_join(s, dir, names[i]), 0) != 0)
			continue;
		if (f->broken || f->foreign || !f->symtab) {
			elf_close(f);
			continue;
		}
		t->name[t->n++] = names[i];
		wanted += strcmp(names[i], "libc10.so") == 0 || strcmp(names[i], "libtorch_cpu.so") == 0 ||
			  strcmp(names[i], "libtorch_python.so") == 0;
	}
	t->whole = wanted == 3 && t->n < TORCH_LIBRARIES_MAX;
}

static void torch_symbols_close(struct torch_symbols *t)
{
	for (int i = 0; i < t->n; i++)
		elf_close(&t->library[i]);
	t->n = 0;
}

/* A C++ name in one of torch's namespaces. */
static bool is_torch_name(const char *name)
{
	static const char *const spaces[] = {"3c10", "2at", "5torch", "6caffe2", NULL};

	if (!str_starts(name, "_Z"))
		return false;
	name += 2;
	if (name[0] == 'T' && name[1] && strchr("VISTC", name[1]))
		name += 2;
	if (*name++ != 'N')
		return false;
	name += *name == 'K';
	for (const char *const *n = spaces; *n; n++)
		if (str_starts(name, *n))
			return true;
	return false;
}

struct symbol_check {
	struct torch_symbols *t;
	struct elf_file companion[COMPANIONS_MAX];
	int n_companions;
	struct py_extension *e;
	struct pool *pool;
};

static bool symbol_see(void *arg, const char *name, bool weak)
{
	struct symbol_check *c = arg;
	int abi;

	if (weak || !is_torch_name(name))
		return true;
	abi = torch_abi_of_symbol(name);
	if (abi == 1 || (abi == 0 && c->e->cxx11_abi < 0))
		c->e->cxx11_abi = abi;
	for (int i = 0; i < c->t->n; i++)
		if (elf_exports(&c->t->library[i], name))
			return true;
	for (int i = 0; i < c->n_companions; i++)
		if (elf_exports(&c->companion[i], name))
			return true;
	if (c->e->n_unresolved++ == 0)
		c->e->unresolved = pool_strdup(c->pool, name);
	return true;
}

/* Libraries that never define a name of torch's. */
static bool is_known_library(const struct torch_symbols *t, const char *name)
{
	static const char *const starts[] = {
		"libc.so",  "libm.so", "libstdc++", "libgcc_s", "libpthread", "libdl.", "librt.",
		"ld-linux", "libgomp", "libpython", "libz.",	"libutil",    NULL,
	};

	for (int i = 0; i < t->n; i++)
		if (strcmp(t->name[i], name) == 0)
			return true;
	for (const char *const *p = starts; *p; p++)
		if (str_starts(name, *p))
			return true;
	return is_cuda_library(name);
}

/* Libraries of the same package that the extension is linked to may define what torch does not.
 * false: one of them is not found, so nothing can be said about names that are missing. */
static bool companions_open(struct symbol_check *c, struct env_work *w, const struct elf_file *f)
{
	const char *dir = scan_parent(w->s, c->e->path);

	for (unsigned i = 0; i < f->n_needed; i++) {
		if (is_known_library(c->t, f->needed[i]))
			continue;
		if (c->n_companions == COMPANIONS_MAX)
			return false;
		if (elf_open(&c->companion[c->n_companions], w->s->pool, w->s->root, scan_join(w->s, dir, f->needed[i]),
			     0))
			return false;
		c->n_companions++;
	}
	return true;
}

static void torch_symbols_check(struct torch_symbols *t, struct env_work *w, const struct elf_file *f,
				struct py_extension *e)
{
	struct symbol_check c = {.t = t, .e = e, .pool = w->s->pool};
	bool complete = companions_open(&c, w, f), read;

	e->n_unresolved = 0;
	read = elf_symbols(f, true, SYMBOLS_MAX, symbol_see, &c);
	/* built for another Python: never loaded, and Python's own part of torch would not fit either */
	if (!read || !t->whole || !complete || e->python) {
		e->n_unresolved = -1;
		e->unresolved = NULL;
	}
	for (int i = 0; i < c.n_companions; i++)
		elf_close(&c.companion[i]);
}

#define DEPTH_MAX	10
#define ENTRIES_MAX	2000000u
#define LIBRARIES_MAX	6000u
#define KEPT_MAX	400u

struct extension_search {
	struct env_work *w;
	struct torch_symbols symbols;
	struct pure_folders pure;
	size_t entries, libraries;
	size_t n, cap;
	struct py_extension *item;
	const char *package;		/* of everything in this folder; NULL: ask the RECORDs */
};

/* Folders with thousands of files but no library of this environment. */
static bool skip_folder(const char *name)
{
	static const char *const names[] = {"__pycache__", "include", ".git", "node_modules", NULL};

	for (const char *const *n = names; *n; n++)
		if (strcmp(name, *n) == 0)
			return true;
	return str_ends(name, ".dist-info") || str_ends(name, ".egg-info") || name[0] == '~';
}

/* "_C.cpython-310-x86_64-linux-gnu.so" under Python 3.12 is never imported. */
static const char *other_python(struct extension_search *x, const char *name)
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

/* Some packages ship one library per CUDA version ("libx_cuda117.so") and load the one for torch's: the others are unused. */
static bool for_other_cuda(struct extension_search *x, const char *name)
{
	const char *cuda = x->w->e->torch.cuda, *at = strstr(name, "_cuda"), *dot = cuda ? strchr(cuda, '.') : NULL;
	size_t n = at ? strspn(at + 5, "0123456789") : 0;
	char own[24];

	if (!dot || n < 2 || n > 4 || (at[5 + n] != '.' && at[5 + n] != '_'))
		return false;
	snprintf(own, sizeof(own), "%.*s%.*s", (int)(dot - cuda), cuda, (int)strspn(dot + 1, "0123456789"), dot + 1);
	return strlen(own) != n || memcmp(own, at + 5, n) != 0;
}

static void extension_name_owner(struct extension_search *x, struct py_extension *e, const char *folder)
{
	const char *top = e->path + strlen(folder) + 1;
	char name[PY_NAME_MAX];
	const struct py_package *p;
	int owner = x->package ? -1 : env_owner(x->w, e->path);

	if (owner < 0 && py_normalize(top, strcspn(top, "/."), name, sizeof(name))) {
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

static void extension_look_at(struct extension_search *x, const char *folder, const char *path, const char *name)
{
	struct py_extension e = {.path = path, .cxx11_abi = -1, .n_unresolved = -1};
	struct elf_file f;

	if (++x->libraries > LIBRARIES_MAX || x->n == KEPT_MAX) {
		x->w->e->cut = true;
		return;
	}
	if (for_other_cuda(x, name) || elf_open(&f, x->w->s->pool, x->w->s->root, path, 0) != 0)
		return;
	e.reason = f.foreign ? "built for another kind of machine" : f.broken;
	e.torch = needs_torch(&f);
	/* linker scripts are text and harmless; a truncated or empty library matters */
	if (!e.reason)
		e.fatbin = elf_has_section(&f, ".nv_fatbin") || elf_has_section(&f, "__nv_relfatbin");
	if (e.torch || e.fatbin || (e.reason && !f.foreign && strcmp(e.reason, "not an ELF file") != 0)) {
		e.path = pool_strdup(x->w->s->pool, path);
		e.python = other_python(x, name);
		extension_name_owner(x, &e, folder);
		if (e.torch && !e.reason)
			torch_symbols_check(&x->symbols, x->w, &f, &e);
		x->item = xgrow(x->item, x->n, &x->cap, sizeof(*x->item));
		x->item[x->n++] = e;
	}
	elf_close(&f);
}

static bool entry_is_folder(const char *full, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;	/* links to folders are not followed: they may form loops */
	return lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

/* `real` is where `path` lies for the kernel. */
static void extensions_walk(struct extension_search *x, const char *folder, const char *real, const char *path, int depth)
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
		if (d->d_type == DT_REG && !library_is_one(d->d_name, strlen(d->d_name)))
			continue;
		if (snprintf(deeper, sizeof(deeper), "%s/%s", real, d->d_name) >= (int)sizeof(deeper) ||
		    snprintf(shown, sizeof(shown), "%s/%s", path, d->d_name) >= (int)sizeof(shown))
			continue;
		if (library_is_one(d->d_name, strlen(d->d_name)) && !entry_is_folder(deeper, d))
			extension_look_at(x, folder, shown, d->d_name);
		else if (depth < DEPTH_MAX && entry_is_folder(deeper, d) && !skip_folder(d->d_name) &&
			 !(strcmp(path, folder) == 0 && pure_folders_has(&x->pure, folder, d->d_name)) &&
			 !(x->w->e->torch.dir && strcmp(shown, x->w->e->torch.dir) == 0))
			extensions_walk(x, folder, deeper, shown, depth + 1);
	}
	if (dir)
		closedir(dir);
}

static void extensions_walk_folder(struct extension_search *x, const char *path, int depth)
{
	char inside[TREE_PATH_MAX], real[TREE_PATH_MAX];

	if (tree_resolve(x->w->s->root, path, inside) == 0 &&
	    snprintf(real, sizeof(real), "%s%s", x->w->s->root, inside) < (int)sizeof(real))
		extensions_walk(x, path, real, path, depth);
}

/* Extensions that torch compiled on the fly for this Python: ~/.cache/torch_extensions/py311_cu121/NAME/NAME.so */
static void extensions_walk_cache(struct extension_search *x)
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
			extensions_walk_folder(x, scan_join(s, dir, names[i]), 0);
	x->package = NULL;
}

static int extension_by_path(const void *a, const void *b)
{
	return strcmp(((const struct py_extension *)a)->path, ((const struct py_extension *)b)->path);
}

void env_extensions(struct env_work *w)
{
	struct extension_search x = {.w = w};

	torch_symbols_open(&x.symbols, w);
	pure_folders_read(&x.pure, w);
	for (size_t i = 0; i < w->e->n_folders; i++) {
		enum py_folder_kind k = w->e->folder[i].kind;

		if (!w->e->folder[i].there || k == PY_FOLDER_CWD)
			continue;
		/* PYTHONPATH and .pth files may name a home folder: what is deep inside is not Python's */
		extensions_walk_folder(&x, w->e->folder[i].path,
				       k == PY_FOLDER_PYTHONPATH || k == PY_FOLDER_PTH ? DEPTH_MAX - 2 : 0);
	}
	extensions_walk_cache(&x);
	torch_symbols_close(&x.symbols);
	pure_folders_release(&x.pure);
	xsort(x.item, x.n, sizeof(*x.item), extension_by_path);
	w->e->extension = pool_alloc(w->s->pool, (x.n + 1) * sizeof(*x.item));
	if (x.n)
		memcpy(w->e->extension, x.item, x.n * sizeof(*x.item));
	w->e->n_extensions = x.n;
	free(x.item);
}
