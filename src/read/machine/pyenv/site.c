/* SPDX-License-Identifier: Apache-2.0
 * The folders that `import` searches, in the order that Python's site module builds.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "read/machine/pyenv/scan.h"

#define FOLDERS_MAX	64
#define PTH_FILES_MAX	64
#define PTH_LINES_MAX	256
#define PTH_BYTES_MAX	(1u << 16)

static bool same_folder(struct scan *s, const char *a, const char *b)
{
	char x[TREE_PATH_MAX], y[TREE_PATH_MAX];

	return strcmp(a, b) == 0 ||
	       (tree_resolve(s->root, a, x) == 0 && tree_resolve(s->root, b, y) == 0 && strcmp(x, y) == 0);
}

static void folder_add(struct scan *s, struct pyenv *e, const char *path, enum py_folder_kind kind)
{
	struct stat st;
	int rc;

	/* the current folder is searched for other things, so it may be here twice */
	for (size_t i = 0; i < e->n_folders; i++)
		if (e->folder[i].kind != PY_FOLDER_CWD && same_folder(s, e->folder[i].path, path))
			return;
	if (e->n_folders == FOLDERS_MAX) {
		e->cut = true;
		return;
	}
	rc = tree_stat(s->root, path, &st);
	e->folder[e->n_folders++] = (struct py_folder){
		.path = path, .kind = kind, .there = rc == 0 && S_ISDIR(st.st_mode),
		.reason = rc && rc != -ENOENT && rc != -ENOTDIR ? pool_printf(s->pool, "%s", strerror(-rc)) : NULL,
	};
}

static void folders_add_pythonpath(struct scan *s, struct pyenv *e)
{
	const char *p = scan_variable(s, "PYTHONPATH");

	for (int i = 0; p && i < FOLDERS_MAX; i++) {
		size_t n = strcspn(p, ":");
		const char *dir = n ? scan_absolute(s, pool_copy(s->pool, p, n)) : s->in->cwd;

		if (dir)
			folder_add(s, e, dir, PY_FOLDER_PYTHONPATH);
		p = p[n] ? p + n + 1 : NULL;
	}
}

static void folder_add_if_there(struct scan *s, struct pyenv *e, const char *path, enum py_folder_kind kind)
{
	if (tree_is_dir(s->root, path))
		folder_add(s, e, path, kind);
}

/* Debian puts what pip installs into /usr/local, Fedora too, under other names; elsewhere it is under the prefix. */
static void folders_add_sites(struct scan *s, struct pyenv *e, const char *prefix, enum py_folder_kind kind)
{
	const char *version = pool_printf(s->pool, "python%d.%d", e->major, e->minor);
	const char *lib, *lib64;
	bool debian = strcmp(prefix, "/usr") == 0 && tree_is_dir(s->root, "/usr/lib/python3/dist-packages");

	if (debian) {
		folder_add_if_there(s, e, pool_printf(s->pool, "/usr/local/lib/%s/dist-packages", version), kind);
		folder_add_if_there(s, e, "/usr/lib/python3/dist-packages", kind);
		folder_add_if_there(s, e, pool_printf(s->pool, "/usr/lib/%s/dist-packages", version), kind);
		return;
	}
	if (strcmp(prefix, "/usr") == 0) {
		folder_add_if_there(s, e, pool_printf(s->pool, "/usr/local/lib64/%s/site-packages", version), kind);
		folder_add_if_there(s, e, pool_printf(s->pool, "/usr/local/lib/%s/site-packages", version), kind);
	}
	lib = pool_printf(s->pool, "%s/lib/%s/site-packages", prefix, version);
	lib64 = pool_printf(s->pool, "%s/lib64/%s/site-packages", prefix, version);
	if (!same_folder(s, lib, lib64))
		folder_add_if_there(s, e, lib64, kind);
	folder_add(s, e, lib, kind);
}

