/* SPDX-License-Identifier: Apache-2.0
 * Requirements between watched packages that are not met: torchvision for another torch, nvidia-* of another release.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "input/machine/pyenv/metadata.h"
#include "base/banned.h"

#define CLASHES_MAX	200
#define LINES_MAX	5000

static void add(struct env_work *w, enum py_clash_kind kind, const struct py_package *p, const struct requirement *r,
		const char *installed)
{
	struct pyenv *e = w->e;

	if (e->n_clashes == CLASHES_MAX) {
		e->cut = true;
		return;
	}
	for (size_t i = 0; i < e->n_clashes; i++)	/* said twice: once for itself, once for an extra */
		if (strcmp(e->clash[i].package, p->name) == 0 && strcmp(e->clash[i].requirement, r->text) == 0)
			return;
	e->clash[e->n_clashes++] = (struct py_clash){
		.kind = kind, .package = p->name, .version = p->version, .installed = installed,
		.requirement = pool_strdup(w->s->pool, r->text), .name = pool_strdup(w->s->pool, r->name),
	};
}

/* conda resolves requirements by names of its own, so that pip's are not all there in its environments. */
static bool installed_by_conda(struct env_work *w, const struct py_package *p)
{
	const char *text = scan_text(w->s, scan_join(w->s, p->info, "INSTALLER"), 64, NULL);

	return text && str_starts(text, "conda");
}

static void check_package(struct env_work *w, const struct py_package *p, const char *extras, int depth);

static void check_one(struct env_work *w, const struct py_package *p, const struct requirement *r, int depth)
{
	const struct py_package *have = pyenv_package(w->e, r->name);

	if (!have || have->source == PY_CONDA_META) {
		if (!have && !w->e->cut && !installed_by_conda(w, p))
			add(w, PY_CLASH_MISSING, p, r, NULL);
		return;
	}
	/* The folder says 2.5.1, torch/version.py 2.5.1+cu124: both satisfy "==2.5.1". */
	if (have->version && py_version_fits(have->version, r->specifiers) == 0)
		add(w, PY_CLASH_VERSION, p, r, have->version);
	if (r->extras[0] && depth == 0)
		check_package(w, have, r->extras, 1);
}

static void check_package(struct env_work *w, const struct py_package *p, const char *extras, int depth)
{
	const char *at = py_metadata_text(w->s, p), *line;
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
		if (py_requirement_parse(&r, line, len, marker, sizeof(marker)) && py_is_watched(r.name) &&
		    py_marker_true(r.marker, machine, w->e->minor, extras) == 1)
			check_one(w, p, &r, depth);
}

static void check_twice(struct env_work *w, const struct py_package *p)
{
	struct requirement r = {0};

	if (p->source == PY_CONDA_META || p[1].source != p->source || strcmp(p->name, p[1].name) != 0 ||
	    strcmp(p->folder, p[1].folder) != 0)
		return;
	str_copy(r.text, sizeof(r.text), p->name);
	str_copy(r.name, sizeof(r.name), p->name);
	add(w, PY_CLASH_TWICE, p, &r, p[1].version);
}

void env_requirements(struct env_work *w)
{
	struct pyenv *e = w->e;

	e->clash = pool_alloc(w->s->pool, CLASHES_MAX * sizeof(*e->clash));
	for (size_t i = 0; i < e->n_packages; i++) {
		const struct py_package *p = &e->package[i];

		if (!p->watched)
			continue;
		if (i + 1 < e->n_packages)
			check_twice(w, p);
		if (!p->hidden && p->source != PY_CONDA_META)
			check_package(w, p, "", 0);
	}
}
