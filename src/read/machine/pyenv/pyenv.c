/* SPDX-License-Identifier: Apache-2.0
 * Python environments under a root (see pyenv.h): which can be found, and the steps for each.
 */
#include "read/machine/pyenv/pyenv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/scan.h"

#define SMALL (1u << 16)
#define ENVS_MAX	8
#define PATH_DIRS_MAX	256

static void env_set_version(struct pyenv *e, const char *text)
{
	int part[3] = {-1, -1, -1}, n = 0;

	for (; n < 3 && isdigit((unsigned char)*text); n++) {
		char *end;
		long v = strtol(text, &end, 10);

		part[n] = v < 1000 ? (int)v : -1;
		text = *end == '.' ? end + 1 : "";
	}
	if (part[0] < 2 || part[1] < 0)
		return;
	e->major = part[0];
	e->minor = part[1];
	e->micro = part[2];
}

/* "python3.11", "python3.13t" */
static void env_version_from_name(struct pyenv *e, const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (str_starts(name, "python") && isdigit((unsigned char)name[6]))
		env_set_version(e, name + 6);
}

/* lib/pythonX.Y with a standard library in it, or at least packages. */
static void env_version_from_lib(struct scan *s, struct pyenv *e)
{
	const char *lib = scan_join(s, e->prefix, "lib"), *dir;
	bool cut = false;
	char **names;
	int n = tree_list(s->root, lib, s->pool, LIST_MAX, &names, &cut);

	for (int i = 0; i < n; i++) {
		struct pyenv found = {.major = -1, .minor = -1};

		if (!str_starts(names[i], "python3."))
			continue;
		env_version_from_name(&found, names[i]);
		dir = scan_join(s, lib, names[i]);
		if (found.minor <= e->minor || !(tree_is_file(s->root, scan_join(s, dir, "os.py")) ||
						 tree_is_dir(s->root, scan_join(s, dir, "site-packages"))))
			continue;
		e->major = 3;
		e->minor = found.minor;
	}
}

/* #define PY_VERSION "3.11.2" where the headers are installed. */
static void env_micro_from_headers(struct scan *s, struct pyenv *e)
{
	const char *prefix = e->base ? e->base : e->prefix, *file, *text, *p;
	struct pyenv found = {.major = -1, .minor = -1, .micro = -1};

	file = pool_printf(s->pool, "%s/include/python%d.%d/patchlevel.h", prefix, e->major, e->minor);
	text = scan_text(s, file, SMALL, NULL);
	p = text ? strstr(text, "#define PY_VERSION ") : NULL;
	p = p ? p : text ? strstr(text, "#define PY_VERSION\t") : NULL;
	p = p ? strchr(p, '"') : NULL;
	if (p)
		env_set_version(&found, p + 1);
	if (found.major == e->major && found.minor == e->minor)
		e->micro = found.micro;
}

static const char *config_value(struct scan *s, const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		const char *v = p + strspn(p, " \t");
		size_t len;

		if (strncasecmp(v, key, n) != 0)
			continue;
		v += n + strspn(v + n, " \t");
		if (*v++ != '=')
			continue;
		v += strspn(v, " \t");
		len = strcspn(v, "\r\n");
		while (len && (v[len - 1] == ' ' || v[len - 1] == '\t'))
			len--;
		return len ? pool_copy(s->pool, v, len) : NULL;
	}
	return NULL;
}

static void env_read_venv(struct scan *s, struct pyenv *e)
{
	const char *file = scan_join(s, e->prefix, "pyvenv.cfg"), *text = scan_text(s, file, SMALL, NULL), *home, *v;

	e->kind = PYENV_VENV;
	if (!text) {
		e->reason = "pyvenv.cfg cannot be read";
		return;
	}
	v = config_value(s, text, "version_info");
	v = v ? v : config_value(s, text, "version");
	if (v)
		env_set_version(e, v);
	home = config_value(s, text, "home");
	if (!home || home[0] != '/')
		return;
	e->base = scan_parent(s, home);
	if (!tree_is_dir(s->root, home))
		e->reason = pool_printf(s->pool, "the Python that it was created from is gone: %s", home);
}

