/* SPDX-License-Identifier: Apache-2.0
 * The torch that `import torch` finds: how it was built, from the text of torch/version.py, and what its __init__.py opens by
 * itself (see torch.h). Neither is run.
 */
#include "read/machine/pyenv/torch.h"

#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/scan.h"

#define VERSION_MAX (1u << 16)
#define PYTHON_VALUE_MAX 200

static enum py_value python_value(struct pool *pool, const char *p, const char **value)
{
	const char *end;
	char *copy;

	p += strspn(p, " \t");
	if (str_starts(p, "None"))
		return PY_VALUE_NONE;
	if (*p != '"' && *p != '\'')
		return PY_VALUE_OTHER;
	end = strpbrk(p + 1, *p == '"' ? "\"\n" : "'\n");
	if (!end || *end == '\n' || end - p > PYTHON_VALUE_MAX || end == p + 1)
		return PY_VALUE_OTHER;
	copy = pool_copy(pool, p + 1, (size_t)(end - p) - 1);
	str_make_utf8(copy);
	*value = copy;
	return PY_VALUE_TEXT;
}

enum py_value py_assignment(struct pool *pool, const char *text, const char *name, const char **value)
{
	enum py_value kind = PY_VALUE_ABSENT;
	size_t n = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *p = line + n;
		size_t len = strcspn(line, "\n");

		if (len <= n || strncmp(line, name, n) != 0)
			continue;
		p += strspn(p, " \t");
		if (*p == ':')		/* a type is between name and value */
			p += strcspn(p, "=\n");
		if (*p == '=' && p[1] != '=')
			kind = python_value(pool, p + 1, value);
	}
	return kind;
}

/* The next quoted string before `end`, comments skipped; *at is moved past it. NULL: no more. */
static const char *python_next_quoted(struct pool *pool, const char **at, const char *end)
{
	const char *p = *at, *close;

	while (p < end && *p != '"' && *p != '\'') {
		if (*p == '#')
			p += strcspn(p, "\n");
		p += p < end;
	}
	if (p >= end)
		return NULL;
	close = memchr(p + 1, *p, (size_t)(end - p) - 1);
	if (!close || close - p > PYTHON_VALUE_MAX) {
		*at = end;
		return NULL;
	}
	*at = close + 1;
	return pool_copy(pool, p + 1, (size_t)(close - p) - 1);
}

static bool is_library_pattern(const char *text)
{
	return str_starts(text, "lib") && strstr(text, ".so");
}

static int preloads_of_pairs(struct pool *pool, const char *at, const char *end, struct torch_preload *to)
{
	const char *folder = NULL, *text;
	int n = 0;

	while (n < PRELOADS_MAX && (text = python_next_quoted(pool, &at, end))) {
		if (folder && is_library_pattern(text) && !strchr(folder, '/'))
			to[n++] = (struct torch_preload){folder, text};
		if (strcmp(text, "lib") != 0)	/* torch 1.13 joins "cublas", "lib" and the name */
			folder = text;
	}
	return n;
}

/* The body of a function: up to the next line that starts without a space and is not a closing bracket. */
static const char *python_function_end(const char *p)
{
	for (p += strcspn(p, "\n"); *p; p += 1 + strcspn(p + 1, "\n"))
		if (p[1] && !strchr(" \t\n\r#)", p[1]))
			return p;
	return p;
}

static int preloads_of_list(struct pool *pool, const char *text, struct torch_preload *to)
{
	const char *list = strstr(text, "cuda_libs"), *end;

	list = list ? strchr(list, '=') : NULL;
	end = list ? strpbrk(list, "[{") : NULL;
	if (!end)
		return 0;
	list = end;
	/* patterns have brackets of their own, "libcublas.so.*[0-9]", so the end is a bracket on a line of its own */
	for (end = list + strcspn(list, "\n"); *end; end += 1 + strcspn(end + 1, "\n")) {
		const char *p = end + 1 + strspn(end + 1, " \t");

		if (*p == ']' || *p == '}')
			break;
		if (!end[1])
			break;
	}
	return preloads_of_pairs(pool, list, end, to);
}

