/* SPDX-License-Identifier: Apache-2.0
 * Facts about building CUDA extensions: with which compiler, and what shows that anybody does so here.
 */
#include "input/machine/observe.h"

/* Packages that compile CUDA code with the machine's nvcc when they are used (ninja: what PyTorch does that with). */
static const char *const compiling[] = {"deepspeed", "ninja", "flashinfer-python", "gsplat", "nvdiffrast", "colossalai"};

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

void fill_machine_builds(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	const char *path = m->host.tools.cuda_home ? m->host.tools.cuda_home : m->host.tools.nvcc;
	const char *version = m->host.tools.cuda_home ? m->host.tools.cuda_home_version : m->host.tools.nvcc_version;
	int has = cuda_number(version), wants = cuda_number(env->torch.cuda);

	fact_set_text(f, FACT_nvcc_path, path);
	fact_set_text(f, FACT_nvcc_version, version);
	if (has && wants)
		fact_set_flag(f, FACT_nvcc_differs, has / 1000 != wants / 1000);
	fact_set_text(f, FACT_build_evidence, evidence_of(f, m, env));
}
