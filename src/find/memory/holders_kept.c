/* SPDX-License-Identifier: Apache-2.0
 * Between a recording and the search for holders: what it asks, what it answers (see holders.h).
 */
#include "find/memory/holders.h"

#include "base/str.h"
#include "cuwhy/format.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"

void holders_ask_of(struct holders_ask *to, struct trace *t)
{
	to->torch_path = trace_header(t)->torch_path;
	to->n_blocks = trace_blocks(t, &to->block);
	to->n_sites = trace_sites(t, &to->site);
}

static void keep_holder(struct cw_holder *to, const struct holder *from)
{
	*to = (struct cw_holder){.bytes = from->bytes, .graph = from->graph, .gradients = from->gradients, .used = from->used,
				 .length = from->length, .tensors = from->tensors, .blocks = from->blocks,
				 .stack = from->stack, .line = from->line};
	str_copy(to->kind, sizeof(to->kind), from->kind);
	str_copy(to->path, sizeof(to->path), from->path);
	str_copy(to->function, sizeof(to->function), str_given(from->function));
	str_copy(to->file, sizeof(to->file), str_given(from->file));
}

void holders_keep(struct cw_holders *to, const struct holders *from)
{
	to->live_bytes = from->live_bytes;
	to->live_blocks = from->live_blocks;
	to->bytes = from->bytes;
	to->blocks = from->blocks;
	to->objects = from->objects;
	to->whole = from->whole;
	str_copy(to->why, sizeof(to->why), str_given(from->why));
	to->n = 0;
	for (size_t i = 0; i < from->n && i < CW_HOLDERS; i++)
		keep_holder(&to->list[to->n++], &from->list[i]);
	for (size_t i = 0; i < CW_UNHELD; i++) {
		const struct unheld *u = &from->unheld[i];

		to->unheld[i] = (struct cw_unheld){.bytes = u->bytes, .blocks = u->blocks, .stack = u->stack, .flags = u->flags};
	}
}