static void folders_add_user(struct scan *s, struct pyenv *e)
{
	const char *base = scan_variable(s, "PYTHONUSERBASE"), *home = scan_variable(s, "HOME");

	if (scan_variable(s, "PYTHONNOUSERSITE") || (!base && !home))
		return;
	base = base ? base : scan_join(s, home, ".local");
	base = pool_printf(s->pool, "%s/lib/python%d.%d/site-packages", base, e->major, e->minor);
	folder_add_if_there(s, e, base, PY_FOLDER_USER);
}

static bool sees_system(struct scan *s, struct pyenv *e)
{
	const char *text = scan_text(s, scan_join(s, e->prefix, "pyvenv.cfg"), PTH_BYTES_MAX, NULL), *p;

	p = text ? strcasestr(text, "include-system-site-packages") : NULL;
	p = p ? p + strcspn(p, "=\n") : NULL;
	return p && *p == '=' && strncasecmp(p + 1 + strspn(p + 1, " \t"), "true", 4) == 0;
}

/* Lines of a .pth file that are folders; those that start with "import" are code and are not run. */
static void folders_add_pth(struct scan *s, struct pyenv *e, const char *folder, const char *file)
{
	char *text = scan_text(s, scan_join(s, folder, file), PTH_BYTES_MAX, NULL);
	const char *path;

	for (int i = 0; text && *text && i < PTH_LINES_MAX; i++) {
		size_t n = strcspn(text, "\r\n");
		bool more = text[n] != '\0';

		text[n] = '\0';
		if (n && text[0] != '#' && !str_starts(text, "import ") && !str_starts(text, "import\t")) {
			path = text[0] == '/' ? text : scan_join(s, folder, text);
			folder_add_if_there(s, e, path, PY_FOLDER_PTH);
		}
		text += n + more;
	}
}

static void folders_add_pths(struct scan *s, struct pyenv *e, const char *folder)
{
	bool cut = false;
	char **names;
	int n = tree_list(s->root, folder, s->pool, LIST_MAX, &names, &cut), files = 0;

	for (int i = 0; i < n && files < PTH_FILES_MAX; i++)
		if (str_ends(names[i], ".pth")) {
			folders_add_pth(s, e, folder, names[i]);
			files++;
		}
	e->cut |= cut;
}

/* site reads the .pth files of a folder right after it has added the folder. */
static void folders_add_with_pths(struct scan *s, struct pyenv *e, void (*more)(struct scan *, struct pyenv *))
{
	size_t before = e->n_folders, end;

	more(s, e);
	end = e->n_folders;
	for (size_t i = before; i < end; i++)
		folders_add_pths(s, e, e->folder[i].path);
}

static void folders_add_own(struct scan *s, struct pyenv *e)
{
	folders_add_sites(s, e, e->prefix, PY_FOLDER_SITE);
}

static void folders_add_base(struct scan *s, struct pyenv *e)
{
	folders_add_sites(s, e, e->base, PY_FOLDER_BASE);
}

void env_folders(struct scan *s, struct pyenv *e)
{
	e->folder = pool_alloc(s->pool, FOLDERS_MAX * sizeof(*e->folder));
	if (s->in->cwd && !scan_variable(s, "PYTHONSAFEPATH"))
		folder_add(s, e, s->in->cwd, PY_FOLDER_CWD);
	folders_add_pythonpath(s, e);
	if (!e->prefix)
		return;
	if (e->minor < 0) {
		folder_add(s, e, e->prefix, PY_FOLDER_SITE);	/* a folder of packages, without a Python */
		return;
	}
	if (e->kind != PYENV_VENV) {
		folders_add_with_pths(s, e, folders_add_user);
		folders_add_with_pths(s, e, folders_add_own);
		return;
	}
	folders_add_with_pths(s, e, folders_add_own);
	if (e->base && sees_system(s, e)) {
		folders_add_with_pths(s, e, folders_add_user);
		folders_add_with_pths(s, e, folders_add_base);
	}
}
