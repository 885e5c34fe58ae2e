/* SPDX-License-Identifier: Apache-2.0
 * What a core dump says about the tensor that was accessed: "element 1,000 of 1,000", "sizes (40, 50), strides (60, 1), position (33, 20)".
 */
#include <inttypes.h>
#include <string.h>

#include "case/signature.h"
#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"

#define WIDTH_MAX 8	/* wider accesses are several elements at once */
#define FAR ((uint64_t)1 << 48)

/* As Python writes it: (5,) has one number. */
static const char *tuple_text(struct casefile *c, const uint64_t *number, unsigned n)
{
	const char *text = "";

	for (unsigned i = 0; i < n; i++)
		text = pool_printf(c->pool, "%s%s%" PRIu64, text, i ? ", " : "", number[i]);
	return pool_printf(c->pool, n == 1 ? "(%s,)" : "(%s)", text);
}

void dump_observe_view(struct casefile *c, const struct culprit *k, size_t lane)
{
	const struct view *v = &k->view;
	uint64_t at[VIEW_DIMS];
	struct view_lane l;

	if (!v->n || !culprit_view_lane(k, lane, &l))
		return;
	fact_set_text(c, FACT_fault_view_sizes, tuple_text(c, v->size, v->n));
	fact_set_text(c, FACT_fault_view_strides, tuple_text(c, v->stride, v->n));
	fact_set_text(c, FACT_fault_view_unit, !v->typed ? "bytes" : v->bytes == 1 ? "elements of 1 byte"
				      : pool_printf(c->pool, "elements of %u bytes", v->bytes));
	fact_set_number(c, FACT_fault_view_last, (double)view_last(v));
	if (view_position(v, &l, at)) {
		bool inside = true;

		fact_set_text(c, FACT_fault_view_at, tuple_text(c, at, v->n));
		for (unsigned i = 0; i < v->n; i++) {
			if (at[i] < v->size[i])
				continue;
			inside = false;
			fact_set_number(c, FACT_fault_view_dim, i);
			fact_set_number(c, FACT_fault_view_index, (double)at[i]);
			fact_set_number(c, FACT_fault_view_size, (double)v->size[i]);
		}
		fact_set_flag(c, FACT_fault_view_inside, inside);
	}
}

/* How large the elements are that the pointer leads to. */
static unsigned element_bytes(const struct culprit *k, unsigned pointer, unsigned known, bool *typed)
{
	struct signature_param p;
	unsigned n = known;

	if (k->view.n && k->view.typed && k->view.at == pointer)
		n = k->view.bytes;
	else if (k->kernel_text && signature_pointer_at(k->kernel_text, pointer, &p))
		n = p.points_to;
	*typed = n != 0;
	return n ? n : k->insn.width <= WIDTH_MAX ? k->insn.width : 0;
}

void dump_observe_element(struct casefile *c, const struct culprit *k, size_t lane, unsigned pointer, uint64_t end,
			  unsigned bytes)
{
	uint64_t from, away;
	struct view_lane l;
	bool typed, before;
	unsigned n;

	if (!culprit_view_lane(k, lane, &l) || k->params.len < sizeof(from) || pointer > k->params.len - sizeof(from))
		return;
	memcpy(&from, k->params.data + pointer, sizeof(from));
	if (k->view.n && k->view.at == pointer && from <= end) {
		uint64_t room = (end - from) / k->view.bytes;

		fact_set_number(c, FACT_fault_view_room, (double)room);
		fact_set_flag(c, FACT_fault_view_beyond, view_last(&k->view) >= room);
	}
	n = element_bytes(k, pointer, bytes, &typed);
	before = l.address < from;
	away = before ? from - l.address : l.address - from;
	if (!n || from > end || away >= FAR || away % n)
		return;
	fact_set_number(c, FACT_fault_element, before ? -(double)(away / n) : (double)(away / n));
	fact_set_number(c, FACT_fault_elements, (double)((end - from) / n));
	fact_set_number(c, FACT_fault_element_last, (double)((end - from) / n) - 1);
	fact_set_number(c, FACT_fault_element_bytes, n);
	fact_set_flag(c, FACT_fault_element_typed, typed);
}