/* Calls with strings open just these; a call without, the whole list. */
static void preloads_always(struct pool *pool, const char *at, const char *end, struct torch_preloads *out)
{
	const char *p, *close, *q;

	p = memmem(at, (size_t)(end - at), "not in _maps", 12);
	for (q = p; q && q > at && q[-1] != '\n'; q--)
		;
	if (q)
		out->when = python_next_quoted(pool, &q, p);
	for (p = at; p < end && (p = memmem(p, (size_t)(end - p), "_preload_cuda", 13)); p = close) {
		const char *line = p;

		close = p + strcspn(p, "\n");
		while (line > at && line[-1] != '\n')
			line--;
		if (line[strspn(line, " \t")] == '#')
			continue;
		if (strstr(p, "()") && strstr(p, "()") < close) {
			memcpy(out->always, out->rescue, sizeof(out->always));
			out->n_always = out->n_rescue;
		} else if (out->n_always < PRELOADS_MAX - 4) {
			struct torch_preload one[PRELOADS_MAX];
			int n = preloads_of_pairs(pool, p, close, one);

			if (n > 0)
				out->always[out->n_always++] = one[0];
		}
	}
}

void torch_preloads_read(struct pool *pool, const char *text, struct torch_preloads *out)
{
	const char *start = strstr(text, "def _load_global_deps"), *end, *maps, *except, *old;

	*out = (struct torch_preloads){0};
	if (!start)
		return;
	out->known = true;
	end = python_function_end(start);
	out->n_rescue = preloads_of_list(pool, text, out->rescue);
	old = out->n_rescue ? NULL : strstr(text, "def _preload_cuda_deps");
	if (old)
		out->n_rescue = preloads_of_pairs(pool, old, python_function_end(old), out->rescue);
	maps = memmem(start, (size_t)(end - start), "/proc/self/maps", 15);
	except = maps ? memmem(maps, (size_t)(end - maps), "except OSError", 14) : NULL;
	if (maps)
		preloads_always(pool, maps, except ? except : end, out);
}

/* 1 and 0 as in struct py_torch. Old strings are "Ss" in mangled names; it is a name by itself only after some letters. */
int torch_abi_of_symbol(const char *name)
{
	size_t n = strlen(name);

	if (strstr(name, "St7__cxx1112basic_string") || strstr(name, "B5cxx11"))
		return 1;
	if (strstr(name, "RKSs") || strstr(name, "ERSs") || (n > 3 && strcmp(name + n - 3, "ESs") == 0))
		return 0;
	return -1;
}

/* `import` prefers a folder with __init__.py, then torch.py; a bare folder counts only when nothing else is found. */
static const char *torch_importable(struct scan *s, const char *folder)
{
	const char *dir = scan_join(s, folder, "torch"), *file = scan_join(s, folder, "torch.py");

	if (tree_is_file(s->root, scan_join(s, dir, "__init__.py")))
		return dir;
	return tree_is_file(s->root, file) ? file : NULL;
}

/* A source checkout has torch/__init__.py but no libraries. */
static bool is_pytorch(struct scan *s, const char *dir)
{
	return tree_is_file(s->root, scan_join(s, dir, "version.py")) && tree_is_dir(s->root, scan_join(s, dir, "lib"));
}

/* A torch that lost some of its files: its folder without __init__.py, or only its metadata. */
static const char *torch_remains(struct scan *s, const char *folder)
{
	const char *dir = scan_join(s, folder, "torch");

	if (tree_is_dir(s->root, scan_join(s, dir, "lib")) || tree_is_file(s->root, scan_join(s, dir, "version.py")))
		return dir;
	return NULL;
}

static void torch_find_dir(struct env_work *w)
{
	struct py_torch *t = &w->e->torch;

	for (size_t i = 0; i < w->e->n_folders && !t->dir; i++) {
		const struct py_folder *f = &w->e->folder[i];
		const char *found = f->there ? torch_importable(w->s, f->path) : NULL;

		if (found && is_pytorch(w->s, found)) {
			t->dir = found;
		} else if (found && !t->shadow) {
			t->shadow = found;
			t->shadow_kind = f->kind;
		}
	}
	for (size_t i = 0; i < w->e->n_folders && !t->dir; i++)
		if (w->e->folder[i].there && w->e->folder[i].kind != PY_FOLDER_CWD)
			t->dir = torch_remains(w->s, w->e->folder[i].path);
}

