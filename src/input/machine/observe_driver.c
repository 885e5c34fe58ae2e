/* SPDX-License-Identifier: Apache-2.0
 * Facts about the driver of a machine and one of its GPUs (see fact_machine.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "input/machine/observe.h"
#include "compat/cuda_errors.h"

struct compat_driver machine_driver(const struct machine *m)
{
	const char *const from[] = {m->nvml ? m->nvml->driver : NULL, m->host.kernel.version,
				    m->envs.libcuda.compat ? NULL : m->envs.libcuda.version};
	struct compat_driver d = {0};

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (from[i] && compat_driver_parse(from[i], &d))
			return d;
	return (struct compat_driver){0};
}

int machine_driver_cuda(const struct machine *m)
{
	if (m->cuda.library.version > 0)
		return m->cuda.library.version;
	if (m->nvml && m->nvml->cuda > 0)
		return m->nvml->cuda;
	return compat_driver_cuda(machine_driver(m));
}

/* Which file the loader takes: its own word where the probe ran, else what following its rules gives. */
static void fill_library(struct casefile *f, const struct machine *m)
{
	const struct loader_driver *l = &m->envs.libcuda;
	const char *module = m->host.kernel.version;

	if (m->cuda.library.path[0])
		fact_set_flag(f, FACT_driver_found, true);
	else if (m->cuda_asked && m->cuda.trouble == USAGE_NO_LIBRARY)
		fact_set_flag(f, FACT_driver_found, false);
	else if (l->path)
		fact_set_flag(f, FACT_driver_found, true);
	else if (m->libcuda_sought && !m->cuda_asked)
		fact_set_flag(f, FACT_driver_found, false);
	fact_set_text(f, FACT_driver_library, l->path ? l->path : m->cuda.library.path[0] ? m->cuda.library.path : NULL);
	if (!l->path)
		return;
	fact_set_text(f, FACT_driver_library_version, l->version);
	fact_set_text(f, FACT_driver_library_by, loader_why_name(l->why));
	fact_set_text(f, FACT_driver_broken, l->broken ? l->broken : "");
	fact_set_flag(f, FACT_driver_compat, l->compat);
	fact_set_flag(f, FACT_driver_stub, l->stub);
	if (l->other && l->other_version && module && strcmp(l->other_version, module) == 0)
		fact_set_text(f, FACT_driver_other, l->other);
	if (!l->version || !module || l->stub)
		return;
	fact_set_flag(f, FACT_driver_mismatch, !l->compat && host_version_compare(l->version, module) != 0);
	if (l->compat)
		fact_set_flag(f, FACT_driver_compat_old, host_version_compare(l->version, module) < 0);
}

static void fill_answers(struct casefile *f, const struct machine *m)
{
	const struct cuda_answer *c = &m->cuda;

	if (m->cuda_asked) {
		fact_set_text(f, FACT_driver_trouble, usage_trouble_name(c->trouble));
		fact_set_text(f, FACT_driver_why, c->why);
	}
	if (c->library.init >= 0) {
		fact_set_number(f, FACT_driver_init, c->library.init);
		fact_set_text(f, FACT_driver_init_name, c->library.init ? cuda_error_name((uint32_t)c->library.init) : "success");
		fact_set_flag(f, FACT_driver_loaded, true);
	}
	if (c->library.count >= 0)
		fact_set_number(f, FACT_driver_devices, c->library.count);
	if (!m->nvml)
		return;
	fact_set_text(f, FACT_nvml_trouble, usage_trouble_name(m->nvml->trouble));
	fact_set_number(f, FACT_nvml_code, m->nvml->code);
	fact_set_text(f, FACT_nvml_why, m->nvml->why);
	if (m->nvml->nvml[0])
		fact_set_text(f, FACT_nvml_release, m->nvml->nvml);
}

static bool has_node(const struct host *h)
{
	for (ptrdiff_t i = 0; i < h->n_node; i++)
		if (h->node[i].exists == 1 && h->node[i].path && str_starts(h->node[i].path, "/dev/nvidia"))
			return true;
	return false;
}

/* Is there anything at all? Unknown where some of those that could tell were not asked. */
static void fill_any(struct casefile *f, const struct machine *m)
{
	const struct host *h = &m->host;
	bool gpu = h->n_gpu > 0 || machine_gpus(m) > 0 || has_node(h) || h->wsl.dxg == 1 ||
		   (m->cuda.library.init == 0 && m->cuda.library.count > 0);
	bool driver = h->kernel.nvidia == 1 || has_node(h) || m->cuda.library.path[0] || m->envs.libcuda.path ||
		      h->wsl.libcuda == 1 || (m->nvml && m->nvml->driver[0]) ||
		      (m->nvml && m->nvml->trouble != USAGE_NO_LIBRARY && m->nvml->trouble != USAGE_NO_PROBE);

	if (gpu || (m->bus_known && h->wsl.version <= 0))
		fact_set_flag(f, FACT_machine_any_gpu, gpu);
	if (driver || (h->kernel.nvidia >= 0 && (m->cuda_asked || m->nodes_known)))
		fact_set_flag(f, FACT_machine_any_driver, driver);
}

int machine_newest_branch(const struct machine *m)
{
	size_t n = machine_gpus(m);
	struct machine_gpu g;
	int newest = 0, branch;

	for (size_t i = 0; i < n && i < MACHINE_GPUS_MAX; i++) {
		machine_gpu(m, i, &g);
		branch = compat_branch_for(g.cc);
		if (branch && (!newest || branch < newest))
			newest = branch;
	}
	return newest;
}

void fill_machine_driver(struct casefile *f, const struct machine *m)
{
	struct compat_driver d = machine_driver(m);
	int cuda = machine_driver_cuda(m), newest = machine_newest_branch(m);
	char text[32];

	if (d.major) {
		fact_set_text(f, FACT_driver_release, m->nvml && m->nvml->driver[0] ? m->nvml->driver
			      : m->host.kernel.version ? m->host.kernel.version : compat_driver_text(d, text));
		fact_set_number(f, FACT_driver_branch, d.major);
	}
	if (newest)
		fact_set_text(f, FACT_driver_newest, pool_printf(f->pool, "%d", newest));
	if (newest && d.major)
		fact_set_flag(f, FACT_driver_newer, d.major < newest);
	if (cuda) {
		fact_set_number(f, FACT_driver_cuda, cuda);
		fact_set_text(f, FACT_driver_version, pool_printf(f->pool, "%d.%d", cuda / 1000, cuda % 1000 / 10));
	}
	fill_library(f, m);
	fill_answers(f, m);
	fill_any(f, m);
}

/* --- one GPU ---------------------------------------------------------------------------------- */

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
		fact_set_text(f, FACT_gpu_process, pool_printf(f->pool, "process %u%s%s%s", first->pid, first->command[0] ? " (" : "",
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

void fill_machine_gpu(struct casefile *f, const struct machine *m, const struct machine_gpu *g)
{
	fact_set_number(f, FACT_gpu_count, (double)machine_gpus(m));
	fact_set_number(f, FACT_gpu_index, (double)g->index);
	fact_set_text(f, FACT_gpu_name, g->name ? g->name : "a GPU without a known name");
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
