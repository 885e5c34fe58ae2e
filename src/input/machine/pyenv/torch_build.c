/* SPDX-License-Identifier: Apache-2.0
 * The torch that `import torch` finds and how it was built, from the text of torch/version.py.
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "input/machine/pyenv/python_text.h"
#include "base/banned.h"

#define VERSION_MAX (1u << 16)

/* `import` prefers a folder with __init__.py, then torch.py; a bare folder counts only when nothing else is found. */
static const char *importable(struct scan *s, const char *folder)
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

/* A torch whose files were lost in part: its folder is there without __init__.py, or its metadata alone. */
static const char *remains(struct scan *s, const char *folder)
{
	const char *dir = scan_join(s, folder, "torch");

	if (tree_is_dir(s->root, scan_join(s, dir, "lib")) || tree_is_file(s->root, scan_join(s, dir, "version.py")))
		return dir;
	return NULL;
}

static void find_dir(struct env_work *w)
{
	struct py_torch *t = &w->e->torch;

	for (size_t i = 0; i < w->e->n_folders && !t->dir; i++) {
		const struct py_folder *f = &w->e->folder[i];
		const char *found = f->there ? importable(w->s, f->path) : NULL;

		if (found && is_pytorch(w->s, found)) {
			t->dir = found;
		} else if (found && !t->shadow) {
			t->shadow = found;
			t->shadow_kind = f->kind;
		}
	}
	for (size_t i = 0; i < w->e->n_folders && !t->dir; i++)
		if (w->e->folder[i].there && w->e->folder[i].kind != PY_FOLDER_CWD)
			t->dir = remains(w->s, w->e->folder[i].path);
}

static void read_version(struct env_work *w)
{
	struct py_torch *t = &w->e->torch;
	const char *text = scan_text(w->s, scan_join(w->s, t->dir, "version.py"), VERSION_MAX, NULL), *xpu = NULL;
	enum py_value cuda, hip, x;

	if (!text) {
		t->reason = "torch/version.py is missing or cannot be read";
		return;
	}
	py_assignment(w->s, text, "__version__", &t->version);
	py_assignment(w->s, text, "git_version", &t->git);
	cuda = py_assignment(w->s, text, "cuda", &t->cuda);
	hip = py_assignment(w->s, text, "hip", &t->hip);
	x = py_assignment(w->s, text, "xpu", &xpu);
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

/* Releases up to 1.13 have the code in a library beside libtorch_cuda.so, which then has none. */
static void find_cuda_library(struct env_work *w)
{
	static const char *const names[] = {"lib/libtorch_cuda_cu.so", "lib/libtorch_cuda.so", NULL};
	struct py_torch *t = &w->e->torch;

	for (const char *const *n = names; *n && !t->cuda_library; n++) {
		const char *own = scan_join(w->s, t->dir, *n), *shared = scan_join(w->s, w->e->prefix ? w->e->prefix : "/", *n);

		if (tree_is_file(w->s->root, own))
			t->cuda_library = own;
		else if (w->e->kind == PYENV_CONDA && tree_is_file(w->s->root, shared))
			t->cuda_library = shared;
	}
}

static bool see_abi(void *arg, const char *name, bool weak)
{
	int *abi = arg;

	(void)weak;
	if (str_starts(name, "_ZN3c10"))
		*abi = torch_abi_of_symbol(name);
	return *abi < 0;
}

/* 1 and 0 as in struct py_torch. Old strings are "Ss" in mangled names; it stands alone only after some letters. */
int torch_abi_of_symbol(const char *name)
{
	size_t n = strlen(name);

	if (strstr(name, "St7__cxx1112basic_string") || strstr(name, "B5cxx11"))
		return 1;
	if (strstr(name, "RKSs") || strstr(name, "ERSs") || (n > 3 && strcmp(name + n - 3, "ESs") == 0))
		return 0;
	return -1;
}

static void read_abi(struct env_work *w)
{
	struct elf_file f;

	w->e->torch.cxx11_abi = -1;
	if (elf_open(&f, w->s->pool, w->s->root, scan_join(w->s, w->e->torch.dir, "lib/libc10.so"), 0) != 0)
		return;
	if (!f.broken && !f.foreign)
		elf_symbols(&f, false, 100000, see_abi, &w->e->torch.cxx11_abi);
	elf_close(&f);
}

/* "2.5.1+cu124" -> "cu124" */
static const char *local_part(const char *version)
{
	const char *plus = version ? strchr(version, '+') : NULL;

	return plus && plus[1] ? plus + 1 : NULL;
}

static void read_variants(struct env_work *w)
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
			if (text && py_assignment(w->s, text, "__version__", &version) == PY_VALUE_TEXT)
				p->variant = local_part(version);
		}
	}
}

void env_torch(struct env_work *w)
{
	struct py_torch *t = &w->e->torch;
	const struct py_package *p = pyenv_package(w->e, "torch");

	read_variants(w);
	t->cxx11_abi = -1;
	t->metadata_version = p && p->source != PY_CONDA_META ? p->version : NULL;
	find_dir(w);
	if (!t->dir) {
		if (p && p->source != PY_CONDA_META)
			t->reason = "torch is listed as installed, but its files are gone";
		return;
	}
	read_version(w);
	find_cuda_library(w);
	read_abi(w);
}
