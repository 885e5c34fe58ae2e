/* SPDX-License-Identifier: Apache-2.0
 * `import torch` as the dynamic loader goes through it (see loader.h): torch's own preloads, its libraries, what these open
 * late; and what is reported for each file: which, why, and is it the wheel's own?
 */
#include <fnmatch.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/loader_session.h"
#include "read/machine/pyenv/scan.h"
#include "read/machine/pyenv/torch.h"

#define INIT_MAX	(1u << 20)

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

/* The copy of a library in the wheels: torch/lib, nvidia/.../lib beside torch, or conda's lib. NULL: none. */
static const char *loader_wheel_copy(struct env_work *w, const char *soname)
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

static const char *file_matching(struct scan *s, const char *dir, const char *pattern)
{
	bool cut = false;
	char **names;
	int n = tree_list(s->root, dir, s->pool, LIST_MAX, &names, &cut);

	for (int i = 0; i < n; i++)
		if (fnmatch(pattern, names[i], 0) == 0)
			return scan_join(s, dir, names[i]);
	return NULL;
}

/* As torch looks: in each folder of sys.path nvidia/FOLDER/lib, nvidia/cuNN/lib, FOLDER/lib. */
static const char *torch_find_preload(struct env_work *w, const struct torch_preload *p)
{
	struct scan *s = w->s;
	const char *cuda = w->e->torch.cuda, *found = NULL;
	int major = cuda ? (int)strcspn(cuda, ".") : 0;

	for (size_t i = 0; i < w->e->n_folders && !found; i++) {
		const char *folder = w->e->folder[i].path;

		if (!w->e->folder[i].there)
			continue;
		found = file_matching(s, pool_printf(s->pool, "%s/nvidia/%s/lib", folder, p->folder), p->pattern);
		if (!found && cuda)
			found = file_matching(s, pool_printf(s->pool, "%s/nvidia/cu%.*s/lib", folder, major, cuda),
					      p->pattern);
		if (!found)
			found = file_matching(s, pool_printf(s->pool, "%s/%s/lib", folder, p->folder), p->pattern);
	}
	return found;
}

/* Ends at the first one that is not there, as the exception in torch does. */
static void torch_preload_all(struct env_work *w, struct loader_session *l, const struct torch_preload *list, int n)
{
	for (int i = 0; i < n; i++) {
		const char *path = torch_find_preload(w, &list[i]);

		if (!path || loader_open(l, path, 0, LOADER_CTYPES, false) < 0)
			return;
		w->e->loader.preloads = true;
	}
}

static bool any_path_has(const struct loader_session *l, const char *part)
{
	for (size_t i = 0; i < l->n_objects; i++)
		if (l->object[i].path && strstr(l->object[i].path, part))
			return true;
	return false;
}

static void torch_load_global_deps(struct env_work *w, struct loader_session *l)
{
	struct scan *s = w->s;
	const char *deps = scan_join(s, w->e->torch.dir, "lib/libtorch_global_deps.so");
	const char *text = scan_text(s, scan_join(s, w->e->torch.dir, "__init__.py"), INIT_MAX, NULL);
	struct torch_preloads p = {0};

	if (text)
		torch_preloads_read(s->pool, text, &p);
	if (!tree_is_file(s->root, deps))
		return;
	if (loader_open(l, deps, 0, LOADER_PATH, false) >= 0) {
		if (!p.when || any_path_has(l, p.when))
			torch_preload_all(w, l, p.always, p.n_always);
		return;
	}
	torch_preload_all(w, l, p.rescue, p.n_rescue);
	loader_open(l, deps, 0, LOADER_PATH, true);
}

/* torch/_C.cpython-312-x86_64-linux-gnu.so of this Python, and what it leads to. */
static void torch_load_module(struct env_work *w, struct loader_session *l)
{
	struct scan *s = w->s;
	const char *dir = w->e->torch.dir, *module = NULL;

	if (w->e->minor >= 0)
		module = file_matching(s, dir, pool_printf(s->pool, "_C.cpython-%d%d*.so", w->e->major, w->e->minor));
	if (!module)
		module = file_matching(s, dir, "_C.*so");
	if (!module)
		module = scan_join(s, dir, "lib/libtorch_python.so");
	loader_open(l, module, 0, LOADER_PATH, true);
	if (w->e->torch.cuda_library)	/* where the module's list is not what we think, torch's CUDA part still counts */
		loader_open(l, w->e->torch.cuda_library, 0, LOADER_PATH, true);
}

