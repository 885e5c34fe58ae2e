/* SPDX-License-Identifier: Apache-2.0
 * Which environments are in reach: the one asked for, or what PATH and the variables of activated ones lead to.
 */
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "input/machine/pyenv/pyenv_priv.h"
#include "base/banned.h"

#define ENVS_MAX	8
#define PATH_DIRS_MAX	256

static bool same_prefix(struct scan *s, const struct pyenv *a, const struct pyenv *b)
{
	char x[TREE_PATH_MAX], y[TREE_PATH_MAX];

	if (!a->prefix || !b->prefix)
		return !a->prefix && !b->prefix && strcmp(a->interpreter, b->interpreter) == 0;
	return strcmp(a->prefix, b->prefix) == 0 ||
	       (tree_resolve(s->root, a->prefix, x) == 0 && tree_resolve(s->root, b->prefix, y) == 0 && strcmp(x, y) == 0);
}

static void add(struct scan *s, struct pyenvs *out, const struct pyenv *e, enum pyenv_origin origin)
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
static bool find_in_path(struct scan *s, const char *const *names, struct pyenv *e)
{
	const char *p = scan_variable(s, "PATH");
	struct pyenv first = {0};

	for (int i = 0; p && i < PATH_DIRS_MAX; i++) {
		size_t n = strcspn(p, ":");
		const char *dir = n ? scan_absolute(s, pool_copy(s->pool, p, n)) : s->in->cwd;

		for (const char *const *name = names; dir && *name; name++) {
			if (!is_program(s, scan_join(s, dir, *name)) || !env_of_interpreter(s, scan_join(s, dir, *name), e))
				continue;
			if (e->kind != PYENV_UNKNOWN && e->major != 2)	/* an old `python` beside a `python3` */
				return true;
			if (!first.interpreter)
				first = *e;
		}
		p = p[n] ? p + n + 1 : NULL;
	}
	*e = first;
	return first.interpreter != NULL;
}

static void find_asked(struct scan *s, struct pyenvs *out)
{
	const char *names[] = {s->in->python, NULL}, *path = scan_absolute(s, s->in->python);
	struct pyenv e;
	bool found;

	if (!strchr(s->in->python, '/') && !(path && tree_is_dir(s->root, path)))
		found = find_in_path(s, names, &e);
	else if (path && tree_is_dir(s->root, path))
		found = env_of_prefix(s, path, &e);
	else
		found = path && tree_is_file(s->root, path) && env_of_interpreter(s, path, &e);
	if (found)
		add(s, out, &e, PYENV_ASKED);
	else
		out->reason = pool_printf(s->pool, "%s is neither a Python interpreter nor the folder of an environment",
					  s->in->python);
}

static void find_variable(struct scan *s, struct pyenvs *out, const char *name, enum pyenv_origin origin)
{
	const char *value = scan_variable(s, name);
	struct pyenv e;

	if (!value || value[0] != '/')
		return;
	if (env_of_prefix(s, scan_absolute(s, value), &e))
		add(s, out, &e, origin);
}

static void find_near(struct scan *s, struct pyenvs *out)
{
	static const char *const names[] = {".venv", "venv", NULL};
	struct pyenv e;

	for (const char *const *n = names; s->in->cwd && *n; n++)
		if (env_of_prefix(s, scan_join(s, s->in->cwd, *n), &e) && e.kind == PYENV_VENV)
			add(s, out, &e, PYENV_NEAR);
}

void env_find(struct scan *s, struct pyenvs *out)
{
	static const char *const names[] = {"python", "python3", NULL};
	struct pyenv e;

	out->env = pool_alloc(s->pool, ENVS_MAX * sizeof(*out->env));
	if (s->in->python) {
		find_asked(s, out);
		return;
	}
	if (find_in_path(s, names, &e))
		add(s, out, &e, PYENV_PATH);
	find_variable(s, out, "VIRTUAL_ENV", PYENV_VIRTUAL_ENV);
	find_variable(s, out, "CONDA_PREFIX", PYENV_CONDA_PREFIX);
	find_near(s, out);
	if (is_program(s, "/usr/bin/python3") && env_of_interpreter(s, "/usr/bin/python3", &e))
		add(s, out, &e, PYENV_USR);
	if (out->n_envs == 0)
		out->reason = "no python is found in PATH or in /usr/bin";
}
