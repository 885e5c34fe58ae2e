/* SPDX-License-Identifier: Apache-2.0
 * Facts about the packages of the environment that is judged: what would be loaded, what is broken, what does not go
 * together, and what to install instead (see fact_machine.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "input/machine/observe.h"

/* --- the loader ------------------------------------------------------------------------------- */

static void set_other(struct casefile *f, const struct loader_file *l)
{
	fact_set_text(f, FACT_loader_name, l->soname);
	fact_set_text(f, FACT_loader_path, l->path);
	fact_set_text(f, FACT_loader_version, l->version);
	fact_set_text(f, FACT_loader_wheel_version, l->wheel_version);
	fact_set_text(f, FACT_loader_by, loader_why_name(l->why));
}

/* What a running process has loaded counts more than what a new one would load. */
static bool fill_loaded(struct casefile *f, const struct machine *m, const struct loader_result *l)
{
	size_t n = 0;

	if (!m->pid || !m->process.known)
		return false;
	for (size_t i = 0; i < l->n_files; i++) {
		const struct loader_file *want = &l->file[i];

		for (size_t k = 0; want->wheel && want->soname && k < m->process.n_libraries; k++) {
			const struct process_library *has = &m->process.library[k];
			size_t stem = strcspn(want->soname, ".");

			if (!has->name || strncmp(has->name, want->soname, stem) != 0 || has->name[stem] != '.' ||
			    strcmp(has->path, want->wheel) == 0 || (want->real && strcmp(has->path, want->real) == 0 &&
			    want->same != LOADER_SAME_NOT))
				continue;
			if (!n++) {
				set_other(f, want);
				fact_set_text(f, FACT_loader_path, has->path);
				fact_set_text(f, FACT_loader_version, has->version);
			}
		}
	}
	fact_set_number(f, FACT_loader_other, (double)n);
	fact_set_flag(f, FACT_loader_loaded, true);
	return true;
}

/* A tree that was copied without the system's own files: what is not in it may be on the machine. */
static bool system_is_there(const struct machine *m, const struct loader_result *l)
{
	if (m->host.os.id || m->host.os.kernel)
		return true;
	for (size_t i = 0; i < l->n_files; i++)
		if (!l->file[i].path && l->file[i].soname && str_starts(l->file[i].soname, "libc.so"))
			return false;
	return true;
}

void fill_machine_loader(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	const struct loader_result *l = &env->loader;
	const struct loader_file *other = NULL, *missing = NULL, *broken = NULL;

	if (!l->known)
		return;
	for (size_t i = 0; i < l->n_files; i++) {
		const struct loader_file *x = &l->file[i];

		/* the driver's own library has facts of its own */
		if (x->soname && str_starts(x->soname, "libcuda.so"))
			continue;
		if (!other && x->same == LOADER_SAME_NOT)
			other = x;
		if (!missing && !x->path && !x->late)
			missing = x;
		if (!broken && x->broken)
			broken = x;
	}
	if (!missing || system_is_there(m, l))
		fact_set_text(f, FACT_loader_missing, missing ? missing->soname : "");
	if (missing)
		fact_set_text(f, FACT_loader_missing_by, missing->needed_by);
	fact_set_text(f, FACT_loader_broken, broken ? pool_printf(f->pool, "%s: %s", broken->path, broken->broken) : "");
	if (fill_loaded(f, m, l))
		return;
	fact_set_number(f, FACT_loader_other, (double)l->n_other);
	fact_set_flag(f, FACT_loader_loaded, false);
	if (other)
		set_other(f, other);
}

/* --- packages --------------------------------------------------------------------------------- */

static void fill_broken_package(struct casefile *f, const struct pyenv *env)
{
	const struct py_package *broken = NULL;

	for (size_t i = 0; i < env->n_packages && !broken; i++) {
		const struct py_package *p = &env->package[i];

		if (!p->hidden && p->watched && (p->n_missing > 0 || p->n_cut > 0))
			broken = p;
	}
	fact_set_text(f, FACT_package_broken, broken ? broken->name : "");
	if (broken)
		fact_set_text(f, FACT_package_file, broken->missing);
}

static bool is_vision(const char *name)
{
	return name && (strcmp(name, "torchvision") == 0 || strcmp(name, "torchaudio") == 0);
}

/* "0.22" is the beginning of "0.22.1+cu128". */
static bool is_release(const char *version, const char *release)
{
	size_t n = strlen(release);

	return strncmp(version, release, n) == 0 && (version[n] == '\0' || version[n] == '.' || version[n] == '+');
}

#define NO_CUDA (-1)

/* The CUDA version that a package was built for, by its mark: "+cu128" is 12080, "+cpu" NO_CUDA. 0: it does not say, as
 * builds from source with "+git1234567" do not. */
static int marked_cuda(const char *version)
{
	const char *plus = strchr(version, '+');
	char *end;
	long n;

	if (!plus || strcmp(plus, "+cpu") == 0)
		return plus ? NO_CUDA : 0;
	if (!str_starts(plus, "+cu"))
		return 0;
	n = strtol(plus + 3, &end, 10);
	return n >= 90 && n < 1000 && !*end ? (int)(n / 10 * 1000 + n % 10 * 10) : 0;
}

static int torch_built_for(const struct py_torch *t)
{
	int cuda = cuda_number(t->cuda);

	return t->build == TORCH_BUILD_CPU ? NO_CUDA : cuda ? cuda : t->version ? marked_cuda(t->version) : 0;
}

/* Both compare when they are imported: torchaudio the whole version, torchvision since PyTorch 2.0 the major one. A build for the
 * CPU lacks the operators for the GPU. */
