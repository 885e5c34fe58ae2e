/* SPDX-License-Identifier: Apache-2.0
 * The environment of a process in a page, and what its recording lacks.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/dump/culprit.h"
#include "base/json_text.h"
#include "write/page_priv.h"
#include "rules/template.h"
#include "input/recording/trace.h"

__attribute__((format(printf, 3, 4))) static void put(json_t *list, const char *label, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	if (text[0])
		json_array_append_new(list, json_pack("[s,o]", label, json_text(text)));
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
		put(list, label, "%s, %s, compute capability %d.%d, %d SMs", d->name, size, d->attr[CW_DEV_cc_major],
		    d->attr[CW_DEV_cc_minor], d->attr[CW_DEV_sm_count]);
	else
		put(list, label, "%s, %s", d->name, size);
}

static const char *visible(const char *value)
{
	return !strcmp(value, CW_NOT_SET) ? "not set" : value[0] ? value : "empty: no device";
}

static void put_versions(json_t *list, const struct cw_header *h)
{
	if (h->driver_version)
		put(list, "CUDA of the driver", "%" PRIu32 ".%" PRIu32, h->driver_version / 1000, h->driver_version % 1000 / 10);
	if (h->py_version)
		put(list, "Python", "%" PRIu32 ".%" PRIu32 ".%" PRIu32, h->py_version >> 24, (h->py_version >> 16) & 0xff,
		    (h->py_version >> 8) & 0xff);
	put(list, "PyTorch", "%s", h->torch_path[0] ? h->torch_path : "not loaded");
	put(list, "libcuda", "%s", h->libcuda_path);
	if (h->sim)
		put(list, "GPU", "simulated by cuwhy");
}

static void put_settings(json_t *list, const struct cw_header *h)
{
	put(list, "CUDA_VISIBLE_DEVICES", "%s", visible(h->visible_devices_at_init));
	if (strcmp(h->visible_devices_at_init, h->visible_devices_now) != 0 && h->visible_devices_now[0])
		put(list, "… later", "%s", visible(h->visible_devices_now));
	put(list, "PYTORCH_CUDA_ALLOC_CONF", "%s",
	    h->alloc_conf[0] && strcmp(h->alloc_conf, CW_NOT_SET) != 0 ? h->alloc_conf : "not set");
}

static void put_process(json_t *list, const struct cw_header *h)
{
	put(list, "command", "%s", h->cmdline);
	put(list, "folder", "%s", h->cwd);
	put(list, "program", "%s", h->exe);
	if (h->rank != CW_UNKNOWN && h->world_size != CW_UNKNOWN)
		put(list, "rank", "%" PRIu32 " of %" PRIu32, h->rank, h->world_size);
	else if (h->rank != CW_UNKNOWN)
		put(list, "rank", "%" PRIu32, h->rank);
}

static void put_recorder(json_t *list, const struct cw_header *h)
{
	put(list, "recording", "format %u.%u: %s", h->major, h->minor, reason_text(h->off_because));
	put(list, "lines of Python", "%s", h->frames_off_because ? reason_text(h->frames_off_because) : "recorded");
	put(list, "GPU core dumps", "%s",
	    h->dump_path[0] ? "armed" : h->dump_reason ? reason_text(h->dump_reason) : "not armed");
	put(list, "memory trace", "%s", h->memory_trace_path[0] ? "every event, in a file beside it" : "not asked for");
}

static void put_dump(json_t *list, const struct culprit *c)
{
	put(list, "device", "%s", c->device_name ? c->device_name : "");
	put(list, "chip", "%s%s%s", c->chip ? c->chip : "", c->sm_type && c->sm_type[0] ? ", " : "", c->sm_type ? c->sm_type : "");
	if (c->driver_major)
		put(list, "driver", "%u.%u", c->driver_major, c->driver_minor);
	if (c->cuda_major)
		put(list, "CUDA", "%u.%u", c->cuda_major, c->cuda_minor);
}

json_t *page_environment(const struct trace *t, const struct culprit *c)
{
	json_t *list = json_array();
	const struct cw_header *h = t ? trace_header(t) : NULL;

	if (h) {
		put_process(list, h);
		for (int d = 0; d < CW_MAX_DEVICES; d++)
			put_device(list, d, &h->device[d]);
		put_versions(list, h);
		put_settings(list, h);
		put_recorder(list, h);
	} else if (c) {
		put_dump(list, c);
	}
	return list;
}

/* --- what is missing ---------------------------------------------------------------------------- */

static void lost(json_t *list, uint64_t n, const char *one, const char *more)
{
	char text[32];

	if (n == 1)
		page_say(list, "1 %s was not recorded: there was no room for it", one);
	else if (n)
		page_say(list, "%s %s were not recorded: there was no room for them", format_thousands(text, sizeof(text), (double)n), more);
}

static bool has_chunk(const struct cw_header *h, uint32_t kind)
{
	for (int i = 0; i < CW_MAX_CHUNKS; i++)
		if (h->chunk[i].kind == kind)
			return true;
	return false;
}

/* Memory was used, and nothing tells by whom. */
static bool memory_is_missing(const struct cw_header *h)
{
	bool used = false;

	for (int d = 0; d < CW_MAX_DEVICES; d++)
		used = used || h->memory[d].peak_allocated || h->memory[d].driver_peak;
	return used && !has_chunk(h, CW_CHUNK_ALLOCATIONS) && !has_chunk(h, CW_CHUNK_BLOCKS);
}

json_t *page_gaps(const struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	json_t *list = json_array();

	if (h->minor > CW_MINOR)
		page_say(list, "the recording was made by a newer cuwhy (format %u.%u, this one knows %d.%d): what was added since "
			 "is not shown", h->major, h->minor, CW_MAJOR, CW_MINOR);
	if (h->off_because)
		page_say(list, "the recorder switched itself off: %s", reason_text(h->off_because));
	if (h->frames_off_because)
		page_say(list, "there are no lines of Python: %s", reason_text(h->frames_off_because));
	if (!h->n_blocks && h->torch_path[0])
		page_say(list, "PyTorch's allocator reported no block: memory is known as the driver gave it out");
	if (h->inexact_since_ns)
		page_say(list, "the table of live allocations is not exact");
	if (h->blocks_inexact_since_ns)
		page_say(list, "the table of PyTorch's blocks is not exact");
	if (memory_is_missing(h))
		page_say(list, "the recording has no tables of memory: who held it, and what lies around an address, is not known");
	lost(list, h->lost_stacks, "stack", "stacks");
	lost(list, h->lost_functions, "kernel", "kernels");
	lost(list, h->lost_allocations, "allocation", "allocations");
	lost(list, h->lost_blocks, "block of PyTorch", "blocks of PyTorch");
	lost(list, h->lost_threads, "thread", "threads");
	lost(list, h->lost_strings, "name", "names");
	lost(list, h->lost_sites, "block by line", "blocks by line");
	return list;
}
