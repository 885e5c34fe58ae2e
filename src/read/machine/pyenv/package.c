/* SPDX-License-Identifier: Apache-2.0
 * The packages of an environment: which there are, whether their files are all there, and whether they match. From
 * the names of their metadata folders and, for watched ones, from METADATA and RECORD.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/packaging.h"
#include "read/machine/pyenv/scan.h"

#define PACKAGES_MAX	20000
#define LEFTOVERS_MAX	64
#define METADATA_MAX	(1u << 20)
#define RECORD_MAX	(16u << 20)
#define RECORDS_MAX	(128u << 20)	/* bytes of all of them together */
#define FILES_MAX	20000
#define CLASHES_MAX	200
#define LINES_MAX	5000

static bool is_watched(const char *name)
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

/* METADATA or PKG-INFO of a package; NULL: unreadable. */
static const char *metadata_text(struct scan *s, const struct py_package *p)
{
	if (p->source == PY_DIST_INFO)
		return scan_text(s, scan_join(s, p->info, "METADATA"), METADATA_MAX, NULL);
	if (p->source == PY_EGG_INFO && tree_is_file(s->root, p->info))
		return scan_text(s, p->info, METADATA_MAX, NULL);
	return p->source == PY_EGG_INFO ? scan_text(s, scan_join(s, p->info, "PKG-INFO"), METADATA_MAX, NULL) : NULL;
}

struct package_list {
	struct py_package *item;
	size_t n, cap;
};

/* "Foo_Bar-1.2.dist-info", "foo-1.2-py3.11.egg-info", "foo.egg-info" */
static bool package_split_name(struct scan *s, const char *file, size_t len, struct py_package *p)
{
	char name[PY_NAME_MAX];
	size_t n = 0, end;

	while (n < len && !(file[n] == '-' && isdigit((unsigned char)file[n + 1])))
		n++;
	if (!py_normalize(file, n, name, sizeof(name)))
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
static bool package_split_conda(struct scan *s, const char *file, size_t len, struct py_package *p)
{
	const char *build = memrchr(file, '-', len), *version = build ? memrchr(file, '-', (size_t)(build - file)) : NULL;
	char name[PY_NAME_MAX];

	if (!version || !py_normalize(file, (size_t)(version - file), name, sizeof(name)))
		return false;
	p->name = pool_strdup(s->pool, name);
	p->version = pool_copy(s->pool, version + 1, (size_t)(build - version) - 1);
	p->build = pool_copy(s->pool, build + 1, (size_t)(file + len - build) - 1);
	return true;
}

static bool is_metadata_folder(const char *name, struct py_package *p, size_t *len)
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

static void package_push(struct env_work *w, struct package_list *l, struct py_package *p)
{
	if (l->n >= PACKAGES_MAX) {
		w->e->cut = true;
		return;
	}
	p->watched = is_watched(p->name);
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

static void packages_in_folder(struct env_work *w, struct package_list *l, struct py_folder *f)
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
		else if (is_metadata_folder(names[i], &p, &len) && package_split_name(s, names[i], len, &p)) {
			p.info = scan_join(s, f->path, names[i]);
			package_push(w, l, &p);
		}
	}
}

static void packages_of_conda(struct env_work *w, struct package_list *l)
{
	struct scan *s = w->s;
	const char *dir = scan_join(s, w->e->prefix, "conda-meta");
	char **names;
	int n = tree_list(s->root, dir, s->pool, LIST_MAX, &names, &w->e->cut);

	for (int i = 0; i < n; i++) {
		struct py_package p = {.folder = w->e->prefix, .source = PY_CONDA_META};

		if (!str_ends(names[i], ".json") || !package_split_conda(s, names[i], strlen(names[i]) - 5, &p))
			continue;
		p.info = scan_join(s, dir, names[i]);
		package_push(w, l, &p);
	}
}

/* By name; equal names stay in the order of their folders, conda's own notes behind them. */
static int package_by_name(const void *a, const void *b)
{
	const struct py_package *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : (x->n_cut > y->n_cut) - (x->n_cut < y->n_cut);
}

static void package_read_metadata(struct env_work *w, struct py_package *p)
{
	struct scan *s = w->s;
	const char *text = metadata_text(s, p), *version;

	if (!text) {
		p->reason = p->source != PY_DIST_INFO ? "PKG-INFO is missing or cannot be read" :
			"METADATA is missing or cannot be read: only partly installed or removed";
		return;
	}
	version = py_metadata_field(s->pool, text, "Version");
	if (version)
		p->version = version;
	else
		p->reason = "METADATA names no version";
}

