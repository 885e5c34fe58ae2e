/* SPDX-License-Identifier: Apache-2.0
 * Facts about the Python environment that is judged: its PyTorch, against the driver and one GPU (see fact_machine.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "input/machine/observe.h"
#include "input/machine/pyenv/packaging.h"

static enum compat_machine machine_arch(const struct machine *m)
{
	return m->host.os.arch && strcmp(m->host.os.arch, "aarch64") == 0 ? COMPAT_AARCH64 : COMPAT_X86_64;
}

/* --- the driver ------------------------------------------------------------------------------- */

static const char *run_word(enum compat_run r)
{
	switch (r) {
	case COMPAT_RUN_NATIVE: return "native";
	case COMPAT_RUN_MINOR: return "minor";
	case COMPAT_RUN_FORWARD: return "forward";
	case COMPAT_RUN_NO: return "no";
	default: return "unknown";
	}
}

/* libcuda itself decides, and says its version; a cuda-compat package is newer than the driver below it. */
static enum compat_run driver_runs(const struct machine *m, int cuda)
{
	int has = m->cuda.library.version > 0 ? m->cuda.library.version : m->nvml && m->nvml->cuda > 0 ? m->nvml->cuda : 0;
	enum compat_run by_release = compat_driver_runs(machine_driver(m), cuda);

	if (!cuda)
		return COMPAT_RUN_UNKNOWN;
	if (has >= cuda)
		return COMPAT_RUN_NATIVE;
	if (has && has / 1000 == cuda / 1000 && cuda >= 11000)
		return by_release == COMPAT_RUN_NO && !m->envs.libcuda.compat ? COMPAT_RUN_NO : COMPAT_RUN_MINOR;
	if (has && by_release != COMPAT_RUN_FORWARD)
		return COMPAT_RUN_NO;
	return by_release;
}

static void fill_driver_need(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	int cuda = cuda_number(env->torch.cuda), newest = machine_newest_branch(m);
	struct compat_need need;
	char text[32];

	if (!cuda)
		return;
	fact_set_text(f, FACT_torch_driver, run_word(driver_runs(m, cuda)));
	if (!compat_driver_needed(cuda, &need))
		return;
	fact_set_text(f, FACT_torch_driver_needed, compat_driver_text(need.least, text));
	fact_set_number(f, FACT_torch_driver_branch, need.least.major);
	if (newest)
		fact_set_flag(f, FACT_driver_upgrade, need.least.major <= newest);
}

/* --- the code --------------------------------------------------------------------------------- */

const char *machine_cover_word(enum fatbin_cover c)
{
	switch (c) {
	case FATBIN_COVER_SASS: return "sass";
	case FATBIN_COVER_JIT: return "jit";
	case FATBIN_COVER_PART: return "part";
	case FATBIN_COVER_PTX_NEW: return "ptx-new";
	case FATBIN_COVER_NONE: return "none";
	default: return NULL;
	}
}

static const char *code_word(enum compat_code c)
{
	switch (c) {
	case COMPAT_CODE_RUNS: return "sass";
	case COMPAT_CODE_PTX_VERSION: return "ptx-new";
	case COMPAT_CODE_OTHER_MAJOR:
	case COMPAT_CODE_TOO_NEW:
	case COMPAT_CODE_SPECIFIC: return "none";
	case COMPAT_CODE_TEGRA: return "tegra";
	default: return NULL;
	}
}

static const struct fatbin *torch_code(const struct machine *m, size_t env)
{
	for (size_t i = 0; i < m->n_code; i++)
		if (m->code[i].env == env && m->code[i].torch)
			return m->code[i].fatbin;
	return NULL;
}

static void fill_age(struct casefile *f, int cc, int least, int most)
{
	if (!cc || !least)
		return;
	fact_set_text(f, FACT_torch_age, cc / 10 < least / 10 || cc < least ? "older" : cc / 10 > most / 10 ? "newer" : "within");
}