/* Parts that a library opens by name once it is used; they are next to the wheel's copy. */
static void torch_load_late(struct env_work *w, struct loader_session *l, const char *library, const char *parts)
{
	struct scan *s = w->s;
	size_t n_before = l->n_objects;
	char **names;
	bool cut = false;

	for (size_t i = 0; i < n_before; i++) {
		const struct loader_object *o = &l->object[i];
		const char *wheel;
		int n;

		if (o->again || !o->path || o->broken || !o->soname || !str_starts(o->soname, library))
			continue;
		wheel = loader_wheel_copy(w, o->soname);
		n = tree_list(s->root, scan_parent(s, wheel ? wheel : o->path), s->pool, LIST_MAX, &names, &cut);
		for (int k = 0; k < n; k++)
			if (str_starts(names[k], parts) && strstr(names[k], ".so.") && !strstr(names[k], ".alt."))
				loader_open(l, names[k], (int)i, LOADER_PATH, true);
		return;
	}
}

static void torch_load_all(struct env_work *w, struct loader_session *l)
{
	const char *nvrtc = scan_join(w->s, w->e->torch.dir, "lib/libcaffe2_nvrtc.so");

	torch_load_global_deps(w, l);
	torch_load_module(w, l);
	l->late = true;
	torch_load_late(w, l, "libcudnn.so.", "libcudnn_");
	if (tree_is_file(w->s->root, nvrtc))
		loader_open(l, nvrtc, 0, LOADER_PATH, true);
	torch_load_late(w, l, "libnvrtc.so.", "libnvrtc-builtins");
}

static bool library_is_of_interest(const char *name)
{
	static const char *const starts[] = {
		"libcu",  "libnv",     "libnccl", "libtorch", "libc10",	  "libcaffe2",
		"libshm", "libstdc++", "libgomp", "libiomp",  "libmagma", NULL,
	};
	const char *slash = strrchr(name, '/');

	name = slash ? slash + 1 : name;
	for (const char *const *p = starts; *p; p++)
		if (str_starts(name, *p))
			return true;
	return false;
}

static const char *path_resolved(struct scan *s, const char *path)
{
	char real[TREE_PATH_MAX];

	return path && path[0] && tree_resolve(s->root, path, real) == 0 ? pool_strdup(s->pool, real) : NULL;
}

/* A file's own name says more than its package: system packages have "libcudnn.so.9.1.0", wheels only "libcudnn.so.9". */
static const char *loaded_version(struct env_work *w, const char *real)
{
	const char *version = real ? library_version(w->s->pool, real) : NULL;
	int owner = real && !version ? env_owner(w, real) : -1;

	return owner >= 0 ? w->e->package[owner].version : version;
}

static enum loader_same compare_with_wheel(struct env_work *w, const struct loader_object *o, const struct loader_file *f)
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

static void loader_file_fill(struct env_work *w, const struct loader_session *l, const struct loader_object *o,
			     struct loader_file *f)
{
	const char *slash = strrchr(o->name, '/');

	*f = (struct loader_file){
		.soname = slash ? slash + 1 : o->name, .real = path_resolved(w->s, o->path), .why = o->why, .because = o->because,
		.broken = o->broken, .skipped = o->skipped, .late = o->late,
	};
	f->path = o->path;
	f->needed_by = o->by >= 0 && l->object[o->by].path[0] ? l->object[o->by].path : NULL;
	f->version = loaded_version(w, f->real);
	f->wheel = loader_wheel_copy(w, f->soname);
	if (f->wheel) {
		f->wheel_version = loaded_version(w, path_resolved(w->s, f->wheel));
		f->same = compare_with_wheel(w, o, f);
	}
}

/* libcuda is the driver's and missing on machines without one: that is reported elsewhere. */
static bool is_driver_name(const char *name)
{
	return str_starts(name, "libcuda.so") || str_starts(name, "libnvidia-");
}

