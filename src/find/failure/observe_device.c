/* SPDX-License-Identifier: Apache-2.0
 * Facts about devices: the current one, the one requested, and what CUDA_VISIBLE_DEVICES does.
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "compat/cuda_errors.h"
#include "find/failure/observe.h"
#include "read/recording/trace.h"

/* CUDA reads the list up to the first entry that cannot be a device. */
static unsigned count_entries(const char *list)
{
	unsigned n = 0;

	while (*list) {
		while (*list == ' ')
			list++;
		if (!isdigit((unsigned char)*list) && !str_starts(list, "GPU-") && !str_starts(list, "MIG-"))
			break;
		n++;
		list += strcspn(list, ",");
		if (*list == ',')
			list++;
	}
	return n;
}

/* The driver is there and finds no device, or is not there at all. A list of visible devices that names missing ones is another
 * matter: they were asked for. */
bool incident_no_gpu(const struct incident *i, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);

	if (i->code == CODE_INSUFFICIENT_DRIVER)
		return !h->libcuda_path[0] && !h->driver_version;
	return i->code == CODE_NO_DEVICE &&
	       (strcmp(i->lead->visible_devices, CW_NOT_SET) == 0 || count_entries(i->lead->visible_devices) == 0);
}

static void fill_visible(struct casefile *f, const struct incident *i, const struct cw_header *h)
{
	const char *first = h->visible_devices_at_init, *now = i->lead->visible_devices;
	bool was_set = strcmp(first, CW_NOT_SET) != 0, is_set = strcmp(now, CW_NOT_SET) != 0;

	fact_set_flag(f, FACT_visible_set_now, is_set);
	if (is_set) {
		fact_set_text(f, FACT_visible_now, now);
		fact_set_number(f, FACT_visible_entries_now, count_entries(now));
	}
	if (h->init_result == CW_UNKNOWN)
		return;		/* CUDA never started: there is no value "at start" */
	fact_set_flag(f, FACT_visible_set, was_set);
	/* the copy at the failure is shorter, so compare what it can hold */
	fact_set_flag(f, FACT_visible_changed,
		      strncmp(first, now, sizeof(i->lead->visible_devices) - 1) != 0);
	fact_set_flag(f, FACT_visible_hides_all, was_set && count_entries(first) == 0);
	if (was_set) {
		fact_set_text(f, FACT_visible_at_init, first);
		fact_set_number(f, FACT_visible_entries, count_entries(first));
	}
}

/* Which argument of the call is the ordinal of a device? -1 = none. */
static int ordinal_argument(const struct cw_failure *l)
{
	if (api_does(l->api, DOES_ORDINAL))
		return (int)api_n_args(l->api) - 1;
	return !l->api && !strcmp(l->what, "cudaSetDevice") ? 0 : -1;	/* libcudart refuses it by itself */
}

static void fill_ordinal(struct casefile *f, const struct incident *i)
{
	for (size_t k = 0; k < i->n && !fact_known(f, FACT_ordinal_asked); k++) {
		const struct cw_failure *l = i->failure[k];
		int n = l->code == CODE_INVALID_DEVICE ? ordinal_argument(l) : -1;

		if (n >= 0 && (uint32_t)n < l->n_args)
			fact_set_number(f, FACT_ordinal_asked, (int32_t)l->arg[n]);
	}
}

static void fill_version(struct casefile *f, enum fact_id id, const char *text, size_t size)
{
	if (text[0] && strnlen(text, size) < size)
		fact_set_text(f, id, text);
}

void fill_versions(struct casefile *f, const struct trace *t, const struct cw_device *d)
{
	const struct cw_header *h = trace_header(t);

	case_observe(f, GROUP_versions);
	fill_version(f, FACT_versions_torch, h->torch_version, sizeof(h->torch_version));
	fill_version(f, FACT_versions_cuda, h->torch_cuda, sizeof(h->torch_cuda));
	fill_version(f, FACT_versions_cudnn, h->cudnn_version, sizeof(h->cudnn_version));
	fill_version(f, FACT_versions_nccl, h->nccl_version, sizeof(h->nccl_version));
	fill_version(f, FACT_versions_driver, h->driver_release, sizeof(h->driver_release));
	fill_version(f, FACT_versions_os, h->os_name, sizeof(h->os_name));
	if (d)
		fill_version(f, FACT_versions_gpu, d->name, sizeof(d->name));
	if (h->py_version)
		fact_set_text(f, FACT_versions_python,
			      pool_printf(f->pool, "%u.%u.%u", h->py_version >> 24, h->py_version >> 16 & 0xff,
					  h->py_version >> 8 & 0xff));
}

void fill_device(struct casefile *f, const struct incident *i, const struct trace *t, const struct cw_device *d)
{
	const struct cw_header *h = trace_header(t);

	if (i->lead->device >= 0)
		fact_set_number(f, FACT_device_ordinal, i->lead->device);
	if (h->device_count != CW_UNKNOWN)
		fact_set_number(f, FACT_device_count, h->device_count);
	if (d && d->name[0])
		fact_set_text(f, FACT_device_name, d->name);
	if (d && d->total_bytes)
		fact_set_number(f, FACT_device_total, (double)d->total_bytes);
	if (d && d->attr[CW_DEV_cc_major] > 0 && d->attr[CW_DEV_cc_minor] >= 0) {
		fact_set_text(f, FACT_device_cc,
			      pool_printf(f->pool, "%d.%d", d->attr[CW_DEV_cc_major], d->attr[CW_DEV_cc_minor]));
		fact_set_text(f, FACT_device_arch,
			      pool_printf(f->pool, "sm_%d%d", d->attr[CW_DEV_cc_major], d->attr[CW_DEV_cc_minor]));
	}
	fact_set_flag(f, FACT_driver_loaded, h->libcuda_path[0] || h->driver_version);
	if (h->driver_version)
		fact_set_text(f, FACT_driver_version,
			      pool_printf(f->pool, "%u.%u", h->driver_version / 1000, h->driver_version % 1000 / 10));
	fill_ordinal(f, i);
	fill_visible(f, i, h);
}
