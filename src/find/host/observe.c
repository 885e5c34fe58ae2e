/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine (see observe.h): its files and variables, its driver, one of its GPUs, and the Python environment that is
 * examined. What the collectors do not know stays unknown here.
 */
#include "find/host/observe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "compat/cuda_errors.h"
#include "read/machine/pyenv/packaging.h"

static void flag_if_known(struct casefile *f, enum fact_id id, int flag)
{
	if (flag >= 0)
		fact_set_flag(f, id, flag != 0);
}

static void number_if_known(struct casefile *f, enum fact_id id, int64_t n)
{
	if (n >= 0)
		fact_set_number(f, id, (double)n);
}

static const char *gpu_name_by_bus(const struct host_gpu *g)
{
	const struct compat_gpu *known =
		g->device > 0 && g->device <= UINT16_MAX ? compat_gpu_by_pci((uint16_t)g->device) : NULL;

	if (g->model)
		return g->model;
	return known && known->name ? known->name : known && known->chip ? known->chip : NULL;
}

static void fill_bus(struct casefile *f, const struct machine *m)
{
	const struct host *h = &m->host;
	int64_t lost = 0;

	if (!m->bus_known)
		return;
	number_if_known(f, FACT_machine_gpus, h->n_gpu);
	for (ptrdiff_t i = 0; i < h->n_gpu; i++) {
		const struct host_gpu *g = &h->gpu[i];

		lost += g->answers == 0;
		if (!fact_known(f, FACT_machine_gpu_name))
			fact_set_text(f, FACT_machine_gpu_name, gpu_name_by_bus(g));
		if (g->driver && strcmp(g->driver, "nvidia") != 0 && !fact_known(f, FACT_machine_gpu_driver))
			fact_set_text(f, FACT_machine_gpu_driver, g->driver);
	}
	fact_set_number(f, FACT_machine_gpus_lost, (double)lost);
}

static void fill_module(struct casefile *f, const struct host *h)
{
	static const char *const lines[] = {"needs-open-modules", "needs-closed-modules", "legacy-driver",
					    "gpu-not-supported",  "module-rejected",	  "driver-not-bound",
					    "bar-invalid",	  "init-failed"};
	const struct host_event *e = NULL;

	flag_if_known(f, FACT_module_loaded, h->kernel.nvidia);
	fact_set_text(f, FACT_module_version, h->kernel.version);
	fact_set_text(f, FACT_module_flavour, h->kernel.flavour);
	flag_if_known(f, FACT_module_installed, h->kernel.installed);
	flag_if_known(f, FACT_module_other_kernel, h->kernel.other_kernel);
	flag_if_known(f, FACT_module_nouveau, h->kernel.nouveau);
	flag_if_known(f, FACT_module_uvm, h->kernel.uvm);
	flag_if_known(f, FACT_module_secure_boot, h->os.secure_boot);
	number_if_known(f, FACT_machine_suspends, h->kernel.suspends);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && !e; i++)
		e = host_event(h, lines[i]);
	if (!e && h->log.readable != 1)
		return;
	fact_set_text(f, FACT_module_log, e ? e->text : "");
	fact_set_text(f, FACT_module_log_id, e ? e->id : "");
}

static const char *errno_words(int64_t error)
{
	switch (error) {
	case EPERM:
		return "the control group of the container forbids it";
	case EACCES:
		return "its permissions do not allow it";
	case ENXIO:
	case ENODEV:
		return "there is no device behind it";
	default:
		return strerror((int)error);
	}
}

static void fill_nodes(struct casefile *f, const struct machine *m)
{
	const struct host *h = &m->host;
	const char *missing = "", *refused = "";

	if (!m->nodes_known)
		return;
	for (ptrdiff_t i = 0; i < h->n_node; i++) {
		const struct host_node *n = &h->node[i];

		if (!n->path)
			continue;
		if (strcmp(n->path, "/dev/nvidiactl") == 0)
			flag_if_known(f, FACT_node_control, n->exists);
		if (strcmp(n->path, "/dev/nvidia-uvm") == 0)
			flag_if_known(f, FACT_node_uvm, n->exists);
		if (n->exists == 0 && !missing[0])
			missing = n->path;
		if (n->exists != 1 || n->error <= 0 || refused[0] || strstr(n->path, "nvidia-caps") ||
		    strstr(n->path, "modeset"))
			continue;
		refused = n->path;
		fact_set_text(f, FACT_node_reason, errno_words(n->error));
		if (n->mode >= 0)
			fact_set_text(f, FACT_node_mode, pool_printf(f->pool, "%o", (unsigned int)n->mode & 07777));
	}
	fact_set_text(f, FACT_node_missing, missing);
	fact_set_text(f, FACT_node_refused, refused);
}

