/* SPDX-License-Identifier: Apache-2.0
 * Facts about GPU code in a Python environment: whether the driver and the GPUs can run it, and which build of PyTorch they could.
 */
#include "find/host/observe_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "read/machine/pyenv/packaging.h"

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

/* libcuda itself decides, and reports its version; a cuda-compat package is newer than the driver below it. */
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
	int cuda = compat_cuda_parse(env->torch.cuda), newest = machine_newest_branch(m);
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

static const char *cover_word(enum fatbin_cover c)
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
	fact_set_text(f, FACT_torch_cover, c.cover == FATBIN_COVER_UNKNOWN && c.tegra ? "tegra" : cover_word(c.cover));
}

/* The file could not be read: use the table of what such wheels have. */
static void fill_code_of_table(struct casefile *f, const struct machine *m, const struct pyenv *env, int cc)
{
	const struct compat_wheel *w =
		compat_wheel(env->torch.version, compat_cuda_parse(env->torch.cuda), machine_arch(m));
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

/* Does this PyTorch run on this GPU, as far as is known? */
static bool torch_works_on(const struct machine *m, const struct machine_gpu *g, const struct pyenv *env, size_t env_index)
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

static void fill_other_gpus(struct casefile *f, const struct machine *m, const struct machine_gpu *g,
			    const struct pyenv *env, size_t index)
{
	size_t n = machine_gpus(m);
	struct machine_gpu other;
	bool works = false;

	for (size_t i = 0; i < n && !works; i++) {
		machine_gpu(m, i, &other);
		works = other.index != g->index && torch_works_on(m, &other, env, index);
	}
	fact_set_flag(f, FACT_gpu_others_work, works);
}

static void fill_compilers(struct casefile *f, const struct machine *m, const struct pyenv *env, size_t index, int cc)
{
	const struct compat_capability *c = compat_capability(cc);
	int torch = compat_cuda_parse(env->torch.cuda), best = 0;

	for (size_t i = 0; i < m->n_ptxas; i++)
		if (m->ptxas[i].env == index && m->ptxas[i].cuda > best)
			best = m->ptxas[i].cuda;
	if (best)
		fact_set_text(f, FACT_ptxas_version, pool_printf(f->pool, "%d.%d", best / 1000, best % 1000 / 10));
	if (!c || !c->first_cuda)
		return;
	fact_set_text(f, FACT_nvrtc_first,
		      pool_printf(f->pool, "%d.%d", c->first_cuda / 1000, c->first_cuda % 1000 / 10));
	if (best)
		fact_set_flag(f, FACT_ptxas_knows, best >= c->first_cuda);
	if (torch)
		fact_set_flag(f, FACT_nvrtc_knows, torch >= c->first_cuda);
}

/* The first release that names GPUs of a kind, from the release notes of cuDNN. */
static void fill_cudnn(struct casefile *f, const struct pyenv *env, int cc)
{
	static const struct { int cc; const char *first; } releases[] = {{100, "9.7"}, {90, "8.6"}, {89, "8.5"}, {80, "8.0"}};
	static const char *const names[] = {"nvidia-cudnn", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12",
					    "nvidia-cudnn-cu11"};
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

/* A CUDA version older than the GPU has libraries and compilers that do not support it, even where the code runs. */
static bool knows_gpus(const struct compat_wheel *w, const struct compat_ask *ask)
{
	for (size_t i = 0; i < ask->n_cc; i++) {
		const struct compat_capability *c = compat_capability(ask->cc[i]);

		if (c && c->first_cuda > w->cuda)
			return false;
	}
	return true;
}

/* The release that is installed, if a build of it fits; else the best of all. */
static struct compat_choice *pick(struct compat_choice *choice, size_t n, const struct compat_ask *ask,
				  const struct compat_torch *has, bool knowing)
{
	struct compat_choice *best = NULL;

	for (size_t i = 0; i < n && choice[i].fit < COMPAT_FIT_PYTHON; i++) {
		if (knowing && !knows_gpus(choice[i].wheel, ask))
			continue;
		if (has && strcmp(choice[i].wheel->release, has->release) == 0)
			return &choice[i];
		best = best ? best : &choice[i];
	}
	return best;
}

void facts_of_install(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	struct compat_choice *choice = xcalloc(COMPAT_CHOICES_MAX, sizeof(*choice)), *best = NULL;
	const struct compat_torch *has = env && env->torch.version ? compat_torch(env->torch.version) : NULL;
	int cc[MACHINE_GPUS_MAX];
	struct compat_ask ask;
	char command[256];
	size_t n;

	machine_ask(m, env, cc, &ask);
	n = ask.n_cc ? compat_recommend(&ask, choice, COMPAT_CHOICES_MAX) : 0;
	best = pick(choice, n, &ask, has, true);
	best = best ? best : pick(choice, n, &ask, has, false);
	if (best) {
		fact_set_text(f, FACT_install_command, compat_wheel_command(best->wheel, command, sizeof(command)));
		fact_set_text(f, FACT_install_wheel,
			      pool_printf(f->pool, "PyTorch %s for CUDA %d.%d (%s)", best->wheel->release,
					  best->wheel->cuda / 1000, best->wheel->cuda % 1000 / 10, best->wheel->variant));
		fact_set_text(f, FACT_install_why, best->why);
	}
	free(choice);
}

void facts_of_code(struct casefile *f, const struct machine *m, const struct machine_gpu *g, size_t index)
{
	const struct pyenv *env = &m->envs.env[index];

	fill_driver_need(f, m, env);
	if (env->torch.build == TORCH_BUILD_CUDA || env->torch.build == TORCH_BUILD_UNKNOWN)
		fill_code(f, m, env, index, g ? g->cc : 0);
	if (g) {
		fill_other_gpus(f, m, g, env, index);
		fill_compilers(f, m, env, index, g->cc);
		fill_cudnn(f, env, g->cc);
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

void facts_of_extension_code(struct casefile *f, const struct machine *m, size_t env, int cc)
{
	const struct machine_code *worst = NULL;
	enum fatbin_cover cover = FATBIN_COVER_UNKNOWN, c;
	struct buf text;

	for (size_t i = 0; i < m->n_code; i++) {
		const struct machine_code *x = &m->code[i];

		if (x->env != env || x->torch || !x->fatbin || !x->fatbin->binaries)
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
	fact_set_text(f, FACT_extension_cover, cover_word(cover));
	buf_init(&text, 1 << 16);
	fatbin_archs(worst->fatbin, true, &text);
	fact_set_text(f, FACT_extension_archs, text.data ? text.data : "");
	buf_release(&text);
}
