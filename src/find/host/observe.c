/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine (see observe.h): one of its GPUs, and the Python environment that is examined. What the collectors do not know stays
 * unknown.
 */
#include "find/host/observe.h"

#include <string.h>

#include "find/host/observe_parts.h"

static const char *class_word(enum compat_class c)
{
	switch (c) {
	case COMPAT_CLASS_GEFORCE: return "geforce";
	case COMPAT_CLASS_WORKSTATION: return "workstation";
	case COMPAT_CLASS_DATACENTER: return "datacenter";
	case COMPAT_CLASS_JETSON: return "jetson";
	default: return NULL;
	}
}

static void fill_capability(struct casefile *f, const struct machine *m, const struct machine_gpu *g)
{
	const struct compat_generation *gen = compat_generation(g->cc);
	int supports = compat_driver_supports(machine_driver(m), g->cc), first = compat_first_branch_for(g->cc);

	if (!g->cc)
		return;
	fact_set_text(f, FACT_gpu_cc, pool_printf(f->pool, "%d.%d", g->cc / 10, g->cc % 10));
	fact_set_text(f, FACT_gpu_arch, pool_printf(f->pool, "sm_%d", g->cc));
	fact_set_number(f, FACT_gpu_capability, g->cc);
	if (gen) {
		fact_set_text(f, FACT_gpu_generation, gen->name);
		fact_set_number(f, FACT_gpu_last_branch, gen->last_branch);
	}
	if (first)
		fact_set_number(f, FACT_gpu_first_branch, first);
	if (supports >= 0)
		fact_set_flag(f, FACT_gpu_supported, supports);
}

static void fill_mode(struct casefile *f, const struct machine_gpu *g)
{
	static const char *const modes[] = {"default", "exclusive-thread", "prohibited", "exclusive-process"};
	int64_t mode = g->nvml ? g->nvml->details.compute_mode : -1;

	if (mode < 0 && g->cuda)
		mode = g->cuda->compute_mode;
	if (mode >= 0 && mode < 4)
		fact_set_text(f, FACT_gpu_mode, modes[mode]);
}

static void fill_health(struct casefile *f, const struct gpu_details *d)
{
	if (d->mig >= 0)
		fact_set_flag(f, FACT_gpu_mig, d->mig == 1);
	if (d->mig_devices >= 0)
		fact_set_number(f, FACT_gpu_mig_devices, (double)d->mig_devices);
	if (d->ecc_volatile >= 0)
		fact_set_number(f, FACT_gpu_ecc_errors, (double)d->ecc_volatile);
	if (d->remap_pending >= 0 || d->retire_pending >= 0)
		fact_set_flag(f, FACT_gpu_remap_pending, d->remap_pending == 1 || d->retire_pending == 1);
	if (d->remap_failed >= 0)
		fact_set_flag(f, FACT_gpu_remap_failed, d->remap_failed == 1);
	if (d->fabric_state >= 0)
		fact_set_number(f, FACT_gpu_fabric, (double)d->fabric_state);
}

static void fill_processes(struct casefile *f, const struct gpu_state *g)
{
	const struct gpu_holder *first = NULL;
	size_t n = 0;

	if (!g->holders_known)
		return;
	for (size_t i = 0; i < g->n; i++) {
		if (g->holder[i].kind == HOLDER_GRAPHICS)
			continue;
		n++;
		first = first ? first : &g->holder[i];
	}
	fact_set_number(f, FACT_gpu_processes, (double)n);
	if (first)
		fact_set_text(f, FACT_gpu_process,
			      pool_printf(f->pool, "process %u%s%s%s", first->pid, first->command[0] ? " (" : "",
					  first->command, first->command[0] ? ")" : ""));
}

static void fill_peers(struct casefile *f, const struct machine *m)
{
	size_t reach = 0, pairs = 0, n = m->cuda.n;

	if (n < 2)
		return;
	for (size_t i = 0; i < n; i++) {
		if (!m->cuda.device[i].peers_known)
			return;
		for (size_t k = 0; k < n; k++) {
			pairs += k != i;
			reach += k != i && (m->cuda.device[i].peers >> k & 1);
		}
	}
	fact_set_text(f, FACT_gpu_peers, reach == pairs ? "all" : reach ? "some" : "none");
}

static void fill_machine_gpu(struct casefile *f, const struct machine *m, const struct machine_gpu *g)
{
	fact_set_number(f, FACT_gpu_count, (double)machine_gpus(m));
	fact_set_number(f, FACT_gpu_index, (double)g->index);
	fact_set_text(f, FACT_gpu_name, g->name ? g->name : "an unknown GPU");
	fact_set_text(f, FACT_gpu_class, class_word(g->class));
	/* some workstation cards may, in certified servers; nothing here tells which */
	if (g->class != COMPAT_CLASS_UNKNOWN && g->class != COMPAT_CLASS_WORKSTATION)
		fact_set_flag(f, FACT_gpu_forward, compat_class_forward(g->class));
	fill_capability(f, m, g);
	fill_mode(f, g);
	if (g->nvml) {
		fill_health(f, &g->nvml->details);
		fill_processes(f, g->nvml);
		if (g->nvml->card.used != USAGE_UNKNOWN)
			fact_set_number(f, FACT_gpu_used, (double)g->nvml->card.used);
		if (g->nvml->card.total != USAGE_UNKNOWN)
			fact_set_number(f, FACT_gpu_total, (double)g->nvml->card.total);
	}
	fill_peers(f, m);
}

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
		return "its folder has no libraries: it is partly installed, or a source tree";
	/* a bundle written by hand may omit its path; a collected one has it */
	if (t->build == TORCH_BUILD_CUDA && !t->cuda_library && t->dir[0] == '/' && !has_torch_code(m, env))
		return "it was built for CUDA, but its libtorch_cuda.so is missing";
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

static void fill_machine_env(struct casefile *f, const struct machine *m, const struct machine_gpu *g)
{
	size_t index = 0;
	const struct pyenv *env = machine_env(m, &index);

	fact_set_flag(f, FACT_env_found, env != NULL);
	if (!env) {
		fact_set_text(f, FACT_env_why, m->envs.reason);
		fact_set_flag(f, FACT_torch_found, false);
		facts_of_install(f, m, NULL);
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
	facts_of_install(f, m, env);
	if (!env->torch.dir)
		return;
	facts_of_code(f, m, g, index);
	facts_of_builds(f, m, env);
	facts_of_loader(f, m, env);
	facts_of_packages(f, env);
	if (g && g->cc)
		facts_of_extension_code(f, m, index, g->cc);
}

void facts_of_machine(struct casefile *f, const struct machine *m, size_t gpu)
{
	struct machine_gpu g;
	bool is = gpu < machine_gpus(m);

	facts_of_host(f, m);
	facts_of_driver(f, m);
	fact_set_flag(f, FACT_gpu_is, is);
	if (is) {
		machine_gpu(m, gpu, &g);
		fill_machine_gpu(f, m, &g);
	}
	fill_machine_env(f, m, is ? &g : NULL);
}
