/* SPDX-License-Identifier: Apache-2.0
 * The host's memory as JSON and back (see ram_json.h). What is not known is null, what has no limit is "unlimited".
 */
#include "read/recording/ram_json.h"

#include <string.h>

#include "base/json.h"

static json_t *limit_json(const void *member)
{
	uint64_t v = *(const uint64_t *)member;

	if (v == RAM_UNKNOWN)
		return NULL;
	return v == RAM_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)v);
}

static bool limit_take(void *member, const json_t *v)
{
	const char *word = json_string_value(v);
	uint64_t *limit = member;

	if (word && strcmp(word, "unlimited") == 0)
		*limit = RAM_UNLIMITED;
	else if (json_is_integer(v) && json_integer_value(v) >= 0)
		*limit = (uint64_t)json_integer_value(v);
	return true;
}

static const struct field ram_field[] = {
	F_ALWAYS(NUMBER, "mono_ns", struct ram_state, mono_ns),
	F_ALWAYS(BOOL, "wsl", struct ram_state, wsl),
	F_BY("total", struct ram_state, total, limit_json, limit_take),
	F_BY("available", struct ram_state, available, limit_json, limit_take),
	F_BY("lock_limit", struct ram_state, lock_limit, limit_json, limit_take),
	F_BY("cgroup_limit", struct ram_state, group_limit, limit_json, limit_take),
	F_BY("cgroup_used", struct ram_state, group_used, limit_json, limit_take),
	F_END,
};
static const struct fields ram_fields = {ram_field, sizeof(struct ram_state), NULL};

json_t *ram_to_json(const struct ram_state *r)
{
	json_t *o = JSON_OF(J_INT("schema", 1));

	fields_add(&ram_fields, r, o);
	return o;
}

bool ram_from_json(struct ram_state *r, const json_t *o)
{
	ram_unknown(r);
	fields_take(&ram_fields, o, r);
	return json_is_object(o) && json_is_integer(json_object_get(o, "schema"));
}
