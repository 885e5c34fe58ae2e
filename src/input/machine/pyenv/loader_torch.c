/* SPDX-License-Identifier: Apache-2.0
 * The steps of `import torch` for the loader: its own preloads, its libraries, and what these open late.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "input/machine/pyenv/loader_report.h"
#include "input/machine/pyenv/loader_session.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "input/machine/pyenv/python_text.h"
#include "base/banned.h"

#define INIT_MAX	(1u << 20)

static const char *match_in(struct scan *s, const char *dir, const char *pattern)
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
static const char *find_preload(struct env_work *w, const struct torch_preload *p)
{
	struct scan *s = w->s;
	const char *cuda = w->e->torch.cuda, *found = NULL;
	int major = cuda ? (int)strcspn(cuda, ".") : 0;

	for (size_t i = 0; i < w->e->n_folders && !found; i++) {
		const char *folder = w->e->folder[i].path;

		if (!w->e->folder[i].there)
			continue;
		found = match_in(s, pool_printf(s->pool, "%s/nvidia/%s/lib", folder, p->folder), p->pattern);
		if (!found && cuda)
			found = match_in(s, pool_printf(s->pool, "%s/nvidia/cu%.*s/lib", folder, major, cuda), p->pattern);
		if (!found)
			found = match_in(s, pool_printf(s->pool, "%s/%s/lib", folder, p->folder), p->pattern);
	}
	return found;
}

/* Ends at the first one that is not there, as the exception in torch does. */
static void preload(struct env_work *w, struct loader_session *l, const struct torch_preload *list, int n)
{
	for (int i = 0; i < n; i++) {
		const char *path = find_preload(w, &list[i]);

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

static void load_global_deps(struct env_work *w, struct loader_session *l)
{
	struct scan *s = w->s;
	const char *deps = scan_join(s, w->e->torch.dir, "lib/libtorch_global_deps.so");
	const char *text = scan_text(s, scan_join(s, w->e->torch.dir, "__init__.py"), INIT_MAX, NULL);
	struct torch_preloads p = {0};

	if (text)
		torch_preloads_read(s, text, &p);
	if (!tree_is_file(s->root, deps))
		return;
	if (loader_open(l, deps, 0, LOADER_PATH, false) >= 0) {
		if (!p.when || any_path_has(l, p.when))
			preload(w, l, p.always, p.n_always);
		return;
	}
	preload(w, l, p.rescue, p.n_rescue);
	loader_open(l, deps, 0, LOADER_PATH, true);
}

/* torch/_C.cpython-312-x86_64-linux-gnu.so of this Python, and what it leads to. */
static void load_module(struct env_work *w, struct loader_session *l)
{
	struct scan *s = w->s;
	const char *dir = w->e->torch.dir, *module = NULL;

	if (w->e->minor >= 0)
		module = match_in(s, dir, pool_printf(s->pool, "_C.cpython-%d%d*.so", w->e->major, w->e->minor));
	if (!module)
		module = match_in(s, dir, "_C.*so");
	if (!module)
		module = scan_join(s, dir, "lib/libtorch_python.so");
	loader_open(l, module, 0, LOADER_PATH, true);
	if (w->e->torch.cuda_library)	/* where the module's list is not what we think, torch's CUDA part still counts */
		loader_open(l, w->e->torch.cuda_library, 0, LOADER_PATH, true);
}

/* Parts that a library opens by name once it is used; they lie beside the wheel's copy. */
static void load_late(struct env_work *w, struct loader_session *l, const char *library, const char *parts)
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

static void load_all(struct env_work *w, struct loader_session *l)
{
	const char *nvrtc = scan_join(w->s, w->e->torch.dir, "lib/libcaffe2_nvrtc.so");

	load_global_deps(w, l);
	load_module(w, l);
	l->late = true;
	load_late(w, l, "libcudnn.so.", "libcudnn_");
	if (tree_is_file(w->s->root, nvrtc))
		loader_open(l, nvrtc, 0, LOADER_PATH, true);
	load_late(w, l, "libnvrtc.so.", "libnvrtc-builtins");
}

static int find_loaded(const struct loader_session *l, const char *start)
{
	for (size_t i = 0; i < l->n_objects; i++)
		if (l->object[i].soname && str_starts(l->object[i].soname, start) && !l->object[i].again)
			return (int)i;
	return 0;
}

static int begin(struct scan *s, struct loader_session *l, const char *exe)
{
	return loader_begin(l, s->pool, s->root, s->in->cwd, exe, scan_variable(s, "LD_LIBRARY_PATH"),
			    scan_variable(s, "LD_PRELOAD"));
}

/* The interpreter of a captured tree may be missing: its libraries then are those of a plain program. */
static void begin_python(struct env_work *w, struct loader_session *l)
{
	int rc = begin(w->s, l, w->e->interpreter);

	if (rc == 0)
		return;
	loader_end(l);
	if (w->e->interpreter)
		w->e->loader.reason = pool_printf(w->s->pool, "the interpreter cannot be read: %s", strerror(-rc));
	begin(w->s, l, NULL);
}

void env_loader(struct env_work *w, struct pyenvs *out)
{
	struct loader_session l;

	if (!w->e->torch.dir)
		return;
	begin_python(w, &l);
	load_all(w, &l);
	loader_report(w, &l, &w->e->loader);
	if (w->e == out->env) {
		loader_driver_report(w->s, &l, "libcuda.so.1", find_loaded(&l, "libcudart.so"), &out->libcuda);
		loader_driver_report(w->s, &l, "libnvidia-ml.so.1", find_loaded(&l, "libc10_cuda.so"), &out->libnvml);
	}
	loader_end(&l);
}

void env_driver_libraries(struct scan *s, struct pyenvs *out)
{
	struct loader_session l;

	if (out->n_envs && out->env[0].torch.dir && !s->in->no_loader)
		return;		/* asked with torch's libraries in place */
	begin(s, &l, NULL);
	loader_driver_report(s, &l, "libcuda.so.1", 0, &out->libcuda);
	loader_driver_report(s, &l, "libnvidia-ml.so.1", 0, &out->libnvml);
	loader_end(&l);
}
