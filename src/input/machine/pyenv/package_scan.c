/* SPDX-License-Identifier: Apache-2.0
 * The packages of an environment, from the names of their metadata folders and, for watched ones, from METADATA.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/tree.h"
#include "input/machine/pyenv/metadata.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "base/banned.h"

#define PACKAGES_MAX	20000
#define LEFTOVERS_MAX	64

struct list {
	struct py_package *item;
	size_t n, cap;
};

bool py_is_watched(const char *name)
{
	static const char *const names[] = {
#define PY_PACKAGE(n) n,
#define PY_FAMILY(p)
#include "kb/py_packages.def"
#undef PY_PACKAGE
#undef PY_FAMILY
	};
	static const char *const families[] = {
#define PY_PACKAGE(n)
#define PY_FAMILY(p) p,
#include "kb/py_packages.def"
#undef PY_PACKAGE
#undef PY_FAMILY
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (str_starts(name, families[i]))
			return true;
	return false;
}

/* "Foo_Bar-1.2.dist-info", "foo-1.2-py3.11.egg-info", "foo.egg-info" */
static bool split_name(struct scan *s, const char *file, size_t len, struct py_package *p)
{
	char name[PY_NAME_MAX];
	size_t n = 0, end;

	while (n < len && !(file[n] == '-' && isdigit((unsigned char)file[n + 1])))
		n++;
	if (!py_normalise(file, n, name, sizeof(name)))
		return false;
	p->name = pool_strdup(s->pool, name);
	if (n < len) {
		end = n + 1;
		while (end < len && file[end] != '-')
			end++;
		p->version = pool_copy(s->pool, file + n + 1, end - n - 1);
	}
	return true;
}

/* "pytorch-2.5.1-py3.11_cuda12.1_cudnn9.1.0_0.json" */
static bool split_conda(struct scan *s, const char *file, size_t len, struct py_package *p)
{
	const char *build = memrchr(file, '-', len), *version = build ? memrchr(file, '-', (size_t)(build - file)) : NULL;
	char name[PY_NAME_MAX];

	if (!version || !py_normalise(file, (size_t)(version - file), name, sizeof(name)))
		return false;
	p->name = pool_strdup(s->pool, name);
	p->version = pool_copy(s->pool, version + 1, (size_t)(build - version) - 1);
	p->build = pool_copy(s->pool, build + 1, (size_t)(file + len - build) - 1);
	return true;
}

static bool is_info(const char *name, struct py_package *p, size_t *len)
{
	static const struct { const char *end; enum py_source source; } kinds[] = {
		{".dist-info", PY_DIST_INFO}, {".egg-info", PY_EGG_INFO},
	};

	for (int i = 0; i < 2; i++)
		if (str_ends(name, kinds[i].end)) {
			p->source = kinds[i].source;
			*len = strlen(name) - strlen(kinds[i].end);
			return true;
		}
	return false;
}

static void push(struct env_work *w, struct list *l, struct py_package *p)
{
	if (l->n >= PACKAGES_MAX) {
		w->e->cut = true;
		return;
	}
	p->watched = py_is_watched(p->name);
	p->n_files = -1;
	p->n_missing = -1;
	l->item = xgrow(l->item, l->n, &l->cap, sizeof(*l->item));
	l->item[l->n++] = *p;
}

static void add_leftover(struct env_work *w, const char *path)
{
	if (w->e->n_leftovers < LEFTOVERS_MAX)
		w->e->leftover[w->e->n_leftovers++] = path;
}

static void scan_folder(struct env_work *w, struct list *l, struct py_folder *f)
{
	struct scan *s = w->s;
	char **names;
	int n = tree_list(s->root, f->path, s->pool, LIST_MAX, &names, &w->e->cut);

	if (n < 0)
		f->reason = pool_printf(s->pool, "%s", strerror(-n));
	for (int i = 0; i < n; i++) {
		struct py_package p = {.folder = f->path};
		size_t len;

		if (names[i][0] == '~')
			add_leftover(w, scan_join(s, f->path, names[i]));
		else if (is_info(names[i], &p, &len) && split_name(s, names[i], len, &p)) {
			p.info = scan_join(s, f->path, names[i]);
			push(w, l, &p);
		}
	}
}

static void scan_conda(struct env_work *w, struct list *l)
{
	struct scan *s = w->s;
	const char *dir = scan_join(s, w->e->prefix, "conda-meta");
	char **names;
	int n = tree_list(s->root, dir, s->pool, LIST_MAX, &names, &w->e->cut);

	for (int i = 0; i < n; i++) {
		struct py_package p = {.folder = w->e->prefix, .source = PY_CONDA_META};

		if (!str_ends(names[i], ".json") || !split_conda(s, names[i], strlen(names[i]) - 5, &p))
			continue;
		p.info = scan_join(s, dir, names[i]);
		push(w, l, &p);
	}
}

/* By name; equal names stay in the order of their folders, conda's own notes behind them. */
static int by_name(const void *a, const void *b)
{
	const struct py_package *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : (x->n_cut > y->n_cut) - (x->n_cut < y->n_cut);
}

static void sort(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)	/* qsort is not stable: the place stands in a field that is not used yet */
		l->item[i].n_cut = (int)i;
	if (l->n)
		qsort(l->item, l->n, sizeof(*l->item), by_name);
	for (size_t i = 0; i < l->n; i++) {
		struct py_package *p = &l->item[i];

		p->n_cut = 0;
		p->hidden = i && p->source != PY_CONDA_META && strcmp(p[-1].name, p->name) == 0;
	}
}

static void read_metadata(struct env_work *w, struct py_package *p)
{
	struct scan *s = w->s;
	const char *text = py_metadata_text(s, p), *version;

	if (!text) {
		p->reason = p->source != PY_DIST_INFO ? "PKG-INFO is missing or cannot be read" :
			"METADATA is missing or cannot be read: half installed or half removed";
		return;
	}
	version = py_metadata_field(s, text, "Version");
	if (version)
		p->version = version;
	else
		p->reason = "METADATA names no version";
}

void env_packages(struct env_work *w)
{
	struct pyenv *e = w->e;
	struct list l = {0};

	e->leftover = pool_alloc(w->s->pool, LEFTOVERS_MAX * sizeof(*e->leftover));
	for (size_t i = 0; i < e->n_folders; i++)
		if (e->folder[i].there && e->folder[i].kind != PY_FOLDER_CWD)
			scan_folder(w, &l, &e->folder[i]);
	if (e->prefix && e->kind == PYENV_CONDA)
		scan_conda(w, &l);
	sort(&l);
	e->package = pool_alloc(w->s->pool, (l.n + 1) * sizeof(*l.item));
	if (l.n)
		memcpy(e->package, l.item, l.n * sizeof(*l.item));
	e->n_packages = l.n;
	free(l.item);
	w->record = pool_alloc(w->s->pool, (e->n_packages + 1) * sizeof(*w->record));
	for (size_t i = 0; i < e->n_packages; i++)
		if (e->package[i].watched && e->package[i].source != PY_CONDA_META)
			read_metadata(w, &e->package[i]);
}
