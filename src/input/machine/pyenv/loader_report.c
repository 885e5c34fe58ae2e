/* SPDX-License-Identifier: Apache-2.0
 * What is told about a filled process: which file, why, and is it the wheel's own?
 */
#include "input/machine/pyenv/loader_report.h"

#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "base/banned.h"

const char *loader_why_name(enum loader_why w)
{
	static const char *const names[] = {
		[LOADER_NOT_FOUND] = "not found", [LOADER_PRELOAD] = "LD_PRELOAD", [LOADER_CTYPES] = "import torch",
		[LOADER_RPATH] = "DT_RPATH", [LOADER_LIBRARY_PATH] = "LD_LIBRARY_PATH", [LOADER_RUNPATH] = "DT_RUNPATH",
		[LOADER_CACHE] = "ld.so.cache", [LOADER_DEFAULT] = "default folder", [LOADER_PATH] = "path",
	};

	return (size_t)w < sizeof(names) / sizeof(names[0]) ? names[w] : "unknown";
}

static bool is_of_interest(const char *name)
{
	static const char *const starts[] = {
		"libcu", "libnv", "libnccl", "libtorch", "libc10", "libcaffe2", "libshm", "libstdc++", "libgomp", "libiomp",
		"libmagma", NULL,
	};
	const char *slash = strrchr(name, '/');

	name = slash ? slash + 1 : name;
	for (const char *const *p = starts; *p; p++)
		if (str_starts(name, *p))
			return true;
	return false;
}

static const char *nvidia_copy(struct scan *s, const char *site, const char *soname)
{
	const char *dir = scan_join(s, site, "nvidia");
	bool cut = false;
	char **names;
	int n = tree_list(s->root, dir, s->pool, 256, &names, &cut);

	for (int i = 0; i < n; i++) {
		const char *path = pool_printf(s->pool, "%s/%s/lib/%s", dir, names[i], soname);

		if (tree_is_file(s->root, path))
			return path;
	}
	return NULL;
}

const char *loader_wheel_copy(struct env_work *w, const char *soname)
{
	struct scan *s = w->s;
	const char *site = scan_parent(s, w->e->torch.dir);
	const char *path = pool_printf(s->pool, "%s/lib/%s", w->e->torch.dir, soname);

	if (strchr(soname, '/'))
		return NULL;
	if (tree_is_file(s->root, path))
		return path;
	path = nvidia_copy(s, site, soname);
	if (!path && w->e->kind == PYENV_CONDA) {
		path = pool_printf(s->pool, "%s/lib/%s", w->e->prefix, soname);
		path = tree_is_file(s->root, path) ? path : NULL;
	}
	return path;
}

static const char *real_of(struct scan *s, const char *path)
{
	char real[TREE_PATH_MAX];

	return path && path[0] && tree_resolve(s->root, path, real) == 0 ? pool_strdup(s->pool, real) : NULL;
}

/* A file's own name tells more than its package: system packages have "libcudnn.so.9.1.0", wheels only "libcudnn.so.9". */
static const char *version_of(struct env_work *w, const char *real)
{
	const char *version = real ? scan_version_of_name(w->s, real) : NULL;
	int owner = real && !version ? env_owner(w, real) : -1;

	return owner >= 0 ? w->e->package[owner].version : version;
}

static enum loader_same compare(struct env_work *w, const struct loader_object *o, const struct loader_file *f)
{
	struct elf_file wheel;
	enum loader_same same = LOADER_SAME_NOT;

	if (!f->wheel || !o->path || elf_open(&wheel, w->s->pool, w->s->root, f->wheel, 0) != 0)
		return LOADER_SAME_UNKNOWN;
	elf_close(&wheel);
	if (wheel.dev == o->dev && wheel.ino == o->ino)
		same = LOADER_SAME_FILE;
	else if (wheel.build_id_len && wheel.build_id_len == o->build_id_len)
		same = memcmp(wheel.build_id, o->build_id, o->build_id_len) == 0 ? LOADER_SAME_BUILD : LOADER_SAME_NOT;
	else if (wheel.size == o->size && wheel.build_id_len == o->build_id_len)
		same = LOADER_SAME_BUILD;
	return same;
}

static void fill(struct env_work *w, const struct loader_session *l, const struct loader_object *o, struct loader_file *f)
{
	const char *slash = strrchr(o->name, '/');

	*f = (struct loader_file){
		.soname = slash ? slash + 1 : o->name, .real = real_of(w->s, o->path), .why = o->why, .because = o->because,
		.broken = o->broken, .skipped = o->skipped, .late = o->late,
	};
	f->path = o->path;
	f->needed_by = o->by >= 0 && l->object[o->by].path[0] ? l->object[o->by].path : NULL;
	f->version = version_of(w, f->real);
	f->wheel = loader_wheel_copy(w, f->soname);
	if (f->wheel) {
		f->wheel_version = version_of(w, real_of(w->s, f->wheel));
		f->same = compare(w, o, f);
	}
}

/* libcuda is the driver's and missing on machines without one: that is told elsewhere. */
static bool is_driver_name(const char *name)
{
	return str_starts(name, "libcuda.so") || str_starts(name, "libnvidia-");
}

void loader_report(struct env_work *w, struct loader_session *l, struct loader_result *out)
{
	out->file = pool_alloc(w->s->pool, (l->n_objects + 1) * sizeof(*out->file));
	out->cut = l->cut;
	for (size_t i = 1; i < l->n_objects; i++) {
		const struct loader_object *o = &l->object[i];
		struct loader_file *f = &out->file[out->n_files];

		if (o->again || (o->path && !o->broken && o->why != LOADER_PRELOAD && !is_of_interest(o->name)))
			continue;
		fill(w, l, o, f);
		out->n_other += f->same == LOADER_SAME_NOT;
		out->n_not_found += (!f->path || f->broken) && !f->late && !is_driver_name(f->soname);
		out->n_files++;
	}
	out->known = out->n_files > 0;
	if (!out->known && !out->reason)
		out->reason = "torch has no libraries that can be read";
}

static bool has_folder(const char *path, const char *name)
{
	return path && strstr(path, name);
}

static void hidden_copy(struct scan *s, struct loader_session *l, const char *name, int by, struct loader_driver *out)
{
	const char *library_path = l->library_path, *real;
	struct loader_object o;

	l->library_path = NULL;
	loader_look(l, name, by, &o);
	l->library_path = library_path;
	real = real_of(s, o.path);
	if (!real || !out->real || strcmp(real, out->real) == 0)
		return;
	out->other = o.path;
	out->other_version = scan_version_of_name(s, real);
}

void loader_driver_report(struct scan *s, struct loader_session *l, const char *name, int by, struct loader_driver *out)
{
	int loaded = loader_loaded(l, name);
	struct loader_object o;

	if (loaded >= 0)
		o = l->object[loaded];
	else
		loader_look(l, name, by, &o);
	*out = (struct loader_driver){
		.path = o.path, .real = real_of(s, o.path), .why = o.why, .because = o.because, .broken = o.broken,
	};
	if (!out->real)
		return;
	out->version = scan_version_of_name(s, out->real);
	out->compat = has_folder(out->real, "/compat/") || has_folder(out->path, "/compat/");
	out->stub = has_folder(out->real, "/stubs/") || has_folder(out->path, "/stubs/");
	out->wsl = has_folder(out->path, "/wsl/") || has_folder(out->real, "/wsl/");
	hidden_copy(s, l, name, by, out);
}
