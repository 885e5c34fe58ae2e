/* SPDX-License-Identifier: Apache-2.0
 * Facts about out of memory: how much was requested, who holds what.
 */
#include <string.h>

#include "find/failure/observe.h"
#include "case/ledger.h"
#include "compat/cuda_errors.h"
#include "read/recording/trace.h"

static void set_oom_bytes(struct casefile *f, enum fact_id id, uint64_t bytes)
{
	if (bytes && !fact_known(f, id))
		fact_set_number(f, id, (double)bytes);
}

static bool is_oom(const struct incident *i)
{
	const char *type;

	if (i->code == CODE_OUT_OF_MEMORY)
		return true;
	for (size_t k = 0; k < i->n; k++) {
		type = i->failure[k]->what;
		if (i->failure[k]->source == CW_SRC_TORCH_OOM || strstr(type, "OutOfMemory") ||
		    strstr(i->failure[k]->text, "CUDA out of memory"))
			return true;
	}
	return false;
}

bool failure_is_host(const struct cw_failure *l)
{
	return api_does(l->api, DOES_HOST);
}

/* What PyTorch says about its own allocator wins over what the driver saw of it. */
static void fill_failure(struct casefile *f, const struct cw_failure *l)
{
	set_oom_bytes(f, FACT_oom_request, l->request_bytes);
	if (l->source == CW_SRC_TORCH_OOM) {
		fact_set_number(f, FACT_oom_torch_allocated, (double)l->torch_allocated);
		fact_set_number(f, FACT_oom_torch_reserved, (double)l->torch_reserved);
	}
	if (l->memory_known && !fact_known(f, FACT_oom_free)) {
		fact_set_number(f, FACT_oom_free, (double)l->free_bytes);
		set_oom_bytes(f, FACT_oom_total, l->total_bytes);
	}
	set_oom_bytes(f, FACT_oom_live, l->live_device_bytes);
}

/* PyTorch asks the driver for a whole segment. Where the tensor alone would have fit, the segment is what did not. */
static void prefer_segment(struct casefile *f, const struct incident *i)
{
	double free_bytes = fact_number(f, FACT_oom_free, 0);

	if (!fact_known(f, FACT_oom_free) || fact_number(f, FACT_oom_request, 0) > free_bytes)
		return;
	for (size_t k = 0; k < i->n; k++)
		if (i->failure[k]->source == CW_SRC_DRIVER && (double)i->failure[k]->request_bytes > free_bytes)
			fact_set_number(f, FACT_oom_request, (double)i->failure[k]->request_bytes);
}

void fill_memory(struct casefile *f, const struct incident *i, const struct cw_device *d)
{
	const struct cw_failure *torch = incident_from(i, CW_SRC_TORCH_OOM);
	bool oom = is_oom(i);

	fact_set_flag(f, FACT_oom_is, oom);
	if (!oom)
		return;
	fact_set_flag(f, FACT_oom_by_torch, i->lead->source == CW_SRC_TORCH_OOM);
	fact_set_flag(f, FACT_oom_host, failure_is_host(i->lead));
	if (torch)
		fill_failure(f, torch);
	for (size_t k = 0; k < i->n; k++)
		fill_failure(f, i->failure[k]);
	if (torch)
		prefer_segment(f, i);
	if (!fact_known(f, FACT_oom_total) && d)
		set_oom_bytes(f, FACT_oom_total, d->total_bytes);
}
