/* SPDX-License-Identifier: Apache-2.0
 * What a recording, a dump or a bundle says about where it was made, and what it lacks (see page_parts.h).
 */
#include "show/page_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "base/mem.h"
#include "case/case.h"
#include "find/fault/culprit.h"
#include "read/machine/machine.h"
#include "read/recording/trace.h"

#define GPUS_MAX	64
#define ENVS_MAX	16

static void put_pair(json_t *list, const char *label, const char *text)
{
	json_array_append_new(list, json_pack("[s,o]", label, json_text(text)));
}

/* Unless it is empty. */
__attribute__((format(printf, 3, 4))) static void put_setting(json_t *list, const char *label, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	if (text[0])
		put_pair(list, label, text);
	free(text);
}

static void put_device(json_t *list, int number, const struct cw_device *d)
{
	char label[32], size[32];

	if (!d->name[0])
		return;
	snprintf(label, sizeof(label), "device %d", number);
	format_bytes(size, sizeof(size), (double)d->total_bytes);
	if (d->attr[CW_DEV_cc_major] >= 0)
		put_setting(list, label, "%s, %s, compute capability %d.%d, %d SMs", d->name, size,
			    d->attr[CW_DEV_cc_major], d->attr[CW_DEV_cc_minor], d->attr[CW_DEV_sm_count]);
	else
		put_setting(list, label, "%s, %s", d->name, size);
}

static const char *visible_text(const char *value)
{
	return !strcmp(value, CW_NOT_SET) ? "not set" : value[0] ? value : "empty: no device";
}

static void put_versions(json_t *list, const struct cw_header *h)
{
	if (h->driver_version)
		put_setting(list, "CUDA version of the driver", "%" PRIu32 ".%" PRIu32, h->driver_version / 1000,
			    h->driver_version % 1000 / 10);
	if (h->py_version)
		put_setting(list, "Python", "%" PRIu32 ".%" PRIu32 ".%" PRIu32, h->py_version >> 24,
			    (h->py_version >> 16) & 0xff, (h->py_version >> 8) & 0xff);
	put_setting(list, "PyTorch", "%s", h->torch_path[0] ? h->torch_path : "not loaded");
	put_setting(list, "libcuda", "%s", h->libcuda_path);
	if (h->sim)
		put_setting(list, "GPU", "simulated by cuwhy");
}

static void put_variables(json_t *list, const struct cw_header *h)
{
	put_setting(list, "CUDA_VISIBLE_DEVICES", "%s", visible_text(h->visible_devices_at_init));
	if (strcmp(h->visible_devices_at_init, h->visible_devices_now) != 0 && h->visible_devices_now[0])
		put_setting(list, "… later", "%s", visible_text(h->visible_devices_now));
	put_setting(list, "PYTORCH_CUDA_ALLOC_CONF", "%s",
		    h->alloc_conf[0] && strcmp(h->alloc_conf, CW_NOT_SET) != 0 ? h->alloc_conf : "not set");
}

static void put_program(json_t *list, const struct cw_header *h)
{
	put_setting(list, "command", "%s", h->cmdline);
	put_setting(list, "folder", "%s", h->cwd);
	put_setting(list, "program", "%s", h->exe);
	if (h->rank != CW_UNKNOWN && h->world_size != CW_UNKNOWN)
		put_setting(list, "rank", "%" PRIu32 " of %" PRIu32, h->rank, h->world_size);
	else if (h->rank != CW_UNKNOWN)
		put_setting(list, "rank", "%" PRIu32, h->rank);
}

static void put_recorder(json_t *list, const struct cw_header *h)
{
	put_setting(list, "recording", "format %u.%u: %s", h->major, h->minor, reason_text(h->off_because));
	put_setting(list, "Python lines", "%s", h->frames_off_because ? reason_text(h->frames_off_because) : "recorded");
	put_setting(list, "GPU core dumps", "%s",
		    h->dump_path[0] ? "armed" : h->dump_reason ? reason_text(h->dump_reason) : "not armed");
	put_setting(list, "memory trace", "%s",
		    h->memory_trace_path[0] ? "every event, in a separate file" : "not requested");
}

json_t *page_environment(const struct cw_header *h)
{
	json_t *list = json_array();

	put_program(list, h);
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		put_device(list, d, &h->device[d]);
	put_versions(list, h);
	put_variables(list, h);
	put_recorder(list, h);
	return list;
}