static void find_packages(struct env_work *w)
{
	struct pyenv *e = w->e;
	struct package_list l = {0};

	e->leftover = pool_alloc(w->s->pool, LEFTOVERS_MAX * sizeof(*e->leftover));
	for (size_t i = 0; i < e->n_folders; i++)
		if (e->folder[i].there && e->folder[i].kind != PY_FOLDER_CWD)
			packages_in_folder(w, &l, &e->folder[i]);
	if (e->prefix && e->kind == PYENV_CONDA)
		packages_of_conda(w, &l);
	for (size_t i = 0; i < l.n; i++)	/* qsort is not stable: the place stands in a field that is not used yet */
		l.item[i].n_cut = (int)i;
	xsort(l.item, l.n, sizeof(*l.item), package_by_name);
	for (size_t i = 0; i < l.n; i++) {
		struct py_package *p = &l.item[i];

		p->n_cut = 0;
		p->hidden = i && p->source != PY_CONDA_META && strcmp(p[-1].name, p->name) == 0;
	}
	e->package = pool_alloc(w->s->pool, (l.n + 1) * sizeof(*l.item));
	if (l.n)
		memcpy(e->package, l.item, l.n * sizeof(*l.item));
	e->n_packages = l.n;
	free(l.item);
	w->record = pool_alloc(w->s->pool, (e->n_packages + 1) * sizeof(*w->record));
	for (size_t i = 0; i < e->n_packages; i++)
		if (e->package[i].watched && e->package[i].source != PY_CONDA_META)
			package_read_metadata(w, &e->package[i]);
}

const struct record *env_record(struct env_work *w, size_t package)
{
	struct record *r = &w->record[package];
	const struct py_package *p = &w->e->package[package];

	if (r->read)
		return r;
	r->read = true;
	if (p->source != PY_DIST_INFO || w->record_bytes > RECORDS_MAX)
		return r;
	r->text = scan_text(w->s, scan_join(w->s, p->info, "RECORD"), RECORD_MAX, &r->len);
	w->record_bytes += r->text ? r->len : 0;
	return r;
}

/* A different size alone proves nothing: some distributions strip or patch libraries after they were installed. */
static bool library_is_damaged(struct env_work *w, const char *path)
{
	struct elf_file f;

	if (elf_open(&f, w->s->pool, w->s->root, path, 0) != 0)
		return false;
	elf_close(&f);
	return f.broken != NULL;
}

/* "path,sha256=...,size" of one line; a path in quotes has a comma in it, and no library has. */
static void record_check_line(struct env_work *w, struct py_package *p, const char *line, size_t len)
{
	const char *comma = memchr(line, ',', len), *size = memrchr(line, ',', len), *path;
	uint64_t want = 0;
	struct stat st;
	char number[24];
	int rc;

	if (!comma || line[0] == '"' || !library_is_one(line, (size_t)(comma - line)))
		return;
	p->n_files++;
	path = pool_printf(w->s->pool, "%s/%.*s", p->folder, (int)(comma - line), line);
	rc = tree_stat(w->s->root, path, &st);
	len -= (size_t)(size - line) + 1;
	if (len && size[len] == '\r')
		len--;
	if (size == comma || len >= sizeof(number))
		len = 0;
	memcpy(number, size + 1, len);
	number[len] = '\0';
	if (rc == -ENOENT || rc == -ENOTDIR)
		p->n_missing++;
	else if (rc == 0 && len && str_u64(number, &want) && want != (uint64_t)st.st_size && library_is_damaged(w, path))
		p->n_cut++;
	else
		return;
	if (!p->missing)
		p->missing = path;
}

static void record_check(struct env_work *w, size_t package)
{
	struct py_package *p = &w->e->package[package];
	const struct record *r = env_record(w, package);
	const char *at = r->text;

	if (!at) {
		if (!p->reason)
			p->reason = "RECORD is missing or cannot be read: only partly installed, or not installed by pip";
		return;
	}
	p->n_files = 0;
	p->n_missing = 0;
	while (*at && p->n_files < FILES_MAX) {
		size_t len = strcspn(at, "\n");

		record_check_line(w, p, at, len);
		at += len + (at[len] == '\n');
	}
}

static bool record_names(const struct record *r, const char *file)
{
	size_t n = strlen(file);

	for (const char *p = r->text; p && (p = strstr(p, file)); p += n)
		if ((p == r->text || p[-1] == '\n') && p[n] == ',')
			return true;
	return false;
}

