/* SPDX-License-Identifier: Apache-2.0
 * Who held the GPUs, as JSON and back (see usage_json.h). What is not known is null.
 */
#include "read/recording/usage_json.h"

#include <string.h>

#include "base/json.h"

#define GPUS_MAX	256
#define HOLDERS_MAX	65536

static const char *const kinds[] = {"compute", "graphics", "mps"};	/* bit by bit */
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static json_t *kinds_json(const void *member)
{
	uint32_t kind = *(const uint32_t *)member;
	json_t *list = json_array();

	for (size_t i = 0; i < N_KINDS; i++)
		if (kind & 1u << i)
			json_array_append_new(list, json_string(kinds[i]));
	return list;
}

static bool is_word(const json_t *v, const char *word)
{
	return json_is_string(v) && strcmp(json_string_value(v), word) == 0;
}

static bool kinds_take(void *member, const json_t *list)
{
	uint32_t *kind = member;
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
		for (size_t k = 0; k < N_KINDS; k++)
			if (is_word(v, kinds[k]))
				*kind |= 1u << k;
	return true;
}

static json_t *state_json(const void *member)
{
	return json_string(usage_state_name((enum holder_state) * (const uint32_t *)member));
}

static bool state_take(void *member, const json_t *v)
{
	for (enum holder_state s = HOLDER_UNKNOWN; s <= HOLDER_OUTSIDE; s++)
		if (is_word(v, usage_state_name(s)))
			*(uint32_t *)member = s;
	return true;
}

static json_t *trouble_json(const void *member)
{
	return json_string(usage_trouble_name(*(const enum usage_trouble *)member));
}

/* An unknown word means an unknown problem. */
static bool trouble_take(void *member, const json_t *v)
{
	enum usage_trouble t = USAGE_COMPLETE;

	while (t < USAGE_DIED && !is_word(v, usage_trouble_name(t)))
		t++;
	*(enum usage_trouble *)member = t;
	return true;
}

static json_t *unattributed_json(const void *gpu)
{
	return json_bytes(usage_unattributed(gpu));
}

static const struct field holder_field[] = {
	F_ALWAYS(NUMBER, "pid", struct gpu_holder, pid),
	F_OR_NULL(BYTES, "bytes", struct gpu_holder, bytes, USAGE_UNKNOWN),
	F_BY("kind", struct gpu_holder, kind, kinds_json, kinds_take),
	F_BY("state", struct gpu_holder, state, state_json, state_take),
	F_ALWAYS(BOOL, "own_user", struct gpu_holder, own_user),
	F_OR_NULL(CHARS, "command", struct gpu_holder, command),
	F_IF_KNOWN(NUMBER, "mig_instance", struct gpu_holder, instance, UINT32_MAX),
	F_END,
};
static const struct fields holder_fields = {holder_field, sizeof(struct gpu_holder), NULL};

static const struct field gpu_field[] = {
	F_ALWAYS(NUMBER, "index", struct gpu_state, card.index),
	F_OR_NULL(CHARS, "name", struct gpu_state, card.name),
	F_OR_NULL(CHARS, "uuid", struct gpu_state, card.uuid),
	F_OR_NULL(CHARS, "pci", struct gpu_state, card.pci),
	F_ALWAYS(BOOL, "mig", struct gpu_state, card.mig),
	F_OR_NULL(BYTES, "total", struct gpu_state, card.total, USAGE_UNKNOWN),
	F_OR_NULL(BYTES, "reserved", struct gpu_state, card.reserved, USAGE_UNKNOWN),
	F_OR_NULL(BYTES, "used", struct gpu_state, card.used, USAGE_UNKNOWN),
	F_OR_NULL(BYTES, "free", struct gpu_state, card.free, USAGE_UNKNOWN),
	F_ALWAYS(BOOL, "processes_known", struct gpu_state, holders_known),
	F_LIST_OF("processes", struct gpu_state, holder, n, holder_fields),
	F_MADE("unattributed", unattributed_json),
	F_END,
};
static const struct fields gpu_fields = {gpu_field, sizeof(struct gpu_state), NULL};

static const struct field usage_field[] = {
	F_OR_NULL(CHARS, "driver", struct gpu_usage, driver),
	F_ALWAYS(NUMBER, "mono_ns", struct gpu_usage, mono_ns),
	F_ALWAYS(NUMBER, "real_ns", struct gpu_usage, real_ns),
	F_BY("trouble", struct gpu_usage, trouble, trouble_json, trouble_take),
	F_OR_NULL(CHARS, "why", struct gpu_usage, why),
	F_LIST_OF("gpus", struct gpu_usage, gpu, n, gpu_fields),
	F_END,
};
static const struct fields usage_fields = {usage_field, sizeof(struct gpu_usage), NULL};

json_t *usage_to_json(const struct gpu_usage *u)
{
	json_t *o = JSON_OF(J_INT("schema", 1));

	fields_add(&usage_fields, u, o);
	return o;
}

static void read_gpu(struct gpu_usage *u, const json_t *o)
{
	struct gpu_holder h;
	struct gpu_state one, *g;
	const json_t *v;
	size_t i;

	fields_init(&gpu_fields, &one);
	fields_take(&gpu_fields, o, &one);
	g = usage_add_gpu(u, &one.card);
	g->holders_known = one.holders_known;
	json_array_foreach(json_object_get(o, "processes"), i, v) {
		if (i == HOLDERS_MAX)
			break;
		fields_init(&holder_fields, &h);
		fields_take(&holder_fields, v, &h);
		usage_add_holder(g, &h);
	}
}

struct gpu_usage *usage_from_json(const json_t *o)
{
	struct gpu_usage *u;
	const json_t *g;
	size_t i;

	if (!json_is_array(json_object_get(o, "gpus")))
		return NULL;
	u = usage_new();
	fields_take(&usage_fields, o, u);
	json_array_foreach(json_object_get(o, "gpus"), i, g)
		if (i < GPUS_MAX)
			read_gpu(u, g);
	usage_sort(u);
	return u;
}
