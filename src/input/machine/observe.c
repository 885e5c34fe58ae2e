/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine from its files and variables (see fact_machine.h). A number or text of the collectors that is not
 * known stays unknown here.
 */
#include "input/machine/observe.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static void set_flag(struct casefile *f, enum fact_id id, int flag)
{
	if (flag >= 0)
		fact_set_flag(f, id, flag != 0);
}

static void set_number(struct casefile *f, enum fact_id id, int64_t n)
{
	if (n >= 0)
		fact_set_number(f, id, (double)n);
}

static const char *gpu_name_by_bus(const struct host_gpu *g)
{
	const struct compat_gpu *known = g->device > 0 && g->device <= UINT16_MAX ? compat_gpu_by_pci((uint16_t)g->device) : NULL;

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
	set_number(f, FACT_machine_gpus, h->n_gpu);
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
	static const char *const lines[] = {"needs-open-modules", "needs-closed-modules", "legacy-driver", "gpu-not-supported",
					    "module-rejected", "driver-not-bound", "bar-invalid", "init-failed"};
	const struct host_event *e = NULL;

	set_flag(f, FACT_module_loaded, h->kernel.nvidia);
	fact_set_text(f, FACT_module_version, h->kernel.version);
	fact_set_text(f, FACT_module_flavour, h->kernel.flavour);
	set_flag(f, FACT_module_installed, h->kernel.installed);
	set_flag(f, FACT_module_other_kernel, h->kernel.other_kernel);
	set_flag(f, FACT_module_nouveau, h->kernel.nouveau);
	set_flag(f, FACT_module_uvm, h->kernel.uvm);
	set_flag(f, FACT_module_secure_boot, h->os.secure_boot);
	set_number(f, FACT_machine_suspends, h->kernel.suspends);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && !e; i++)
		e = host_event(h, lines[i]);
	if (!e && h->log.readable != 1)
		return;
	fact_set_text(f, FACT_module_log, e ? e->text : "");
	fact_set_text(f, FACT_module_log_id, e ? e->id : "");
}

static const char *errno_words(int64_t error)
{
	return error == EPERM ? "the control group of the container forbids it" : error == EACCES ? "its permissions do not allow it"
	       : error == ENXIO || error == ENODEV ? "there is no device behind it" : strerror((int)error);
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
			set_flag(f, FACT_node_control, n->exists);
		if (strcmp(n->path, "/dev/nvidia-uvm") == 0)
			set_flag(f, FACT_node_uvm, n->exists);
		if (n->exists == 0 && !missing[0])
			missing = n->path;
		if (n->exists != 1 || n->error <= 0 || refused[0] || strstr(n->path, "nvidia-caps") || strstr(n->path, "modeset"))
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
	set_number(f, FACT_fabric_switches, h->fabric.switches);
	set_flag(f, FACT_fabric_installed, h->fabric.installed);
	set_flag(f, FACT_fabric_running, h->fabric.running);
	fact_set_text(f, FACT_fabric_version, h->fabric.version);
	fact_set_text(f, FACT_mps_dir, h->mps.pipe_dir);
	set_flag(f, FACT_mps_asked, h->mps.asked);
	set_flag(f, FACT_mps_pipe, h->mps.pipe);
	set_flag(f, FACT_mps_access, h->mps.pipe_access);
	set_flag(f, FACT_mps_daemon, h->mps.daemon);
	set_number(f, FACT_shm_size, h->memory.shm_size);
	set_number(f, FACT_shm_free, h->memory.shm_free);
	set_flag(f, FACT_shm_writable, h->memory.shm_writable);
	if (h->memory.lock_soft == HOST_UNLIMITED)
		fact_set_flag(f, FACT_lock_unlimited, true);
	else if (h->memory.lock_soft >= 0) {
		fact_set_flag(f, FACT_lock_unlimited, false);
		fact_set_number(f, FACT_lock_limit, (double)h->memory.lock_soft);
	}
}

/* Slips that change what CUDA does are worth a warning; what merely is on is not. */
static bool matters(const struct var_finding *v)
{
	return v->kind == VAR_BAD_VALUE || v->kind == VAR_CONTRADICTS || v->kind == VAR_MISSPELT || v->kind == VAR_DANGEROUS;
}

static bool asks_for_peers(const struct variables *v)
{
	const char *level = variables_get(v, "NCCL_P2P_LEVEL"), *off = variables_get(v, "NCCL_P2P_DISABLE");

	return level && level[0] && strcmp(level, "0") != 0 && strcasecmp(level, "LOC") != 0 && !(off && strcmp(off, "1") == 0);
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

static void fill_visible(struct casefile *f, const struct machine *m)
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

/* Programs that failed earlier left their marks in the log; broken hardware is worth telling. */
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

void fill_machine_host(struct casefile *f, const struct machine *m)
{
	const struct host *h = &m->host;

	fact_set_flag(f, FACT_machine_is, true);
	fill_bus(f, m);
	fact_set_text(f, FACT_machine_container, h->container.kind);
	fact_set_text(f, FACT_machine_container_hook, h->container.hook);
	if (h->container.devices_allowed >= 0)
		fact_set_flag(f, FACT_machine_container_denied, h->container.devices_allowed == 0);
	set_number(f, FACT_machine_wsl, h->wsl.version);
	fill_module(f, h);
	fill_nodes(f, m);
	fill_services(f, h);
	fill_log(f, h);
	fill_variables(f, m);
	fill_visible(f, m);
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
