/* SPDX-License-Identifier: Apache-2.0
 * What a log that was read has to say (see log.h).
 */
#include <string.h>

#include "base/str.h"
#include "input/text/log_priv.h"
#include "base/banned.h"

/* An assertion without any error line is one all the same. */
void log_finish(struct text_log *l)
{
	for (size_t i = 0; i < l->n_events; i++)
		while (str_ends(l->event[i].message, "\n"))
			l->event[i].message = pool_copy(&l->pool, l->event[i].message, strlen(l->event[i].message) - 1);
}

size_t log_events(const struct text_log *l, const struct text_event **list)
{
	*list = l->event;
	return l->n_events;
}

size_t log_asserts(const struct text_log *l, const struct text_assert **list)
{
	*list = l->assertion;
	return l->n_asserts;
}

size_t log_xids(const struct text_log *l, const char *const **lines)
{
	*lines = l->xid;
	return l->n_xids;
}

const struct text_env *log_env(const struct text_log *l)
{
	return &l->env;
}

uint64_t log_lines(const struct text_log *l)
{
	return l->lines;
}

uint64_t log_bytes(const struct text_log *l)
{
	return l->bytes;
}

bool log_binary(const struct text_log *l)
{
	return l->strange * 16 > l->read;
}

bool log_progress(const struct text_log *l)
{
	return l->progress != 0;
}

bool log_progress_before(const struct text_log *l, uint64_t line)
{
	return l->progress && l->progress < line;
}

bool log_progress_after(const struct text_log *l, uint64_t line)
{
	return l->progress_last > line;
}

size_t log_ranks(const struct text_log *l)
{
	size_t n = 0;

	for (size_t i = 0; i < RANKS_MAX; i++)
		n += (l->rank[i / 8] >> (i % 8)) & 1;
	return n;
}

const char *log_tail(struct text_log *l)
{
	char *text = pool_strdup(&l->pool, "");
	size_t first = l->ring_n > RING_LINES ? l->ring_n - RING_LINES : 0;

	for (size_t i = first; i < l->ring_n; i++)
		text = pool_printf(&l->pool, "%s%s\n", text, l->ring[i % RING_LINES]);
	return text;
}