static void loader_report(struct env_work *w, struct loader_session *l, struct loader_result *out)
{
	out->file = pool_alloc(w->s->pool, (l->n_objects + 1) * sizeof(*out->file));
	out->cut = l->cut;
	for (size_t i = 1; i < l->n_objects; i++) {
		const struct loader_object *o = &l->object[i];
		struct loader_file *f = &out->file[out->n_files];

		if (o->again || (o->path && !o->broken && o->why != LOADER_PRELOAD && !library_is_of_interest(o->name)))
			continue;
		loader_file_fill(w, l, o, f);
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
	real = path_resolved(s, o.path);
	if (!real || !out->real || strcmp(real, out->real) == 0)
		return;
	out->other = o.path;
	out->other_version = library_version(s->pool, real);
}

/* dlopen(name) by the object `by`. */
static void loader_driver_report(struct scan *s, struct loader_session *l, const char *name, int by,
				 struct loader_driver *out)
{
	int loaded = loader_loaded(l, name);
	struct loader_object o;

	if (loaded >= 0)
		o = l->object[loaded];
	else
		loader_look(l, name, by, &o);
	*out = (struct loader_driver){
		.path = o.path, .real = path_resolved(s, o.path), .why = o.why, .because = o.because, .broken = o.broken,
	};
	if (!out->real)
		return;
	out->version = library_version(s->pool, out->real);
	out->compat = has_folder(out->real, "/compat/") || has_folder(out->path, "/compat/");
	out->stub = has_folder(out->real, "/stubs/") || has_folder(out->path, "/stubs/");
	out->wsl = has_folder(out->path, "/wsl/") || has_folder(out->real, "/wsl/");
	hidden_copy(s, l, name, by, out);
}

const char *loader_why_name(enum loader_why w)
{
	static const char *const names[] = {
		[LOADER_NOT_FOUND] = "not found", [LOADER_PRELOAD] = "LD_PRELOAD", [LOADER_CTYPES] = "import torch",
		[LOADER_RPATH] = "DT_RPATH", [LOADER_LIBRARY_PATH] = "LD_LIBRARY_PATH", [LOADER_RUNPATH] = "DT_RUNPATH",
		[LOADER_CACHE] = "ld.so.cache", [LOADER_DEFAULT] = "default folder", [LOADER_PATH] = "path",
	};

	return (size_t)w < sizeof(names) / sizeof(names[0]) ? names[w] : "unknown";
}

static int session_find(const struct loader_session *l, const char *start)
{
	for (size_t i = 0; i < l->n_objects; i++)
		if (l->object[i].soname && str_starts(l->object[i].soname, start) && !l->object[i].again)
			return (int)i;
	return 0;
}

static int session_begin(struct scan *s, struct loader_session *l, const char *exe)
{
	return loader_begin(l, s->pool, s->root, s->in->cwd, exe, scan_variable(s, "LD_LIBRARY_PATH"),
			    scan_variable(s, "LD_PRELOAD"));
}

/* The interpreter of a captured tree may be missing: its libraries then are those of a plain program. */
static void session_begin_python(struct env_work *w, struct loader_session *l)
{
	int rc = session_begin(w->s, l, w->e->interpreter);

	if (rc == 0)
		return;
	loader_end(l);
	if (w->e->interpreter)
		w->e->loader.reason = pool_printf(w->s->pool, "the interpreter cannot be read: %s", strerror(-rc));
	session_begin(w->s, l, NULL);
}

void env_loader(struct env_work *w, struct pyenvs *out)
{
	struct loader_session l;

	if (!w->e->torch.dir)
		return;
	session_begin_python(w, &l);
	torch_load_all(w, &l);
	loader_report(w, &l, &w->e->loader);
	if (w->e == out->env) {
		loader_driver_report(w->s, &l, "libcuda.so.1", session_find(&l, "libcudart.so"), &out->libcuda);
		loader_driver_report(w->s, &l, "libnvidia-ml.so.1", session_find(&l, "libc10_cuda.so"), &out->libnvml);
	}
	loader_end(&l);
}

void env_driver_libraries(struct scan *s, struct pyenvs *out)
{
	struct loader_session l;

	if (out->n_envs && out->env[0].torch.dir && !s->in->no_loader)
		return;		/* asked with torch's libraries in place */
	session_begin(s, &l, NULL);
	loader_driver_report(s, &l, "libcuda.so.1", 0, &out->libcuda);
	loader_driver_report(s, &l, "libnvidia-ml.so.1", 0, &out->libnvml);
	loader_end(&l);
}
