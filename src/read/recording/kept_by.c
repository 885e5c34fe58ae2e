/* SPDX-License-Identifier: Apache-2.0
 * The objects that kept tensors alive, from a recording (see kept_by.h).
 */
#include "read/recording/kept_by.h"

#include "base/str.h"
#include "read/recording/trace.h"

static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	str_make_utf8(text);
	str_make_line(text);
}

bool trace_holders(const struct trace *t, struct cw_holders *to)
{
	size_t len;
	const struct cw_holders *h = trace_chunk(t, CW_CHUNK_HOLDERS, &len);

	if (!h || len < sizeof(*h) || h->state != CW_HOLDERS_DONE)
		return false;
	*to = *h;
	if (to->n > CW_HOLDERS)
		to->n = CW_HOLDERS;
	clean(to->why, sizeof(to->why));
	for (uint32_t i = 0; i < to->n; i++) {
		clean(to->list[i].kind, sizeof(to->list[i].kind));
		clean(to->list[i].function, sizeof(to->list[i].function));
		clean(to->list[i].file, sizeof(to->list[i].file));
		clean(to->list[i].path, sizeof(to->list[i].path));
	}
	return true;
}