static bool is_built_apart(const char *name, int mine, int torch, const char *release)
{
	if (!mine || !torch || mine == torch)
		return false;
	return mine == NO_CUDA || torch == NO_CUDA || mine / 1000 != torch / 1000 || strcmp(name, "torchaudio") == 0 ||
	       (release && str_starts(release, "1."));
}

/* "2.9.0a0", "2.10.0.dev20251001": which release such a build goes with is not settled. */
static bool is_unfinished(const char *version)
{
	size_t n = strcspn(version, "+");

	return strcspn(version, "abcdefghijklmnopqrstuvwxyz") < n && !strstr(version, "post");
}

static bool check_vision(struct casefile *f, const struct pyenv *env, const char *name, const char *wanted)
{
	const struct py_package *p = pyenv_package(env, name);
	const char *version = env->torch.version;
	int torch = torch_built_for(&env->torch);
	bool apart;

	if (!p || !p->version || !version)
		return false;
	apart = is_built_apart(name, marked_cuda(p->version), torch, version);
	if (!apart && (!wanted || is_unfinished(version) || is_unfinished(p->version) || is_release(p->version, wanted)))
		return false;
	fact_set_text(f, FACT_vision_package, name);
	fact_set_text(f, FACT_vision_version, p->version);
	fact_set_text(f, FACT_vision_wanted, torch > 0 ? pool_printf(f->pool, "%s for CUDA %d.%d", wanted ? wanted : "a build", torch / 1000,
								      torch % 1000 / 10) : wanted ? wanted : "a build for the CPU");
	return true;
}

static void fill_clashes(struct casefile *f, const struct pyenv *env)
{
	const struct compat_torch *t = env->torch.version ? compat_torch(env->torch.version) : NULL;
	const struct py_clash *first = NULL;

	if (!check_vision(f, env, "torchvision", t ? t->vision : NULL) && !check_vision(f, env, "torchaudio", t ? t->audio : NULL))
		fact_set_text(f, FACT_vision_package, "");
	for (size_t i = 0; i < env->n_clashes && !first; i++)
		if (!is_vision(env->clash[i].package))
			first = &env->clash[i];
	fact_set_text(f, FACT_clash_package, first ? first->package : "");
	if (!first)
		return;
	fact_set_text(f, FACT_clash_version, first->version);
	fact_set_text(f, FACT_clash_requirement, first->requirement);
	fact_set_text(f, FACT_clash_installed, first->installed ? first->installed : "none");
}

/* --- extensions ------------------------------------------------------------------------------- */

static void fill_abi(struct casefile *f, const struct pyenv *env)
{
	fact_set_text(f, FACT_extension_abi_package, "");
	for (size_t i = 0; i < env->n_extensions; i++) {
		const struct py_extension *x = &env->extension[i];
		const char *why = NULL;

		if (x->vendor)
			continue;
		if (x->torch && x->n_unresolved > 0)
			why = pool_printf(f->pool, "it calls %d function%s that this PyTorch does not have, %s among them", x->n_unresolved,
					  x->n_unresolved == 1 ? "" : "s", x->unresolved ? x->unresolved : "unnamed ones");
		else if (x->torch && x->cxx11_abi >= 0 && env->torch.cxx11_abi >= 0 && x->cxx11_abi != env->torch.cxx11_abi)
			why = pool_printf(f->pool, "it uses the %s C++ strings, this PyTorch the %s ones", x->cxx11_abi ? "new" : "old",
					  env->torch.cxx11_abi ? "new" : "old");
		if (!why)
			continue;
		fact_set_text(f, FACT_extension_abi_package, x->package ? x->package : x->path);
		fact_set_text(f, FACT_extension_abi_path, x->path);
		fact_set_text(f, FACT_extension_abi_why, why);
		return;
	}
}

static int badness(enum fatbin_cover c)
{
	switch (c) {
	case FATBIN_COVER_NONE: return 3;
	case FATBIN_COVER_PTX_NEW: return 2;
	case FATBIN_COVER_PART: return 1;
	default: return 0;
	}
}

static void fill_extension_code(struct casefile *f, const struct machine *m, size_t env, int cc)
{
	const struct machine_code *worst = NULL;
	enum fatbin_cover cover = FATBIN_COVER_UNKNOWN, c;
	struct buf text;

	for (size_t i = 0; i < m->n_code; i++) {
		const struct machine_code *x = &m->code[i];

		if (x->env != env || x->torch || x->vendor || !x->fatbin || !x->fatbin->binaries)
			continue;
		c = fatbin_covers(x->fatbin, cc, machine_driver_cuda(m)).cover;
		if (badness(c) <= badness(cover))
			continue;
		cover = c;
		worst = x;
	}
	fact_set_text(f, FACT_extension_package, worst ? worst->package ? worst->package : worst->path : "");
	if (!worst)
		return;
	fact_set_text(f, FACT_extension_path, worst->path);
	fact_set_text(f, FACT_extension_cover, machine_cover_word(cover));
	buf_init(&text, 1 << 16);
	fatbin_archs(worst->fatbin, true, &text);
	fact_set_text(f, FACT_extension_archs, text.data ? text.data : "");
	buf_release(&text);
}

void fill_machine_extensions(struct casefile *f, const struct machine *m, size_t env, const struct machine_gpu *g)
{
	if (m->envs.env[env].n_packages || m->envs.env[env].n_clashes) {	/* an environment without any was not looked into */
		fill_broken_package(f, &m->envs.env[env]);
		fill_clashes(f, &m->envs.env[env]);
	}
	fill_abi(f, &m->envs.env[env]);
	if (g && g->cc)
		fill_extension_code(f, m, env, g->cc);
}
