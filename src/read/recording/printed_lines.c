/* SPDX-License-Identifier: Apache-2.0
 * Lines that were printed, from a recording (see printed_lines.h).
 */
#include "read/recording/printed_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/str.h"
#include "read/recording/trace.h"

static const struct cw_printed *table(const struct trace *t)
{
	size_t len;
	const struct cw_printed *p = trace_chunk(t, CW_CHUNK_PRINTED, &len);

	return p && len >= sizeof(*p) ? p : NULL;
}

bool trace_has_printed(const struct trace *t)
{
	const struct cw_printed *p = table(t);

	return p && p->redirected;
}

static char *clean(const struct cw_printed_line *l, struct pool *pool)
{
	char *text = pool_copy(pool, l->text, strnlen(l->text, sizeof(l->text)));

	str_make_utf8(text);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	return text;
}

static int in_order(const void *a, const void *b)
{
	const struct printed_line *x = a, *y = b;

	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

static size_t take(const struct cw_printed_line *from, size_t n, bool assertion, struct printed_line *to,
		   struct pool *pool)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		const struct cw_printed_line *l = &from[i];

		if (!l->count)
			continue;
		to[found] = (struct printed_line){.text = clean(l, pool), .count = l->count, .ticks = l->ticks,
						  .stream = l->stream, .assertion = assertion};
		memcpy(to[found].block, l->block, sizeof(l->block));
		memcpy(to[found++].thread, l->thread, sizeof(l->thread));
	}
	return found;
}

/* The end of what was printed, without an end of line. */
static size_t take_open(const struct cw_printed_line *open, struct printed_line *to, struct pool *pool)
{
	size_t found = 0;

	for (uint32_t i = 0; i < 2; i++)
		if (open[i].length)
			to[found++] = (struct printed_line){
				.text = clean(&open[i], pool), .count = 1, .ticks = UINT64_MAX, .stream = i + 1};
	return found;
}

size_t trace_printed(const struct trace *t, struct printed_line list[PRINTED_MAX], struct pool *pool)
{
	const struct cw_printed *p = table(t);
	size_t n = 0;

	if (!p)
		return 0;
	n += take(p->assertion, CW_PRINTED_LINES, true, list + n, pool);
	n += take(p->other, CW_PRINTED_LINES, false, list + n, pool);
	n += take_open(p->open, list + n, pool);
	xsort(list, n, sizeof(*list), in_order);
	return n;
}