json_t *page_environment_of_dump(const struct culprit *c)
{
	json_t *list = json_array();

	put_setting(list, "device", "%s", c->device_name ? c->device_name : "");
	put_setting(list, "chip", "%s%s%s", c->chip ? c->chip : "", c->sm_type && c->sm_type[0] ? ", " : "",
		    c->sm_type ? c->sm_type : "");
	if (c->driver_major)
		put_setting(list, "driver", "%u.%u", c->driver_major, c->driver_minor);
	if (c->cuda_major)
		put_setting(list, "CUDA", "%u.%u", c->cuda_major, c->cuda_minor);
	return list;
}

static void put_lost(json_t *list, uint64_t n, const char *one, const char *more)
{
	char text[32];

	if (n == 1)
		json_append_text(list, "1 %s was not recorded: there was no room for it", one);
	else if (n)
		json_append_text(list, "%s %s were not recorded: there was no room for them",
				 format_thousands(text, sizeof(text), (double)n), more);
}

static bool has_chunk(const struct cw_header *h, uint32_t kind)
{
	for (int i = 0; i < CW_MAX_CHUNKS; i++)
		if (h->chunk[i].kind == kind)
			return true;
	return false;
}

static bool memory_was_used(const struct cw_header *h)
{
	bool used = false;

	for (int d = 0; d < CW_MAX_DEVICES; d++)
		used = used || h->memory[d].peak_allocated || h->memory[d].driver_peak;
	return used;
}

/* Memory was used, but the recording does not say by what. */
static bool memory_is_missing(const struct cw_header *h)
{
	return memory_was_used(h) && !has_chunk(h, CW_CHUNK_ALLOCATIONS) && !has_chunk(h, CW_CHUNK_BLOCKS);
}

json_t *page_gaps(const struct cw_header *h)
{
	json_t *list = json_array();

	if (h->minor > CW_MINOR)
		json_append_text(
			list,
			"the recording was made by a newer cuwhy (format %u.%u, this one knows %d.%d): what was added "
			"since is not shown",
			h->major, h->minor, CW_MAJOR, CW_MINOR);
	if (h->off_because)
		json_append_text(list, "the recorder switched itself off: %s", reason_text(h->off_because));
	if (h->frames_off_because)
		json_append_text(list, "no Python lines were recorded: %s", reason_text(h->frames_off_because));
	if (!h->n_blocks && h->torch_path[0] && memory_was_used(h))
		json_append_text(list,
				 "PyTorch's allocator reported no blocks: memory is shown as the driver allocated it");
	if (h->inexact_since_ns)
		json_append_text(list, "the table of live allocations is not exact");
	if (h->blocks_inexact_since_ns)
		json_append_text(list, "the table of PyTorch's blocks is not exact");
	if (memory_is_missing(h))
		json_append_text(list, "the recording has no memory tables: what held memory, and what is near an address, is not "
				 "known");
	put_lost(list, h->lost_stacks, "stack", "stacks");
	put_lost(list, h->lost_functions, "kernel", "kernels");
	put_lost(list, h->lost_allocations, "allocation", "allocations");
	put_lost(list, h->lost_blocks, "PyTorch block", "PyTorch blocks");
	put_lost(list, h->lost_threads, "thread", "threads");
	put_lost(list, h->lost_strings, "name", "names");
	put_lost(list, h->lost_sites, "block by line", "blocks by line");
	return list;
}

static void put_gpus(json_t *list, const struct machine *m)
{
	size_t n = machine_gpus(m);
	char label[32], text[160];

	for (size_t i = 0; i < n && i < GPUS_MAX; i++) {
		struct machine_gpu g;

		machine_gpu(m, i, &g);
		snprintf(label, sizeof(label), "GPU %zu", i);
		snprintf(text, sizeof(text), "%s, compute capability %d.%d", g.name ? g.name : "", g.cc / 10, g.cc % 10);
		put_pair(list, label, g.name && g.cc ? text : g.name ? g.name : "name not known");
	}
	if (!n)
		put_pair(list, "GPUs", "none is known");
}

static void put_fact(json_t *list, const char *label, const struct casefile *f, enum fact_id id)
{
	if (fact_known(f, id))
		put_setting(list, label, "%s", fact_text(f, id));
}

static void put_environments(json_t *list, const struct machine *m)
{
	for (size_t i = 0; i < m->envs.n_envs && i < ENVS_MAX; i++)
		if (m->envs.env[i].prefix)
			put_pair(list, i ? "another Python" : "Python", m->envs.env[i].prefix);
}

json_t *page_environment_of_machine(const struct casefile *f, const struct machine *m)
{
	json_t *list = json_array();

	put_gpus(list, m);
	put_fact(list, "driver", f, FACT_driver_release);
	put_fact(list, "PyTorch", f, FACT_torch_version);
	put_environments(list, m);
	put_pair(list, "made by", m->made_by ? m->made_by : "not known");
	return list;
}
