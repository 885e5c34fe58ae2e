/* SPDX-License-Identifier: Apache-2.0
 * What the driver answered, in a bundle: one table per struct of src/probe.
 */
#include "input/machine/bundle_priv.h"

#include <errno.h>

#include "base/err.h"
#include "probe/probe.h"

#define GPUS_MAX 256

static const char *const troubles[] = {[USAGE_COMPLETE] = "none", [USAGE_NO_PROBE] = "no-probe", [USAGE_NO_LIBRARY] = "no-library",
				       [USAGE_REFUSED] = "refused", [USAGE_HUNG] = "hung", [USAGE_DIED] = "died", NULL};
static const char *const states[] = {[HOLDER_UNKNOWN] = "unknown", [HOLDER_RUNNING] = "running", [HOLDER_ZOMBIE] = "zombie",
				     [HOLDER_GONE] = "gone", [HOLDER_OUTSIDE] = "outside", NULL};

/* A member of a struct inside the struct, under a key of its own. */
#define IN(key, kind, type, member, unknown_) \
	F_ROW(key, kind, type, member, .unknown = (int64_t)(unknown_))

static const struct field holder_field[] = {
	F_NUMBER(struct gpu_holder, pid, 0), F_NUMBER(struct gpu_holder, instance, UINT32_MAX), F_NUMBER(struct gpu_holder, kind, 0),
	F_WORD(struct gpu_holder, state, states, HOLDER_UNKNOWN), F_NUMBER(struct gpu_holder, own_user, 0),
	F_NUMBER(struct gpu_holder, bytes, USAGE_UNKNOWN), F_CHARS(struct gpu_holder, command), F_END,
};
static const struct fields holder = {holder_field, sizeof(struct gpu_holder), NULL};

static const struct field gpu_field[] = {
	IN("index", FIELD_NUMBER, struct gpu_state, card.index, UINT32_MAX), IN("uuid", FIELD_CHARS, struct gpu_state, card.uuid, 0),
	IN("pci", FIELD_CHARS, struct gpu_state, card.pci, 0), IN("name", FIELD_CHARS, struct gpu_state, card.name, 0),
	IN("total", FIELD_NUMBER, struct gpu_state, card.total, USAGE_UNKNOWN),
	IN("reserved", FIELD_NUMBER, struct gpu_state, card.reserved, USAGE_UNKNOWN),
	IN("used", FIELD_NUMBER, struct gpu_state, card.used, USAGE_UNKNOWN),
	IN("free", FIELD_NUMBER, struct gpu_state, card.free, USAGE_UNKNOWN),
#define DETAIL(field, text) IN(#field, FIELD_NUMBER, struct gpu_state, details.field, -1),
#include "probe/details.def"
#undef DETAIL
	F_LIST(struct gpu_state, "processes", holder, n, holder),
	F_BOOL(struct gpu_state, holders_known), F_END,
};
static const struct fields gpu = {gpu_field, sizeof(struct gpu_state), NULL};

static const struct field nvml_field[] = {
	F_CHARS(struct gpu_usage, driver), F_CHARS(struct gpu_usage, nvml), F_NUMBER(struct gpu_usage, cuda, -1),
	F_NUMBER(struct gpu_usage, code, 0), F_WORD(struct gpu_usage, trouble, troubles, USAGE_COMPLETE),
	F_CHARS(struct gpu_usage, why), F_LIST(struct gpu_usage, "gpus", gpu, n, gpu), F_END,
};

static int check_nvml(void *it, struct pool *pool, struct err *e)
{
	struct gpu_usage *u = it;

	(void)pool;
	if (u->n > GPUS_MAX)
		return err_set(e, -EINVAL, "the bundle has %zu GPUs, and no machine has more than %d", u->n, GPUS_MAX);
	for (size_t i = 0; i < u->n; i++) {
		struct gpu_state *g = &u->gpu[i];

		if (g->card.index == UINT32_MAX)
			g->card.index = (uint32_t)i;
		g->card.mig = g->details.mig == 1;
		g->cap = g->n;
	}
	u->cap = u->n;
	return 0;
}

const struct fields bundle_nvml = {nvml_field, sizeof(struct gpu_usage), check_nvml};

static const struct field device_field[] = {
	F_CHARS(struct cuda_device, name), F_CHARS(struct cuda_device, uuid), F_CHARS(struct cuda_device, pci),
	F_NUMBER(struct cuda_device, cc_major, -1), F_NUMBER(struct cuda_device, cc_minor, -1),
	F_NUMBER(struct cuda_device, compute_mode, -1), F_NUMBER(struct cuda_device, total, USAGE_UNKNOWN),
	F_NUMBER(struct cuda_device, peers, 0), F_NUMBER(struct cuda_device, peers_known, 0), F_END,
};
static const struct fields device = {device_field, sizeof(struct cuda_device), NULL};

static const struct field cuda_field[] = {
	IN("path", FIELD_CHARS, struct cuda_answer, library.path, 0),
	F_IF_KNOWN(NUMBER, "init", struct cuda_answer, library.init, -1),
	F_IF_KNOWN(NUMBER, "version", struct cuda_answer, library.version, -1),
	F_IF_KNOWN(NUMBER, "count", struct cuda_answer, library.count, -1),
	F_WORD(struct cuda_answer, trouble, troubles, USAGE_COMPLETE), F_CHARS(struct cuda_answer, why),
	F_LIST(struct cuda_answer, "devices", device, n, device), F_END,
};

static int check_cuda(void *it, struct pool *pool, struct err *e)
{
	struct cuda_answer *a = it;

	(void)pool;
	(void)e;
	a->n = a->n > CUDA_DEVICES_MAX ? CUDA_DEVICES_MAX : a->n;
	if (a->library.count < 0 && a->n)
		a->library.count = (int32_t)a->n;
	return 0;
}

const struct fields bundle_cuda = {cuda_field, sizeof(struct cuda_answer), check_cuda};
