/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine's files, variables and driver.
 */
#include "find/host/observe_parts.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "compat/cuda_errors.h"

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

void facts_of_host(struct casefile *f, const struct machine *m)
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

void facts_of_driver(struct casefile *f, const struct machine *m)
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
