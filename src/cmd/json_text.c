/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a JSON string.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/json_text.h"
#include "base/banned.h"

/* Length of the UTF-8 sequence at p, 0 when it is none (or one that jansson would refuse). */
static size_t sequence(const unsigned char *p)
{
	static const unsigned int least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n, i;
	unsigned int c;

	if (*p < 0x80)
		return 1;
	n = *p >= 0xf0 && *p < 0xf8 ? 4 : *p >= 0xe0 && *p < 0xf0 ? 3 : *p >= 0xc0 ? 2 : 0;
	if (n == 0 || *p >= 0xf8)
		return 0;
	c = *p & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	return c >= least[n] && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000) ? n : 0;
}

json_t *json_text(const char *s)
{
	json_t *o;
	char *copy;
	size_t i, n;

	if (!s)
		return json_null();
	copy = xstrdup(s);
	for (i = 0; copy[i]; i += n) {
		n = sequence((const unsigned char *)copy + i);
		if (n == 0) {
			copy[i] = '?';
			n = 1;
		}
	}
	o = json_string(copy);
	free(copy);
	return o ? o : json_null();
}