static void fill_code_of_library(struct casefile *f, const struct machine *m, const struct fatbin *code, int cc)
{
	struct fatbin_coverage c;
	struct buf text;
	int least = 0, most = 0;

	buf_init(&text, 1 << 16);
	fatbin_archs(code, true, &text);
	fact_set_text(f, FACT_torch_archs, text.data ? text.data : "");
	buf_release(&text);
	fact_set_text(f, FACT_torch_archs_from, "library");
	for (size_t i = 0; i < code->n; i++) {
		const struct fatbin_target *t = &code->target[i];

		if (t->suffix || t->kind == FATBIN_LTO || t->kind == FATBIN_OTHER)
			continue;
		least = !least || t->arch < least ? t->arch : least;
		most = t->arch > most ? t->arch : most;
	}
	fill_age(f, cc, least, most);
	if (!cc)
		return;
	c = fatbin_covers(code, cc, machine_driver_cuda(m));
	fact_set_text(f, FACT_torch_cover, c.cover == FATBIN_COVER_UNKNOWN && c.tegra ? "tegra" : machine_cover_word(c.cover));
}

/* The file could not be read: the table knows what such wheels have. */
static void fill_code_of_table(struct casefile *f, const struct machine *m, const struct pyenv *env, int cc)
{
	const struct compat_wheel *w = compat_wheel(env->torch.version, cuda_number(env->torch.cuda), machine_arch(m));
	struct compat_arch a;
	const char *list;
	int least = 0, most = 0;

	if (!w || !w->archs)
		return;
	fact_set_text(f, FACT_torch_archs, w->archs);
	fact_set_text(f, FACT_torch_archs_from, "table");
	for (list = w->archs; compat_arch_next(&list, &a);) {
		least = !least || a.target.arch < least ? a.target.arch : least;
		most = a.target.arch > most ? a.target.arch : most;
	}
	fill_age(f, cc, least, most);
	if (cc)
		fact_set_text(f, FACT_torch_cover, code_word(compat_wheel_code(w, cc, machine_driver_cuda(m))));
}

static void fill_code(struct casefile *f, const struct machine *m, const struct pyenv *env, size_t index, int cc)
{
	const struct fatbin *code = torch_code(m, index);

	if (code && code->binaries)
		fill_code_of_library(f, m, code, cc);
	else if (env->torch.version)
		fill_code_of_table(f, m, env, cc);
}

bool machine_gpu_works(const struct machine *m, const struct machine_gpu *g, const struct pyenv *env, size_t env_index)
{
	struct pool pool = {0};
	struct casefile *f = pool_alloc(&pool, sizeof(*f));
	const char *cover;
	bool works;

	case_init(f, &pool);
	fill_code(f, m, env, env_index, g->cc);
	cover = fact_text(f, FACT_torch_cover);
	works = strcmp(cover, "sass") == 0 || strcmp(cover, "jit") == 0 || strcmp(cover, "part") == 0;
	pool_release(&pool);
	return works;
}

static void fill_others(struct casefile *f, const struct machine *m, const struct machine_gpu *g, const struct pyenv *env,
			size_t index)
{
	size_t n = machine_gpus(m);
	struct machine_gpu other;
	bool works = false;

	for (size_t i = 0; i < n && !works; i++) {
		machine_gpu(m, i, &other);
		works = other.index != g->index && machine_gpu_works(m, &other, env, index);
	}
	fact_set_flag(f, FACT_gpu_others_work, works);
}

/* --- compilers at run time -------------------------------------------------------------------- */

static void fill_compilers(struct casefile *f, const struct machine *m, const struct pyenv *env, size_t index, int cc)
{
	const struct compat_capability *c = compat_capability(cc);
	int torch = cuda_number(env->torch.cuda), best = 0;

	for (size_t i = 0; i < m->n_ptxas; i++)
		if (m->ptxas[i].env == index && m->ptxas[i].cuda > best)
			best = m->ptxas[i].cuda;
	if (best)
		fact_set_text(f, FACT_ptxas_version, pool_printf(f->pool, "%d.%d", best / 1000, best % 1000 / 10));
	if (!c || !c->first_cuda)
		return;
	fact_set_text(f, FACT_nvrtc_first, pool_printf(f->pool, "%d.%d", c->first_cuda / 1000, c->first_cuda % 1000 / 10));
	if (best)
		fact_set_flag(f, FACT_ptxas_knows, best >= c->first_cuda);
	if (torch)
		fact_set_flag(f, FACT_nvrtc_knows, torch >= c->first_cuda);
}