static void fill_services(struct casefile *f, const struct host *h)
{
	number_if_known(f, FACT_fabric_switches, h->fabric.switches);
	flag_if_known(f, FACT_fabric_installed, h->fabric.installed);
	flag_if_known(f, FACT_fabric_running, h->fabric.running);
	fact_set_text(f, FACT_fabric_version, h->fabric.version);
	fact_set_text(f, FACT_mps_dir, h->mps.pipe_dir);
	flag_if_known(f, FACT_mps_asked, h->mps.asked);
	flag_if_known(f, FACT_mps_pipe, h->mps.pipe);
	flag_if_known(f, FACT_mps_access, h->mps.pipe_access);
	flag_if_known(f, FACT_mps_daemon, h->mps.daemon);
	number_if_known(f, FACT_shm_size, h->memory.shm_size);
	number_if_known(f, FACT_shm_free, h->memory.shm_free);
	flag_if_known(f, FACT_shm_writable, h->memory.shm_writable);
	if (h->memory.lock_soft == HOST_UNLIMITED)
		fact_set_flag(f, FACT_lock_unlimited, true);
	else if (h->memory.lock_soft >= 0) {
		fact_set_flag(f, FACT_lock_unlimited, false);
		fact_set_number(f, FACT_lock_limit, (double)h->memory.lock_soft);
	}
}

/* Mistakes that change what CUDA does are worth a warning; a setting that is merely on is not. */
static bool matters(const struct var_finding *v)
{
	return v->kind == VAR_BAD_VALUE || v->kind == VAR_CONTRADICTS || v->kind == VAR_MISSPELT ||
	       v->kind == VAR_DANGEROUS;
}

static bool asks_for_peers(const struct variables *v)
{
	const char *level = variables_get(v, "NCCL_P2P_LEVEL"), *off = variables_get(v, "NCCL_P2P_DISABLE");

	return level && level[0] && strcmp(level, "0") != 0 && strcasecmp(level, "LOC") != 0 &&
	       !(off && strcmp(off, "1") == 0);
}

static void fill_variables(struct casefile *f, const struct machine *m)
{
	const struct var_finding *worst = NULL;
	size_t n = 0;

	if (!m->variables.known)
		return;
	for (size_t i = 0; i < m->variables.n_findings; i++) {
		const struct var_finding *v = &m->variables.finding[i];

		/* it has facts of its own */
		if (!matters(v) || strcmp(v->name, "CUDA_VISIBLE_DEVICES") == 0)
			continue;
		n++;
		worst = worst ? worst : v;
	}
	fact_set_flag(f, FACT_peers_asked, asks_for_peers(&m->variables));
	fact_set_number(f, FACT_variable_count, (double)n);
	fact_set_text(f, FACT_variable_name, worst ? worst->name : "");
	if (!worst)
		return;
	fact_set_text(f, FACT_variable_kind, variables_kind_id(worst->kind));
	fact_set_text(f, FACT_variable_text, worst->text);
	fact_set_text(f, FACT_variable_advice, worst->advice);
}

/* The GPUs as CUDA would number them without the variable: NVML's order, which is that of the bus. */
static int list_visible(const struct machine *m, struct visible_gpu *gpu)
{
	size_t n = m->nvml ? m->nvml->n : 0;

	if (!m->nvml || (!n && m->nvml->trouble != USAGE_COMPLETE))
		return -1;
	for (size_t i = 0; i < n && i < VISIBLE_MAX; i++)
		gpu[i] = (struct visible_gpu){.uuid = m->nvml->gpu[i].card.uuid[0] ? m->nvml->gpu[i].card.uuid : NULL};
	return n < VISIBLE_MAX ? (int)n : VISIBLE_MAX;
}

static void fill_devices(struct casefile *f, const struct machine *m)
{
	const char *value = variables_get(&m->variables, "CUDA_VISIBLE_DEVICES");
	struct visible_gpu gpu[VISIBLE_MAX];
	struct visible v;

	if (!m->variables.known)
		return;
	fact_set_flag(f, FACT_devices_set, value != NULL);
	if (!value)
		return;
	visible_parse(&v, f->pool, value, gpu, list_visible(m, gpu));
	fact_set_text(f, FACT_devices_value, value);
	fact_set_number(f, FACT_devices_wanted, v.wanted);
	fact_set_text(f, FACT_devices_end, visible_end_id(v.end));
	fact_set_text(f, FACT_devices_stopped, v.stopped_at);
	if (v.n >= 0)
		fact_set_number(f, FACT_devices_seen, v.n);
}

/* Programs that failed earlier left lines in the log; only broken hardware is worth reporting. */
static void fill_log(struct casefile *f, const struct host *h)
{
	const struct xid *x = NULL;

	if (!h->xids.readable)
		return;
	for (size_t i = 0; i < h->xids.n && !x; i++)
		if (xid_class(h->xids.line[i].number) == XID_HARDWARE)
			x = &h->xids.line[i];
	fact_set_number(f, FACT_xid_number, x ? x->number : 0);
	fact_set_text(f, FACT_xid_class, x ? "hardware" : "");
	fact_set_text(f, FACT_xid_meaning, x ? xid_meaning(x->number) : "");
	if (x)
		fact_set_text(f, FACT_xid_text, x->text);
}