static const char *find_interpreter(struct scan *s, const char *prefix)
{
	static const char *const names[] = {"bin/python", "bin/python3", NULL};

	for (const char *const *n = names; *n; n++)
		if (tree_is_file(s->root, scan_join(s, prefix, *n)))
			return scan_join(s, prefix, *n);
	return NULL;
}

static bool looks_like_site(struct scan *s, const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return (slash && (strcmp(slash, "/site-packages") == 0 || strcmp(slash, "/dist-packages") == 0)) ||
	       tree_is_dir(s->root, scan_join(s, dir, "torch"));
}

static bool env_of_prefix(struct scan *s, const char *prefix, struct pyenv *e)
{
	*e = (struct pyenv){.prefix = prefix, .major = -1, .minor = -1, .micro = -1, .kind = PYENV_OTHER};
	if (!tree_is_dir(s->root, prefix))
		return false;
	e->interpreter = find_interpreter(s, prefix);
	if (tree_is_file(s->root, scan_join(s, prefix, "pyvenv.cfg")))
		env_read_venv(s, e);
	else if (tree_is_dir(s->root, scan_join(s, prefix, "conda-meta")))
		e->kind = PYENV_CONDA;
	else if (strcmp(prefix, "/usr") == 0)
		e->kind = PYENV_SYSTEM;
	if (e->kind != PYENV_VENV && e->interpreter) {
		char real[TREE_PATH_MAX];

		if (tree_resolve(s->root, e->interpreter, real) == 0)
			env_version_from_name(e, real);
	}
	if (e->minor < 0 && e->interpreter)
		env_version_from_name(e, e->interpreter);
	if (e->minor < 0)
		env_version_from_lib(s, e);
	if (e->minor >= 0 && e->micro < 0)
		env_micro_from_headers(s, e);
	if (!e->interpreter && !e->reason && e->kind == PYENV_VENV)
		e->reason = "it has no working interpreter: bin/python is missing or a link to nothing";
	/* a folder of packages without a Python: `pip install --target`, an unpacked wheel */
	return e->kind != PYENV_OTHER || e->interpreter || e->minor >= 0 || looks_like_site(s, prefix);
}

/* pyenv's shims are scripts; which Python they start is in a variable or a file. */
static const char *behind_shim(struct scan *s, const char *path)
{
	const char *folder = scan_parent(s, path), *home = scan_parent(s, folder), *name = strrchr(path, '/') + 1, *v;
	char *text;

	if (!str_ends(folder, "/shims"))
		return NULL;
	v = scan_variable(s, "PYENV_VERSION");
	for (const char *d = s->in->cwd; !v && d && d[0] == '/'; d = d[1] ? scan_parent(s, d) : NULL) {
		text = scan_text(s, scan_join(s, d, ".python-version"), SMALL, NULL);
		v = text && text[0] ? text : NULL;
	}
	if (!v)
		v = scan_text(s, scan_join(s, home, "version"), SMALL, NULL);
	if (!v || !v[strspn(v, " \n")])
		v = "system";
	v += strspn(v, " \n");
	v = pool_copy(s->pool, v, strcspn(v, ": \r\n"));
	if (strchr(v, '/') || strcmp(v, "system") == 0)
		return NULL;
	return pool_printf(s->pool, "%s/versions/%s/bin/%s", home, v, name);
}

static const char *venv_prefix(struct scan *s, const char *interpreter)
{
	const char *dir = scan_parent(s, interpreter), *up = scan_parent(s, dir);

	if (tree_is_file(s->root, scan_join(s, dir, "pyvenv.cfg")))
		return dir;
	return tree_is_file(s->root, scan_join(s, up, "pyvenv.cfg")) ? up : NULL;
}

/* Not an interpreter we can follow: report it instead of guessing. */
static bool env_unknown(struct pyenv *e, const char *path, const char *reason)
{
	*e = (struct pyenv){.interpreter = path, .reason = reason, .major = -1, .minor = -1, .micro = -1};
	return true;
}