static void torch_read_version(struct env_work *w)
{
	struct py_torch *t = &w->e->torch;
	const char *text = scan_text(w->s, scan_join(w->s, t->dir, "version.py"), VERSION_MAX, NULL), *xpu = NULL;
	enum py_value cuda, hip, x;

	if (!text) {
		t->reason = "torch/version.py is missing or cannot be read";
		return;
	}
	py_assignment(w->s->pool, text, "__version__", &t->version);
	py_assignment(w->s->pool, text, "git_version", &t->git);
	cuda = py_assignment(w->s->pool, text, "cuda", &t->cuda);
	hip = py_assignment(w->s->pool, text, "hip", &t->hip);
	x = py_assignment(w->s->pool, text, "xpu", &xpu);
	if (cuda == PY_VALUE_TEXT)
		t->build = TORCH_BUILD_CUDA;
	else if (hip == PY_VALUE_TEXT)
		t->build = TORCH_BUILD_ROCM;
	else if (x == PY_VALUE_TEXT)
		t->build = TORCH_BUILD_XPU;
	else if (cuda == PY_VALUE_NONE)
		t->build = TORCH_BUILD_CPU;
	else
		t->reason = "torch/version.py says nothing about CUDA";
}

/* Releases up to 1.13 have the code in a library next to libtorch_cuda.so, which then has none. */
static void torch_find_cuda_library(struct env_work *w)
{
	static const char *const names[] = {"lib/libtorch_cuda_cu.so", "lib/libtorch_cuda.so", NULL};
	struct py_torch *t = &w->e->torch;

	for (const char *const *n = names; *n && !t->cuda_library; n++) {
		const char *own = scan_join(w->s, t->dir, *n),
			   *shared = scan_join(w->s, w->e->prefix ? w->e->prefix : "/", *n);

		if (tree_is_file(w->s->root, own))
			t->cuda_library = own;
		else if (w->e->kind == PYENV_CONDA && tree_is_file(w->s->root, shared))
			t->cuda_library = shared;
	}
}

static bool torch_see_abi(void *arg, const char *name, bool weak)
{
	int *abi = arg;

	(void)weak;
	if (str_starts(name, "_ZN3c10"))
		*abi = torch_abi_of_symbol(name);
	return *abi < 0;
}

static void torch_read_abi(struct env_work *w)
{
	struct elf_file f;

	w->e->torch.cxx11_abi = -1;
	if (elf_open(&f, w->s->pool, w->s->root, scan_join(w->s, w->e->torch.dir, "lib/libc10.so"), 0) != 0)
		return;
	if (!f.broken && !f.foreign)
		elf_symbols(&f, false, 100000, torch_see_abi, &w->e->torch.cxx11_abi);
	elf_close(&f);
}

/* "2.5.1+cu124" -> "cu124" */
static const char *local_part(const char *version)
{
	const char *plus = version ? strchr(version, '+') : NULL;

	return plus && plus[1] ? plus + 1 : NULL;
}

static void packages_read_variants(struct env_work *w)
{
	static const char *const with_file[] = {"torch", "torchvision", "torchaudio"};

	for (size_t i = 0; i < w->e->n_packages; i++) {
		struct py_package *p = &w->e->package[i];
		const char *text, *version = NULL;

		if (!p->watched)
			continue;
		p->variant = local_part(p->version);
		for (int k = 0; k < 3 && !p->variant; k++) {
			if (strcmp(p->name, with_file[k]) != 0 || p->source == PY_CONDA_META)
				continue;
			text = scan_join(w->s, p->folder, pool_printf(w->s->pool, "%s/version.py", p->name));
			text = scan_text(w->s, text, VERSION_MAX, NULL);
			if (text && py_assignment(w->s->pool, text, "__version__", &version) == PY_VALUE_TEXT)
				p->variant = local_part(version);
		}
	}
}

void env_torch(struct env_work *w)
{
	struct py_torch *t = &w->e->torch;
	const struct py_package *p = pyenv_package(w->e, "torch");

	packages_read_variants(w);
	t->cxx11_abi = -1;
	t->metadata_version = p && p->source != PY_CONDA_META ? p->version : NULL;
	torch_find_dir(w);
	if (!t->dir) {
		if (p && p->source != PY_CONDA_META)
			t->reason = "torch is listed as installed, but its files are gone";
		return;
	}
	torch_read_version(w);
	torch_find_cuda_library(w);
	torch_read_abi(w);
}
