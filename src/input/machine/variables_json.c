/* SPDX-License-Identifier: Apache-2.0
 * Environment variables as JSON and back.
 */
#include <string.h>

#include "input/machine/variables.h"
#include "base/banned.h"

json_t *variables_to_json(const struct variables *v)
{
	json_t *o = json_object();

	for (size_t i = 0; i < v->n_set; i++)
		json_object_set_new(o, v->set[i].name, json_string(v->set[i].value));
	return o;
}

const char *const *variables_from_json(struct pool *pool, const json_t *o)
{
	const char **list, *name;
	const json_t *value;
	size_t n = 0;

	if (!json_is_object(o))
		return NULL;
	list = pool_alloc(pool, (json_object_size(o) + 1) * sizeof(*list));
	json_object_foreach((json_t *)o, name, value)
		if (json_is_string(value) && !strchr(name, '='))
			list[n++] = pool_printf(pool, "%s=%s", name, json_string_value(value));
	return list;
}