/* The first release that names GPUs of a kind, from the release notes of cuDNN. */
static void fill_cudnn(struct casefile *f, const struct pyenv *env, int cc)
{
	static const struct { int cc; const char *first; } releases[] = {{100, "9.7"}, {90, "8.6"}, {89, "8.5"}, {80, "8.0"}};
	static const char *const names[] = {"nvidia-cudnn", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-cu11"};
	const struct py_package *p = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !p; i++)
		p = pyenv_package(env, names[i]);
	if (!p || !p->version)
		return;
	fact_set_text(f, FACT_cudnn_version, p->version);
	for (size_t i = 0; cc && i < sizeof(releases) / sizeof(releases[0]); i++) {
		if (cc < releases[i].cc)
			continue;
		fact_set_flag(f, FACT_cudnn_knows, py_version_cmp(p->version, releases[i].first) >= 0);
		return;
	}
}

/* --- the environment -------------------------------------------------------------------------- */

static bool has_torch_code(const struct machine *m, const struct pyenv *env)
{
	for (size_t i = 0; i < m->n_code; i++)
		if (m->code[i].torch && m->code[i].env < m->envs.n_envs && &m->envs.env[m->code[i].env] == env)
			return true;
	return false;
}

static const char *broken_torch(const struct machine *m, const struct pyenv *env)
{
	const struct py_torch *t = &env->torch;

	if (t->reason)
		return t->reason;
	if (t->shadow && strcmp(t->shadow, t->dir) == 0)
		return "its folder has no libraries: it is half installed, or a source tree";
	/* a bundle that somebody wrote may leave out where it is; one that was made here has it */
	if (t->build == TORCH_BUILD_CUDA && !t->cuda_library && t->dir[0] == '/' && !has_torch_code(m, env))
		return "it was built for CUDA, but its libtorch_cuda.so is not there";
	return "";
}

/* PyTorch may be there. */
static const struct py_folder *unreadable_folder(const struct pyenv *env)
{
	for (size_t i = 0; i < env->n_folders; i++)
		if (env->folder[i].there && env->folder[i].reason)
			return &env->folder[i];
	return NULL;
}

static void fill_torch(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	const struct py_torch *t = &env->torch;
	const struct py_folder *unreadable = unreadable_folder(env);

	if (!t->dir && unreadable)
		fact_set_text(f, FACT_env_why, pool_printf(f->pool, "%s: %s", unreadable->path, unreadable->reason));
	else
		fact_set_flag(f, FACT_torch_found, t->dir != NULL);
	fact_set_text(f, FACT_torch_shadow, t->shadow && (!t->dir || strcmp(t->shadow, t->dir) != 0) ? t->shadow : "");
	if (!t->dir)
		return;
	fact_set_text(f, FACT_torch_version, t->version ? t->version : t->metadata_version);
	fact_set_text(f, FACT_torch_build, torch_build_name(t->build));
	fact_set_text(f, FACT_torch_cuda, t->cuda);
	fact_set_text(f, FACT_torch_broken, broken_torch(m, env));
}

void fill_machine_env(struct casefile *f, const struct machine *m, const struct machine_gpu *g)
{
	size_t index = 0;
	const struct pyenv *env = machine_env(m, &index);

	fact_set_flag(f, FACT_env_found, env != NULL);
	if (!env) {
		fact_set_text(f, FACT_env_why, m->envs.reason);
		fact_set_flag(f, FACT_torch_found, false);
		fill_machine_install(f, m, NULL);
		return;
	}
	fact_set_text(f, FACT_env_prefix, env->prefix ? env->prefix : env->interpreter);
	fact_set_text(f, FACT_env_kind, pyenv_kind_name(env->kind));
	fact_set_text(f, FACT_env_why, env->reason);
	if (env->major > 0 && env->minor >= 0)
		fact_set_text(f, FACT_env_python, pool_printf(f->pool, "%d.%d", env->major, env->minor));
	fact_set_flag(f, FACT_torch_wanted, machine_gpus(m) > 0);
	fact_set_flag(f, FACT_flash_installed, pyenv_package(env, "flash-attn") != NULL);
	fill_torch(f, m, env);
	fill_machine_install(f, m, env);
	if (!env->torch.dir)
		return;
	fill_driver_need(f, m, env);
	if (env->torch.build == TORCH_BUILD_CUDA || env->torch.build == TORCH_BUILD_UNKNOWN)
		fill_code(f, m, env, index, g ? g->cc : 0);
	if (g) {
		fill_others(f, m, g, env, index);
		fill_compilers(f, m, env, index, g->cc);
		fill_cudnn(f, env, g->cc);
	}
	fill_machine_builds(f, m, env);
	fill_machine_loader(f, m, env);
	fill_machine_extensions(f, m, index, g);
}