/* Watched packages first: their RECORDs have been read already. */
int env_owner(struct env_work *w, const char *path)
{
	for (int watched = 1; watched >= 0; watched--)
		for (size_t i = 0; i < w->e->n_packages; i++) {
			const struct py_package *p = &w->e->package[i];
			size_t n = strlen(p->folder);

			if (p->watched != (bool)watched || p->source != PY_DIST_INFO ||
			    strncmp(path, p->folder, n) != 0 || path[n] != '/')
				continue;
			if (record_names(env_record(w, i), path + n + 1))
				return (int)i;
		}
	return -1;
}

/* Requirements between watched ones: torchvision for another torch, nvidia-* of another release. */
static void clash_add(struct env_work *w, enum py_clash_kind kind, const struct py_package *p,
		      const struct requirement *r, const char *installed)
{
	struct pyenv *e = w->e;

	if (e->n_clashes == CLASHES_MAX) {
		e->cut = true;
		return;
	}
	for (size_t i = 0; i < e->n_clashes; i++)	/* listed twice: once for itself, once for an extra */
		if (strcmp(e->clash[i].package, p->name) == 0 && strcmp(e->clash[i].requirement, r->text) == 0)
			return;
	e->clash[e->n_clashes++] = (struct py_clash){
		.kind = kind, .package = p->name, .version = p->version, .installed = installed,
		.requirement = pool_strdup(w->s->pool, r->text), .name = pool_strdup(w->s->pool, r->name),
	};
}

/* conda has its own package names, so pip's requirements are not all met by name in its environments. */
static bool installed_by_conda(struct env_work *w, const struct py_package *p)
{
	const char *text = scan_text(w->s, scan_join(w->s, p->info, "INSTALLER"), 64, NULL);

	return text && str_starts(text, "conda");
}

static void requirements_check(struct env_work *w, const struct py_package *p, const char *extras, int depth);

static void requirement_check(struct env_work *w, const struct py_package *p, const struct requirement *r, int depth)
{
	const struct py_package *have = pyenv_package(w->e, r->name);

	if (!have || have->source == PY_CONDA_META) {
		if (!have && !w->e->cut && !installed_by_conda(w, p))
			clash_add(w, PY_CLASH_MISSING, p, r, NULL);
		return;
	}
	/* The folder says 2.5.1, torch/version.py 2.5.1+cu124: both satisfy "==2.5.1". */
	if (have->version && py_version_fits(have->version, r->specifiers) == 0)
		clash_add(w, PY_CLASH_VERSION, p, r, have->version);
	if (r->extras[0] && depth == 0)
		requirements_check(w, have, r->extras, 1);
}

static void requirements_check(struct env_work *w, const struct py_package *p, const char *extras, int depth)
{
	const char *at = metadata_text(w->s, p), *line;
	const char *machine =
#if defined(__aarch64__)
		"aarch64";
#else
		"x86_64";
#endif
	struct requirement r;
	char marker[512];
	size_t len;

	for (int i = 0; at && i < LINES_MAX && (line = py_metadata_next(&at, "Requires-Dist", &len)); i++)
		if (py_requirement_parse(&r, line, len, marker, sizeof(marker)) && is_watched(r.name) &&
		    py_marker_true(r.marker, machine, w->e->minor, extras) == 1)
			requirement_check(w, p, &r, depth);
}

static void package_check_twice(struct env_work *w, const struct py_package *p)
{
	struct requirement r = {0};

	if (p->source == PY_CONDA_META || p[1].source != p->source || strcmp(p->name, p[1].name) != 0 ||
	    strcmp(p->folder, p[1].folder) != 0)
		return;
	str_copy(r.text, sizeof(r.text), p->name);
	str_copy(r.name, sizeof(r.name), p->name);
	clash_add(w, PY_CLASH_TWICE, p, &r, p[1].version);
}

static void check_requirements(struct env_work *w)
{
	struct pyenv *e = w->e;

	e->clash = pool_alloc(w->s->pool, CLASHES_MAX * sizeof(*e->clash));
	for (size_t i = 0; i < e->n_packages; i++) {
		const struct py_package *p = &e->package[i];

		if (!p->watched)
			continue;
		if (i + 1 < e->n_packages)
			package_check_twice(w, p);
		if (!p->hidden && p->source != PY_CONDA_META)
			requirements_check(w, p, "", 0);
	}
}

void env_packages(struct env_work *w)
{
	find_packages(w);
	for (size_t i = 0; i < w->e->n_packages; i++)
		if (w->e->package[i].watched && w->e->package[i].source == PY_DIST_INFO)
			record_check(w, i);
	check_requirements(w);
}
