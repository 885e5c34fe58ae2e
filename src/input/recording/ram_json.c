/* SPDX-License-Identifier: Apache-2.0
 * The host's memory as JSON and back (see ram_json.h). What is not known is null, what has no limit is "unlimited".
 */
#include "input/recording/ram_json.h"

#include <string.h>

#include "base/banned.h"

#define RAM_FIELDS(X)                        \
	X(total, "total")                    \
	X(available, "available")            \
	X(lock_limit, "lock_limit")          \
	X(group_limit, "cgroup_limit")       \
	X(group_used, "cgroup_used")

static json_t *limit_json(uint64_t v)
{
	if (v == RAM_UNKNOWN)
		return json_null();
	return v == RAM_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)v);
}

json_t *ram_to_json(const struct ram_state *r)
{
	json_t *o = json_pack("{s:i, s:I, s:b}", "schema", 1, "mono_ns", (json_int_t)r->mono_ns, "wsl", (int)r->wsl);

#define X(field, key) json_object_set_new(o, key, limit_json(r->field));
	RAM_FIELDS(X)
#undef X
	return o;
}

static uint64_t limit_of(const json_t *v)
{
	const char *word = json_string_value(v);

	if (word && strcmp(word, "unlimited") == 0)
		return RAM_UNLIMITED;
	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) : RAM_UNKNOWN;
}

bool ram_from_json(struct ram_state *r, const json_t *o)
{
	uint64_t mono = limit_of(json_object_get(o, "mono_ns"));

	ram_unknown(r);
	r->wsl = json_is_true(json_object_get(o, "wsl"));
	r->mono_ns = mono < RAM_UNLIMITED ? mono : 0;
#define X(field, key) r->field = limit_of(json_object_get(o, key));
	RAM_FIELDS(X)
#undef X
	return json_is_object(o) && json_is_integer(json_object_get(o, "schema"));
}
