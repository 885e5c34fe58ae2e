/* SPDX-License-Identifier: Apache-2.0
 * What a model allocated and kept for itself: a cache that a layer fills when it is first needed, experts that are made on demand. The
 * model went on after it and allocated more; of a result that its caller keeps, it is the last thing that the model did.
 */
#include "find/memory/leftovers_parts.h"

#include <stdlib.h>

#include "base/mem.h"

/* A block that a call of a model allocated; `caller`: which call of the turn. */
struct inside { struct path path; uint64_t caller, ticks; };

static int by_call(const void *a, const void *b)
{
	const struct inside *x = a, *y = b;
	int c = path_order(&x->path, &y->path);

	return c ? c : x->caller < y->caller ? -1 : x->caller > y->caller;
}

/* The line from which the outermost module was called, and where its function begins; 0: none was. Files are left out: the same text may
 * be stored twice. */
static uint64_t caller_of(const struct search *s, uint32_t stack)
{
	static const char *const modules[] = {"torch/nn/modules/module.py", NULL};
	const struct cw_stack *x = stack ? trace_stack(s->trace, stack) : NULL;
	uint32_t call = x ? stack_outermost_of(s->trace, x, modules) : 0;

	return x && call + 1 < x->n ? (uint64_t)x->frame[call + 1].first_line << 32 | x->frame[call + 1].line : 0;
}

static uint64_t inside_of(const struct search *s, const struct entry *e)
{
	return caller_of(s, s->m->torch.list[e->block].stack);
}

/* The last block of each call, sorted; the list is the caller's. */
static struct inside *last_of_calls(const struct search *s, const struct entry *e, size_t n, size_t *calls)
{
	struct inside *list = xcalloc(n + s->n_went + 1, sizeof(*list));
	size_t all = 0;

	for (size_t i = 0; i < n; i++)
		list[all++] = (struct inside){e[i].path, inside_of(s, &e[i]), e[i].ticks};
	for (size_t i = 0; i < s->n_went; i++)
		list[all++] = (struct inside){s->went[i].path, caller_of(s, s->freed[s->went[i].block]->stack),
					      s->went[i].ticks};
	xsort(list, all, sizeof(*list), by_call);
	*calls = 0;
	for (size_t i = 0; i < all; i++) {
		if (!list[i].caller)
			continue;
		if (*calls && by_call(&list[*calls - 1], &list[i]) == 0)
			list[*calls - 1].ticks =
				list[i].ticks > list[*calls - 1].ticks ? list[i].ticks : list[*calls - 1].ticks;
		else
			list[(*calls)++] = list[i];
	}
	return list;
}

bool *kept_by_models(const struct search *s, const struct entry *e, size_t n)
{
	bool *kept = xcalloc(n + 1, sizeof(*kept));
	size_t calls;
	struct inside *list = last_of_calls(s, e, n, &calls);

	for (size_t i = 0; i < n; i++) {
		struct inside x = {e[i].path, inside_of(s, &e[i]), e[i].ticks};
		const struct inside *call = x.caller ? bsearch(&x, list, calls, sizeof(*list), by_call) : NULL;

		kept[i] = call && call->ticks > x.ticks;
	}
	free(list);
	return kept;
}
