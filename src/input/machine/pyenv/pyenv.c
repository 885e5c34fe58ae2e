/* SPDX-License-Identifier: Apache-2.0
 * Python environments under a root (see pyenv.h): the order of the steps.
 */
#include "input/machine/pyenv/pyenv.h"

#include <string.h>

#include "input/machine/pyenv/pyenv_priv.h"
#include "base/banned.h"

static void scan_one(struct scan *s, struct pyenvs *out, struct pyenv *e)
{
	struct env_work w = {.s = s, .e = e};

	env_folders(s, e);
	env_packages(&w);
	env_check_records(&w);
	env_requirements(&w);
	env_torch(&w);
	if (!s->in->no_extensions)
		env_extensions(&w);
	if (!s->in->no_loader)
		env_loader(&w, out);
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
	for (size_t i = 0; i < out->n_envs; i++)
		scan_one(&s, out, &out->env[i]);
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

const char *pyenv_kind_name(enum pyenv_kind k)
{
	static const char *const names[] = {"unknown", "venv", "conda", "system", "other"};

	return (size_t)k < sizeof(names) / sizeof(names[0]) ? names[k] : "unknown";
}

const char *torch_build_name(enum torch_build b)
{
	static const char *const names[] = {"unknown", "cpu", "cuda", "rocm", "xpu"};

	return (size_t)b < sizeof(names) / sizeof(names[0]) ? names[b] : "unknown";
}
