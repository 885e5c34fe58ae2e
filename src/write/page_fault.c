/* SPDX-License-Identifier: Apache-2.0
 * The fault in a page: the threads that faulted, and the memory around the address.
 */
#include <string.h>

#include "input/dump/culprit.h"
#include "input/recording/pieces.h"
#include "base/json_text.h"
#include "write/page_priv.h"
#include "judge/verdict.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

#define NEAR_DRIVER	3	/* allocations on each side */
#define NEAR_TORCH	4
#define LANES_SHOWN	1024

static const char *memory_text(uint16_t kind)
{
	switch (kind) {
#define X(number, name, text) case number: return text;
	CW_MEMORY(X)
#undef X
	default: return "not known";
	}
}

struct around {
	struct trace *t;
	struct page_words *lines;
	uint64_t address;
	json_t *list;
};

static int line_of(const struct around *a, uint32_t stack)
{
	struct place p = { 0 };

	return stack && place_of_stack(a->t, stack, &p) ? words_place(a->lines, &p, trace_header(a->t)->cwd) : -1;
}

static void add(struct around *a, const struct piece *p, const char *state)
{
	json_array_append_new(a->list, json_pack("{s:s,s:o,s:o,s:s,s:i,s:i,s:b,s:i,s:b}", "state", state, "address",
						 page_address(p->addr), "size", page_integer(p->size), "kind",
						 memory_text(p->kind), "made", line_of(a, p->stack), "freed",
						 line_of(a, p->free_stack), "after", p->freed_after, "device", p->device, "torch",
						 p->kind == CW_MEM_TORCH));
}

/* Those that hold the address, and `each` on both sides of it; address ranges without memory do not count. */
static void add_near(struct around *a, const struct pieces *p, size_t each)
{
	size_t above = 0;

	while (above < p->n && p->list[above].addr <= a->address)
		above++;
	for (size_t i = above > each + 1 ? above - each - 1 : 0; i < above + each && i < p->n; i++)
		if (p->list[i].kind != CW_MEM_RESERVED)
			add(a, &p->list[i], "live");
}

static void add_live(struct around *a, uint64_t when)
{
	struct pieces torch, driver;

	pieces_of_torch(&torch, a->t, when);
	pieces_of_driver(&driver, a->t);
	add_near(a, &driver, NEAR_DRIVER);
	add_near(a, &torch, NEAR_TORCH);
	pieces_free(&torch);
	pieces_free(&driver);
}

/* When the kernel was launched; else when the program noticed: until then memory could be given back. */
static uint64_t moment_of(struct trace *t, const struct verdict *v)
{
	const struct cw_launch *l = page_blamed(t, v);
	const struct cw_failure *const *f;
	size_t n = trace_failures(t, &f);

	if (l && !(l->flags & CW_LAUNCH_CAPTURED))	/* a captured one ran later */
		return l->ticks;
	for (size_t i = 0; i < n; i++)
		if (f[i]->mono_ns >= v->time_ns)
			return f[i]->ticks;
	return UINT64_MAX;
}

json_t *page_neighbours(struct trace *t, const struct verdict *v, struct page_words *lines)
{
	struct around a = { .t = t, .lines = lines, .address = v->c.fault_address };
	uint64_t when = moment_of(t, v);
	struct piece freed;

	if (!fact_known(&v->c, FACT_fault_address))
		return json_null();
	a.list = json_array();
	add_live(&a, when);
	if (piece_freed_by_torch(t, a.address, when, &freed))
		add(&a, &freed, "freed");
	if (piece_freed_by_driver(t, a.address, when, &freed))
		add(&a, &freed, "freed");
	return a.list;
}

json_t *page_lanes(const struct culprit *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_kept && i < LANES_SHOWN; i++) {
		const struct culprit_lane *l = &c->lanes[i];

		json_array_append_new(list, json_pack("[I,I,I,I,I,I,o]", (json_int_t)l->block[0], (json_int_t)l->block[1],
						      (json_int_t)l->block[2], (json_int_t)l->thread[0],
						      (json_int_t)l->thread[1], (json_int_t)l->thread[2],
						      l->address_known && !c->address_doubtful ? page_address(l->address) :
												 json_null()));
	}
	return json_pack("{s:o,s:I,s:I,s:I}", "list", list, "count", (json_int_t)c->n_lanes, "warps", (json_int_t)c->n_warps,
			 "blocks", (json_int_t)c->n_blocks);
}
