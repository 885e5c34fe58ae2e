/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a JSON string.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cmd/json_text.h"
#include "base/banned.h"

json_t *json_text(const char *s)
{
	json_t *o;
	char *copy;

	if (!s)
		return json_null();
	copy = xstrdup(s);
	str_make_utf8(copy);
	o = json_string(copy);
	free(copy);
	return o ? o : json_null();
}
