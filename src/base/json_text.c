/* SPDX-License-Identifier: Apache-2.0
 * Words and numbers as JSON.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/json_text.h"
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

json_t *json_bytes(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_null();
}