static bool env_of_interpreter(struct scan *s, const char *path, struct pyenv *e)
{
	char real[TREE_PATH_MAX];
	struct elf_file f;
	const char *prefix, *behind;
	int rc = tree_resolve(s->root, path, real);

	if (rc)
		return env_unknown(e, path, pool_printf(s->pool, "%s", strerror(-rc)));
	prefix = venv_prefix(s, path);
	if (!prefix) {
		rc = elf_open(&f, s->pool, s->root, real, 0);
		if (rc)
			return env_unknown(e, path, pool_printf(s->pool, "%s", strerror(-rc)));
		elf_close(&f);
		behind = f.broken ? behind_shim(s, path) : NULL;
		if (behind)
			return tree_is_file(s->root, behind) ? env_of_interpreter(s, behind, e) :
				env_unknown(e, path, pool_printf(s->pool, "the shim leads to %s, which does not exist", behind));
		if (f.broken)
			return env_unknown(e, path, "it is not a program but a script or a damaged file");
		prefix = scan_parent(s, scan_parent(s, pool_strdup(s->pool, real)));
	}
	if (!env_of_prefix(s, prefix, e))
		return env_unknown(e, path, "no environment was found around it");
	if (e->kind != PYENV_VENV)
		env_version_from_name(e, real);
	e->interpreter = path;
	return true;
}

static bool same_prefix(struct scan *s, const struct pyenv *a, const struct pyenv *b)
{
	char x[TREE_PATH_MAX], y[TREE_PATH_MAX];

	if (!a->prefix || !b->prefix)
		return !a->prefix && !b->prefix && strcmp(a->interpreter, b->interpreter) == 0;
	return strcmp(a->prefix, b->prefix) == 0 || (tree_resolve(s->root, a->prefix, x) == 0 &&
						     tree_resolve(s->root, b->prefix, y) == 0 && strcmp(x, y) == 0);
}

static void env_add(struct scan *s, struct pyenvs *out, const struct pyenv *e, enum pyenv_origin origin)
{
	for (size_t i = 0; i < out->n_envs; i++)
		if (same_prefix(s, &out->env[i], e)) {
			out->env[i].origin |= origin;
			return;
		}
	if (out->n_envs == ENVS_MAX)
		return;
	out->env[out->n_envs] = *e;
	out->env[out->n_envs++].origin = origin;
}

