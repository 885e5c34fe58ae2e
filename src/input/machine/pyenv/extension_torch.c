/* SPDX-License-Identifier: Apache-2.0
 * Does an extension fit this torch (see extension_torch.h).
 */
#include "input/machine/pyenv/extension_torch.h"

#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "input/machine/pyenv/python_text.h"
#include "base/banned.h"

#define SYMBOLS_MAX	100000
#define COMPANIONS_MAX	8

/* CUDA's libraries, which old releases have in torch/lib too: they define none of torch's names. */
static bool is_cuda_library(const char *name)
{
	static const char *const starts[] = {"libcu", "libnccl", "libnvrtc", "libnvJitLink", "libnvToolsExt", "libnvidia", "libnvshmem", "libnvperf",
					     "libnvblas", NULL};

	for (const char *const *p = starts; *p; p++)
		if (str_starts(name, *p))
			return true;
	return false;
}

void torch_symbols_open(struct torch_symbols *t, struct env_work *w)
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

void torch_symbols_close(struct torch_symbols *t)
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

struct check {
	struct torch_symbols *t;
	struct elf_file companion[COMPANIONS_MAX];
	int n_companions;
	struct py_extension *e;
	struct pool *pool;
};

static bool see(void *arg, const char *name, bool weak)
{
	struct check *c = arg;
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
		"libc.so", "libm.so", "libstdc++", "libgcc_s", "libpthread", "libdl.", "librt.", "ld-linux",
		"libgomp", "libpython", "libz.", "libutil", NULL,
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
static bool open_companions(struct check *c, struct env_work *w, const struct elf_file *f)
{
	const char *dir = scan_parent(w->s, c->e->path);

	for (unsigned i = 0; i < f->n_needed; i++) {
		if (is_known_library(c->t, f->needed[i]))
			continue;
		if (c->n_companions == COMPANIONS_MAX)
			return false;
		if (elf_open(&c->companion[c->n_companions], w->s->pool, w->s->root, scan_join(w->s, dir, f->needed[i]), 0))
			return false;
		c->n_companions++;
	}
	return true;
}

void torch_symbols_check(struct torch_symbols *t, struct env_work *w, const struct elf_file *f,
			 struct py_extension *e)
{
	struct check c = {.t = t, .e = e, .pool = w->s->pool};
	bool complete = open_companions(&c, w, f), read;

	e->n_unresolved = 0;
	read = elf_symbols(f, true, SYMBOLS_MAX, see, &c);
	/* made for another Python: never loaded, and Python's own part of torch would not fit either */
	if (!read || !t->whole || !complete || e->python) {
		e->n_unresolved = -1;
		e->unresolved = NULL;
	}
	for (int i = 0; i < c.n_companions; i++)
		elf_close(&c.companion[i]);
}