static void fill_machine_host(struct casefile *f, const struct machine *m)
{
	const struct host *h = &m->host;

	fact_set_flag(f, FACT_machine_is, true);
	fill_bus(f, m);
	fact_set_text(f, FACT_machine_container, h->container.kind);
	fact_set_text(f, FACT_machine_container_hook, h->container.hook);
	if (h->container.devices_allowed >= 0)
		fact_set_flag(f, FACT_machine_container_denied, h->container.devices_allowed == 0);
	number_if_known(f, FACT_machine_wsl, h->wsl.version);
	fill_module(f, h);
	fill_nodes(f, m);
	fill_services(f, h);
	fill_log(f, h);
	fill_variables(f, m);
	fill_devices(f, m);
}

/* Which file the loader picks: its own answer where the probe ran, else by following its rules. */
static void fill_driver_library(struct casefile *f, const struct machine *m)
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
		fact_set_text(f, FACT_driver_init_name,
			      c->library.init ? cuda_error_name((uint32_t)c->library.init) : "success");
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

static bool has_nvidia_node(const struct host *h)
{
	for (ptrdiff_t i = 0; i < h->n_node; i++)
		if (h->node[i].exists == 1 && h->node[i].path && str_starts(h->node[i].path, "/dev/nvidia"))
			return true;
	return false;
}

/* Is there anything at all? Unknown if a source that could know was not asked. */
static void fill_any(struct casefile *f, const struct machine *m)
{
	const struct host *h = &m->host;
	bool gpu = h->n_gpu > 0 || machine_gpus(m) > 0 || has_nvidia_node(h) || h->wsl.dxg == 1 ||
		   (m->cuda.library.init == 0 && m->cuda.library.count > 0);
	bool driver = h->kernel.nvidia == 1 || has_nvidia_node(h) || m->cuda.library.path[0] || m->envs.libcuda.path ||
		      h->wsl.libcuda == 1 || (m->nvml && m->nvml->driver[0]) ||
		      (m->nvml && m->nvml->trouble != USAGE_NO_LIBRARY && m->nvml->trouble != USAGE_NO_PROBE);

	if (gpu || (m->bus_known && h->wsl.version <= 0))
		fact_set_flag(f, FACT_machine_any_gpu, gpu);
	if (driver || (h->kernel.nvidia >= 0 && (m->cuda_asked || m->nodes_known)))
		fact_set_flag(f, FACT_machine_any_driver, driver);
}

static void fill_machine_driver(struct casefile *f, const struct machine *m)
{
	struct compat_driver d = machine_driver(m);
	int cuda = machine_driver_cuda(m), newest = machine_newest_branch(m);
	char text[32];

	if (d.major) {
		fact_set_text(f, FACT_driver_release, m->nvml && m->nvml->driver[0] ? m->nvml->driver
			      : m->host.kernel.version	    ? m->host.kernel.version
							    : compat_driver_text(d, text));
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
	fill_driver_library(f, m);
	fill_answers(f, m);
	fill_any(f, m);
}

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

static void fill_machine_install(struct casefile *f, const struct machine *m, const struct pyenv *env)
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

static void fill_machine_builds(struct casefile *f, const struct machine *m, const struct pyenv *env)
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

static void fill_machine_loader(struct casefile *f, const struct machine *m, const struct pyenv *env)
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

static void fill_machine_extensions(struct casefile *f, const struct machine *m, size_t env, const struct machine_gpu *g)
{
	if (m->envs.env[env].n_packages || m->envs.env[env].n_clashes) {	/* an environment without any was not examined */
		fill_broken_package(f, &m->envs.env[env]);
		fill_clashes(f, &m->envs.env[env]);
	}
	fill_abi(f, &m->envs.env[env]);
	if (g && g->cc)
		fill_extension_code(f, m, env, g->cc);
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
		fill_other_gpus(f, m, g, env, index);
		fill_compilers(f, m, env, index, g->cc);
		fill_cudnn(f, env, g->cc);
	}
	fill_machine_builds(f, m, env);
	fill_machine_loader(f, m, env);
	fill_machine_extensions(f, m, index, g);
}

void facts_of_machine(struct casefile *f, const struct machine *m, size_t gpu)
{
	struct machine_gpu g;
	bool is = gpu < machine_gpus(m);

	fill_machine_host(f, m);
	fill_machine_driver(f, m);
	fact_set_flag(f, FACT_gpu_is, is);
	if (is) {
		machine_gpu(m, gpu, &g);
		fill_machine_gpu(f, m, &g);
	}
	fill_machine_env(f, m, is ? &g : NULL);
}