static bool is_program(struct scan *s, const char *path)
{
	struct stat st;

	return tree_stat(s->root, path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* The first of both names in the earliest folder of PATH. Shims that lead to the system's Python are passed over. */
static bool env_find_in_path(struct scan *s, const char *const *names, struct pyenv *e)
{
	const char *p = scan_variable(s, "PATH");
	struct pyenv first = {0};

	for (int i = 0; p && i < PATH_DIRS_MAX; i++) {
		size_t n = strcspn(p, ":");
		const char *dir = n ? scan_absolute(s, pool_copy(s->pool, p, n)) : s->in->cwd;

		for (const char *const *name = names; dir && *name; name++) {
			if (!is_program(s, scan_join(s, dir, *name)) ||
			    !env_of_interpreter(s, scan_join(s, dir, *name), e))
				continue;
			if (e->kind != PYENV_UNKNOWN && e->major != 2)	/* an old `python` next to a `python3` */
				return true;
			if (!first.interpreter)
				first = *e;
		}
		p = p[n] ? p + n + 1 : NULL;
	}
	*e = first;
	return first.interpreter != NULL;
}

static void env_find_asked(struct scan *s, struct pyenvs *out)
{
	const char *names[] = {s->in->python, NULL}, *path = scan_absolute(s, s->in->python);
	struct pyenv e;
	bool found;

	if (!strchr(s->in->python, '/') && !(path && tree_is_dir(s->root, path)))
		found = env_find_in_path(s, names, &e);
	else if (path && tree_is_dir(s->root, path))
		found = env_of_prefix(s, path, &e);
	else
		found = path && tree_is_file(s->root, path) && env_of_interpreter(s, path, &e);
	if (found)
		env_add(s, out, &e, PYENV_ASKED);
	else
		out->reason = pool_printf(s->pool, "%s is neither a Python interpreter nor the folder of an environment",
					  s->in->python);
}

static void env_find_variable(struct scan *s, struct pyenvs *out, const char *name, enum pyenv_origin origin)
{
	const char *value = scan_variable(s, name);
	struct pyenv e;

	if (!value || value[0] != '/')
		return;
	if (env_of_prefix(s, scan_absolute(s, value), &e))
		env_add(s, out, &e, origin);
}

static void env_find_near(struct scan *s, struct pyenvs *out)
{
	static const char *const names[] = {".venv", "venv", NULL};
	struct pyenv e;

	for (const char *const *n = names; s->in->cwd && *n; n++)
		if (env_of_prefix(s, scan_join(s, s->in->cwd, *n), &e) && e.kind == PYENV_VENV)
			env_add(s, out, &e, PYENV_NEAR);
}

static void env_find(struct scan *s, struct pyenvs *out)
{
	static const char *const names[] = {"python", "python3", NULL};
	struct pyenv e;

	out->env = pool_alloc(s->pool, ENVS_MAX * sizeof(*out->env));
	if (s->in->python) {
		env_find_asked(s, out);
		return;
	}
	if (env_find_in_path(s, names, &e))
		env_add(s, out, &e, PYENV_PATH);
	env_find_variable(s, out, "VIRTUAL_ENV", PYENV_VIRTUAL_ENV);
	env_find_variable(s, out, "CONDA_PREFIX", PYENV_CONDA_PREFIX);
	env_find_near(s, out);
	if (is_program(s, "/usr/bin/python3") && env_of_interpreter(s, "/usr/bin/python3", &e))
		env_add(s, out, &e, PYENV_USR);
	if (out->n_envs == 0)
		out->reason = "no python was found in PATH or in /usr/bin";
}

void pyenv_scan(struct pyenvs *out, const struct pyenv_input *in)
{
	struct scan s = {.pool = &out->pool, .root = in->root, .in = in};

	*out = (struct pyenvs){0};
	out->pythonhome = scan_variable(&s, "PYTHONHOME");
	out->pythonpath = scan_variable(&s, "PYTHONPATH");
	out->pythonhome = out->pythonhome ? pool_strdup(s.pool, out->pythonhome) : NULL;
	out->pythonpath = out->pythonpath ? pool_strdup(s.pool, out->pythonpath) : NULL;
	env_find(&s, out);
	for (size_t i = 0; i < out->n_envs; i++) {
		struct env_work w = {.s = &s, .e = &out->env[i]};

		env_folders(&s, &out->env[i]);
		env_packages(&w);
		env_torch(&w);
		if (!s.in->no_extensions)
			env_extensions(&w);
		if (!s.in->no_loader)
			env_loader(&w, out);
	}
	env_driver_libraries(&s, out);
}

void pyenv_release(struct pyenvs *p)
{
	pool_release(&p->pool);
	*p = (struct pyenvs){0};
}

const struct py_package *pyenv_package(const struct pyenv *e, const char *name)
{
	size_t low = 0, high = e->n_packages;

	while (low < high) {	/* the first of that name */
		size_t mid = low + (high - low) / 2;

		if (strcmp(e->package[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < e->n_packages && strcmp(e->package[low].name, name) == 0 ? &e->package[low] : NULL;
}

const char *const pyenv_kinds[] = {[PYENV_UNKNOWN] = "unknown", [PYENV_VENV] = "venv", [PYENV_CONDA] = "conda",
				   [PYENV_SYSTEM] = "system", [PYENV_OTHER] = "other", NULL};

const char *pyenv_kind_name(enum pyenv_kind k)
{
	return k <= PYENV_OTHER ? pyenv_kinds[k] : "unknown";
}

const char *const torch_builds[] = {
	[TORCH_BUILD_UNKNOWN] = "unknown", [TORCH_BUILD_CPU] = "cpu", [TORCH_BUILD_CUDA] = "cuda",
	[TORCH_BUILD_ROCM] = "rocm",	   [TORCH_BUILD_XPU] = "xpu", NULL};

const char *torch_build_name(enum torch_build b)
{
	return b <= TORCH_BUILD_XPU ? torch_builds[b] : "unknown";
}
