/* SPDX-License-Identifier: Apache-2.0
 * From an interpreter or a folder to the environment that Python would find itself in.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "base/banned.h"

#define SMALL (1u << 16)

static void set_version(struct pyenv *e, const char *text)
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
static void version_from_name(struct pyenv *e, const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	if (str_starts(name, "python") && isdigit((unsigned char)name[6]))
		set_version(e, name + 6);
}

/* lib/pythonX.Y with a standard library in it, or at least packages. */
static void version_from_lib(struct scan *s, struct pyenv *e)
{
	const char *lib = scan_join(s, e->prefix, "lib"), *dir;
	bool cut = false;
	char **names;
	int n = tree_list(s->root, lib, s->pool, LIST_MAX, &names, &cut);

	for (int i = 0; i < n; i++) {
		struct pyenv found = {.major = -1, .minor = -1};

		if (!str_starts(names[i], "python3."))
			continue;
		version_from_name(&found, names[i]);
		dir = scan_join(s, lib, names[i]);
		if (found.minor <= e->minor || !(tree_is_file(s->root, scan_join(s, dir, "os.py")) ||
						 tree_is_dir(s->root, scan_join(s, dir, "site-packages"))))
			continue;
		e->major = 3;
		e->minor = found.minor;
	}
}

/* #define PY_VERSION "3.11.2" where the headers are installed. */
static void micro_from_headers(struct scan *s, struct pyenv *e)
{
	const char *prefix = e->base ? e->base : e->prefix, *file, *text, *p;
	struct pyenv found = {.major = -1, .minor = -1, .micro = -1};

	file = pool_printf(s->pool, "%s/include/python%d.%d/patchlevel.h", prefix, e->major, e->minor);
	text = scan_text(s, file, SMALL, NULL);
	p = text ? strstr(text, "#define PY_VERSION ") : NULL;
	p = p ? p : text ? strstr(text, "#define PY_VERSION\t") : NULL;
	p = p ? strchr(p, '"') : NULL;
	if (p)
		set_version(&found, p + 1);
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

static void read_venv(struct scan *s, struct pyenv *e)
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
		set_version(e, v);
	home = config_value(s, text, "home");
	if (!home || home[0] != '/')
		return;
	e->base = scan_parent(s, home);
	if (!tree_is_dir(s->root, home))
		e->reason = pool_printf(s->pool, "the Python that it was made from is gone: %s", home);
}

static void finish(struct scan *s, struct pyenv *e)
{
	if (e->minor < 0 && e->interpreter)
		version_from_name(e, e->interpreter);
	if (e->minor < 0)
		version_from_lib(s, e);
	if (e->minor >= 0 && e->micro < 0)
		micro_from_headers(s, e);
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

bool env_of_prefix(struct scan *s, const char *prefix, struct pyenv *e)
{
	*e = (struct pyenv){.prefix = prefix, .major = -1, .minor = -1, .micro = -1, .kind = PYENV_OTHER};
	if (!tree_is_dir(s->root, prefix))
		return false;
	e->interpreter = find_interpreter(s, prefix);
	if (tree_is_file(s->root, scan_join(s, prefix, "pyvenv.cfg")))
		read_venv(s, e);
	else if (tree_is_dir(s->root, scan_join(s, prefix, "conda-meta")))
		e->kind = PYENV_CONDA;
	else if (strcmp(prefix, "/usr") == 0)
		e->kind = PYENV_SYSTEM;
	if (e->kind != PYENV_VENV && e->interpreter) {
		char real[TREE_PATH_MAX];

		if (tree_resolve(s->root, e->interpreter, real) == 0)
			version_from_name(e, real);
	}
	finish(s, e);
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

/* Not an interpreter we can follow: said, not guessed. */
static bool unknown(struct pyenv *e, const char *path, const char *reason)
{
	*e = (struct pyenv){.interpreter = path, .reason = reason, .major = -1, .minor = -1, .micro = -1};
	return true;
}

bool env_of_interpreter(struct scan *s, const char *path, struct pyenv *e)
{
	char real[TREE_PATH_MAX];
	struct elf_file f;
	const char *prefix, *behind;
	int rc = tree_resolve(s->root, path, real);

	if (rc)
		return unknown(e, path, pool_printf(s->pool, "%s", strerror(-rc)));
	prefix = venv_prefix(s, path);
	if (!prefix) {
		rc = elf_open(&f, s->pool, s->root, real, 0);
		if (rc)
			return unknown(e, path, pool_printf(s->pool, "%s", strerror(-rc)));
		elf_close(&f);
		behind = f.broken ? behind_shim(s, path) : NULL;
		if (behind)
			return tree_is_file(s->root, behind) ? env_of_interpreter(s, behind, e) :
				unknown(e, path, pool_printf(s->pool, "the shim leads to %s, which is not there", behind));
		if (f.broken)
			return unknown(e, path, "it is no program but a script or a damaged file");
		prefix = scan_parent(s, scan_parent(s, pool_strdup(s->pool, real)));
	}
	if (!env_of_prefix(s, prefix, e))
		return unknown(e, path, "no environment is found around it");
	if (e->kind != PYENV_VENV)
		version_from_name(e, real);
	e->interpreter = path;
	return true;
}
