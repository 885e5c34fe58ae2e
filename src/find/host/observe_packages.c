/* SPDX-License-Identifier: Apache-2.0
 * Facts about the packages of a Python environment: what compiles, which libraries the loader picks, which packages are broken or do not belong
 * together.
 */
#include "find/host/observe_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* Packages that compile CUDA code with the machine's nvcc when they are used (ninja: PyTorch uses it for that). */
static const char *const compiling[] = {"deepspeed", "ninja",	   "flashinfer-python",
					"gsplat",    "nvdiffrast", "colossalai"};

static const char *compiling_package(const struct pyenv *env)
{
	for (size_t i = 0; i < sizeof(compiling) / sizeof(compiling[0]); i++)
		if (pyenv_package(env, compiling[i]))
			return compiling[i];
	return NULL;
}

/* "" = nothing was seen: most machines only run what others built. */
static const char *evidence_of(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	const char *package = compiling_package(env);

	if (m->host.tools.build_setup)
		return pool_printf(f->pool, "%s does", m->host.tools.build_setup);
	if (m->host.tools.build_cache)
		return pool_printf(f->pool, "PyTorch has built some, in %s", m->host.tools.build_cache);
	if (package)
		return pool_printf(f->pool, "%s compiles CUDA code when it is used", package);
	if (variables_get(&m->variables, "TORCH_CUDA_ARCH_LIST"))
		return "TORCH_CUDA_ARCH_LIST is set";
	if (m->host.tools.cuda_home)
		return pool_printf(f->pool, "CUDA_HOME is set to %s", m->host.tools.cuda_home);
	return "";
}

void facts_of_builds(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	const char *path = m->host.tools.cuda_home ? m->host.tools.cuda_home : m->host.tools.nvcc;
	const char *version = m->host.tools.cuda_home ? m->host.tools.cuda_home_version : m->host.tools.nvcc_version;
	int has = compat_cuda_parse(version), wants = compat_cuda_parse(env->torch.cuda);

	fact_set_text(f, FACT_nvcc_path, path);
	fact_set_text(f, FACT_nvcc_version, version);
	if (has && wants)
		fact_set_flag(f, FACT_nvcc_differs, has / 1000 != wants / 1000);
	fact_set_text(f, FACT_build_evidence, evidence_of(f, m, env));
}

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
			    strcmp(has->path, want->wheel) == 0 ||
			    (want->real && strcmp(has->path, want->real) == 0 && want->same != LOADER_SAME_NOT))
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

/* A tree that was copied without the system's own files: what is missing may exist on the machine. */
static bool system_is_there(const struct machine *m, const struct loader_result *l)
{
	if (m->host.os.id || m->host.os.kernel)
		return true;
	for (size_t i = 0; i < l->n_files; i++)
		if (!l->file[i].path && l->file[i].soname && str_starts(l->file[i].soname, "libc.so"))
			return false;
	return true;
}

void facts_of_loader(struct casefile *f, const struct machine *m, const struct pyenv *env)
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
static bool is_of_release(const char *version, const char *release)
{
	size_t n = strlen(release);

	return strncmp(version, release, n) == 0 && (version[n] == '\0' || version[n] == '.' || version[n] == '+');
}

#define NO_CUDA (-1)

/* The CUDA version that a package was built for, by its suffix: "+cu128" is 12080, "+cpu" NO_CUDA. 0: it does not say, as
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
	int cuda = compat_cuda_parse(t->cuda);

	if (t->build == TORCH_BUILD_CPU)
		return NO_CUDA;
	if (!cuda && t->version)
		return marked_cuda(t->version);
	return cuda;
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

/* "2.9.0a0", "2.10.0.dev20251001": it is unclear which release such a build matches. */
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
	if (!apart &&
	    (!wanted || is_unfinished(version) || is_unfinished(p->version) || is_of_release(p->version, wanted)))
		return false;
	fact_set_text(f, FACT_vision_package, name);
	fact_set_text(f, FACT_vision_version, p->version);
	fact_set_text(f, FACT_vision_wanted,
		      torch > 0 ? pool_printf(f->pool, "%s for CUDA %d.%d", wanted ? wanted : "a build", torch / 1000,
					      torch % 1000 / 10)
		      : wanted	? wanted
				: "a build for the CPU");
	return true;
}

static void fill_clashes(struct casefile *f, const struct pyenv *env)
{
	const struct compat_torch *t = env->torch.version ? compat_torch(env->torch.version) : NULL;
	const struct py_clash *first = NULL;

	if (!check_vision(f, env, "torchvision", t ? t->vision : NULL) &&
	    !check_vision(f, env, "torchaudio", t ? t->audio : NULL))
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

static void fill_abi(struct casefile *f, const struct pyenv *env)
{
	fact_set_text(f, FACT_extension_abi_package, "");
	for (size_t i = 0; i < env->n_extensions; i++) {
		const struct py_extension *x = &env->extension[i];
		const char *why = NULL;

		if (x->vendor)
			continue;
		if (x->torch && x->n_unresolved > 0)
			why = pool_printf(f->pool,
					  "it calls %d function%s that this PyTorch does not have, %s among them",
					  x->n_unresolved, x->n_unresolved == 1 ? "" : "s",
					  x->unresolved ? x->unresolved : "unnamed ones");
		else if (x->torch && x->cxx11_abi >= 0 && env->torch.cxx11_abi >= 0 &&
			 x->cxx11_abi != env->torch.cxx11_abi)
			why = pool_printf(f->pool, "it uses the %s C++ strings, this PyTorch the %s ones",
					  x->cxx11_abi ? "new" : "old", env->torch.cxx11_abi ? "new" : "old");
		if (!why)
			continue;
		fact_set_text(f, FACT_extension_abi_package, x->package ? x->package : x->path);
		fact_set_text(f, FACT_extension_abi_path, x->path);
		fact_set_text(f, FACT_extension_abi_why, why);
		return;
	}
}

void facts_of_packages(struct casefile *f, const struct pyenv *env)
{
	if (env->n_packages || env->n_clashes) {	/* an environment without any was not examined */
		fill_broken_package(f, env);
		fill_clashes(f, env);
	}
	fill_abi(f, env);
}
