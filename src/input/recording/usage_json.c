/* SPDX-License-Identifier: Apache-2.0
 * Who held the GPUs, as JSON and back (see usage_json.h). What is not known is null.
 */
#include "input/recording/usage_json.h"

#include <string.h>

#include "base/str.h"
#include "base/json_text.h"
#include "base/banned.h"

#define GPUS_MAX	256
#define HOLDERS_MAX	65536

static const char *const kinds[] = {"compute", "graphics", "mps"};	/* bit by bit */
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* --- there ------------------------------------------------------------------------------------ */

static json_t *text_or_null(const char *s)
{
	return json_text(s[0] ? s : NULL);
}

static json_t *kinds_json(uint32_t kind)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < N_KINDS; i++)
		if (kind & 1u << i)
			json_array_append_new(list, json_string(kinds[i]));
	return list;
}

static json_t *holder_json(const struct gpu_holder *h)
{
	json_t *o = json_pack("{s:I, s:o, s:o, s:s, s:b, s:o}", "pid", (json_int_t)h->pid, "bytes", json_bytes(h->bytes),
			      "kind", kinds_json(h->kind), "state", usage_state_name(h->state), "own_user",
			      (int)h->own_user, "command", text_or_null(h->command));

	if (h->instance != UINT32_MAX)
		json_object_set_new(o, "mig_instance", json_integer(h->instance));
	return o;
}

static json_t *gpu_json(const struct gpu_state *g)
{
	const struct gpu_card *c = &g->card;
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < g->n; i++)
		json_array_append_new(list, holder_json(&g->holder[i]));
	return json_pack("{s:i, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "index", (int)c->index, "name",
			 text_or_null(c->name), "uuid", text_or_null(c->uuid), "pci", text_or_null(c->pci), "mig",
			 (int)c->mig, "total", json_bytes(c->total), "reserved", json_bytes(c->reserved), "used",
			 json_bytes(c->used), "free", json_bytes(c->free), "processes_known", (int)g->holders_known,
			 "processes", list, "unattributed", json_bytes(usage_unattributed(g)));
}

json_t *usage_to_json(const struct gpu_usage *u)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < u->n; i++)
		json_array_append_new(list, gpu_json(&u->gpu[i]));
	return json_pack("{s:i, s:o, s:I, s:I, s:s, s:o, s:o}", "schema", 1, "driver", text_or_null(u->driver), "mono_ns",
			 (json_int_t)u->mono_ns, "real_ns", (json_int_t)u->real_ns, "trouble", usage_trouble_name(u->trouble),
			 "why", text_or_null(u->why), "gpus", list);
}

/* --- and back --------------------------------------------------------------------------------- */

static uint64_t bytes_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) : USAGE_UNKNOWN;
}

static uint32_t number_of(const json_t *o, const char *key, uint32_t otherwise)
{
	uint64_t v = bytes_of(o, key);

	return v <= UINT32_MAX ? (uint32_t)v : otherwise;
}

static void text_of(const json_t *o, const char *key, char *to, size_t size)
{
	const char *s = json_string_value(json_object_get(o, key));

	str_copy(to, size, s ? s : "");
}

static uint32_t kind_of(const json_t *list)
{
	uint32_t kind = 0;
	const json_t *v;
	size_t i, k;

	json_array_foreach(list, i, v)
		for (k = 0; k < N_KINDS; k++)
			if (json_is_string(v) && strcmp(json_string_value(v), kinds[k]) == 0)
				kind |= 1u << k;
	return kind;
}

static enum holder_state state_of(const json_t *v)
{
	enum holder_state s;

	for (s = HOLDER_UNKNOWN; s <= HOLDER_OUTSIDE; s++)
		if (json_is_string(v) && strcmp(json_string_value(v), usage_state_name(s)) == 0)
			return s;
	return HOLDER_UNKNOWN;
}

/* A word that we do not know is trouble that we do not know. */
static enum usage_trouble trouble_of(const json_t *v)
{
	enum usage_trouble t;

	for (t = USAGE_COMPLETE; t < USAGE_DIED; t++)
		if (json_is_string(v) && strcmp(json_string_value(v), usage_trouble_name(t)) == 0)
			break;
	return t;
}

static void read_holder(struct gpu_state *g, const json_t *o)
{
	struct gpu_holder h = {.pid = number_of(o, "pid", 0), .instance = number_of(o, "mig_instance", UINT32_MAX),
			       .bytes = bytes_of(o, "bytes")};

	h.kind = kind_of(json_object_get(o, "kind"));
	h.state = state_of(json_object_get(o, "state"));
	h.own_user = json_is_true(json_object_get(o, "own_user"));
	text_of(o, "command", h.command, sizeof(h.command));
	usage_add_holder(g, &h);
}

static void read_gpu(struct gpu_usage *u, const json_t *o)
{
	struct gpu_card c = {.index = number_of(o, "index", 0), .mig = json_is_true(json_object_get(o, "mig")),
			     .total = bytes_of(o, "total"), .reserved = bytes_of(o, "reserved"),
			     .used = bytes_of(o, "used"), .free = bytes_of(o, "free")};
	struct gpu_state *g;
	const json_t *h;
	size_t i;

	text_of(o, "name", c.name, sizeof(c.name));
	text_of(o, "uuid", c.uuid, sizeof(c.uuid));
	text_of(o, "pci", c.pci, sizeof(c.pci));
	g = usage_add_gpu(u, &c);
	g->holders_known = json_is_true(json_object_get(o, "processes_known"));
	json_array_foreach(json_object_get(o, "processes"), i, h)
		if (i < HOLDERS_MAX)
			read_holder(g, h);
}

struct gpu_usage *usage_from_json(const json_t *o)
{
	struct gpu_usage *u;
	const json_t *g;
	uint64_t v;
	size_t i;

	if (!json_is_array(json_object_get(o, "gpus")))
		return NULL;
	u = usage_new();
	text_of(o, "driver", u->driver, sizeof(u->driver));
	text_of(o, "why", u->why, sizeof(u->why));
	u->trouble = trouble_of(json_object_get(o, "trouble"));
	v = bytes_of(o, "mono_ns");
	u->mono_ns = v == USAGE_UNKNOWN ? 0 : v;
	v = bytes_of(o, "real_ns");
	u->real_ns = v == USAGE_UNKNOWN ? 0 : v;
	json_array_foreach(json_object_get(o, "gpus"), i, g)
		if (i < GPUS_MAX)
			read_gpu(u, g);
	usage_sort(u);
	return u;
}
