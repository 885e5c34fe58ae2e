/* SPDX-License-Identifier: Apache-2.0
 * Joins the source with what the recording says about it (see uses.h).
 */
#include "find/code/uses.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "case/source.h"
#include "find/code/edits.h"
#include "find/failure/place.h"
#include "read/recording/trace_memory.h"

#define STATEMENTS_MAX 5000	/* following names takes the square of that */
#define LEVELS_MAX 8

/* The user's frames of a stack, innermost first, in files that were read. */
struct level {
	const char *file, *function;
	uint32_t line, first_line;
	struct code *code;
	int statement;
	bool library;			/* it called the frame before by way of a library, which may do anything with what that returns */
};
struct levels { struct level list[LEVELS_MAX]; size_t n; };

static struct code *read_code(struct trace *t, const char *file, struct pool *pool)
{
	struct code *c = pool_alloc(pool, sizeof(*c));
	struct buf text;
	bool good = source_text(trace_sources(t), file, &text) && code_read(c, file, text.data, text.len, pool);

	buf_release(&text);
	return good && c->n <= STATEMENTS_MAX ? c : NULL;
}

static void find_levels(struct levels *l, struct trace *t, uint32_t stack, const char *file, uint32_t line,
			struct pool *pool)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	bool library = false;

	l->n = 0;
	for (uint32_t i = 0; s && i < s->n && l->n < LEVELS_MAX; i++) {
		struct level *x = &l->list[l->n];

		library |= stack_owner(t, s, i) == OWNER_LIBRARY;
		if (stack_owner(t, s, i) != OWNER_USER)
			continue;
		*x = (struct level){trace_string(t, s->frame[i].file),
				    function_base(trace_string(t, s->frame[i].function)),
				    s->frame[i].line,
				    s->frame[i].first_line, NULL, -1, library};
		library = false;
		if (!l->n && file && (x->line != line || strcmp(x->file, file)))
			continue;
		for (size_t k = 0; k < l->n && !x->code; k++)
			x->code = strcmp(l->list[k].file, x->file) ? NULL : l->list[k].code;
		x->code = x->code ? x->code : read_code(t, x->file, pool);
		x->statement = x->code ? code_at(x->code, x->line) : -1;
		l->n++;
	}
}

static bool has_frame(const struct trace *t, const struct cw_stack *s, const struct level *x, bool line)
{
	for (uint32_t i = 0; i < s->n; i++)
		if ((line ? s->frame[i].line == x->line : s->frame[i].first_line == x->first_line) &&
		    !strcmp(trace_string(t, s->frame[i].file), x->file) &&
		    (line || !strcmp(function_base(trace_string(t, s->frame[i].function)), x->function)))
			return true;
	return false;
}

/* Has backward run a node that was created in this function, or (`line`) at this line? */
static bool was_run(struct trace *t, const struct level *x, bool line)
{
	const struct trace_node *node;
	size_t n = trace_nodes(t, &node);
	uint32_t before = 0;

	for (size_t i = 0; i < n; i++) {
		const struct cw_stack *s = node[i].has_run && node[i].stack && node[i].stack != before
						   ? trace_stack(t, node[i].stack)
						   : NULL;

		if (s && has_frame(t, s, x, line))
			return true;
		before = s ? node[i].stack : before;
	}
	return false;
}

bool line_was_run(struct trace *t, const char *file, uint32_t line)
{
	return was_run(t, &(struct level){.file = file, .line = line}, true);
}

/* --- evidence for edits --- */

static int by_stack(const void *a, const void *b)
{
	const struct seen_frame *x = a, *y = b;

	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static void find_pending(struct code_facts *f, struct trace *t, const struct code *c, struct pool *pool)
{
	const struct trace_node *node;
	size_t n = trace_nodes(t, &node), cap = 0, used = 0;
	struct seen_frame *list = NULL;
	uint32_t before = 0;

	for (size_t i = 0; i < n; i++) {
		const struct cw_stack *s = node[i].stack ? trace_stack(t, node[i].stack) : NULL;

		if (node[i].has_run || (s && node[i].stack == before))
			continue;
		before = node[i].stack;
		list = xgrow(list, used, &cap, sizeof(*list));
		list[used++] = (struct seen_frame){node[i].stack, 0};
		for (uint32_t k = 0; s && k < s->n; k++)
			if (!strcmp(trace_string(t, s->frame[k].file), c->file)) {
				list = xgrow(list, used, &cap, sizeof(*list));
				list[used++] = (struct seen_frame){node[i].stack, s->frame[k].line};
			}
	}
	if (used)
		xsort(list, used, sizeof(*list), by_stack);
	f->pending = pool_alloc(pool, (used + 1) * sizeof(*list));
	if (used)
		memcpy((void *)(uintptr_t)f->pending, list, used * sizeof(*list));
	f->n_pending = used;
	f->all = n == trace_header(t)->n_nodes;
	free(list);
}

static void find_tensors(struct code_facts *f, struct trace *t, const struct code *c, struct pool *pool)
{
	size_t len = 0;
	const struct cw_tensor *list = trace_chunk(t, CW_CHUNK_TENSORS, &len);
	struct seen_tensor *seen = pool_alloc(pool, (len / sizeof(*list) + 1) * sizeof(*seen));

	for (size_t i = 0; list && i < len / sizeof(*list); i++)
		if (list[i].seq && !strcmp(trace_string(t, list[i].frame.file), c->file))
			seen[f->n_tensors++] = (struct seen_tensor){list[i].frame.line,
								    pool_strdup(pool, trace_string(t, list[i].name))};
	f->tensor = seen;
}

/* --- what holds it --- */

struct held { const struct code *code; struct holder holder; struct flow value; enum use use; int backward; };

/* Another file of the same program may read an attribute, too. */
static bool is_read_elsewhere(const struct levels *l, const struct held *h)
{
	for (size_t i = 0; i < l->n && h->holder.key[0] == '.'; i++)
		for (int k = 0; l->list[i].code && l->list[i].code != h->code && k < l->list[i].code->n; k++)
			if (strstr(l->list[i].code->statement[k].text, h->holder.key))
				return true;
	return false;
}

static void judge(struct held *h, const struct levels *l, struct pool *pool)
{
	const struct statement *s = &h->code->statement[h->holder.statement];
	struct flow f;

	flow_of(&f, h->code, h->holder.key, pool);
	h->use = flow_use(&f);
	h->backward = f.backward;
	if (h->use == USE_KEPT &&
	    ((s->function >= 0 && flow_is_parameter(h->code, s->function, h->holder.name)) || is_read_elsewhere(l, h)))
		h->use = USE_UNKNOWN;
}

static bool is_forward(const char *function)
{
	return !strcmp(function, "forward") || !strcmp(function, "__call__");
}

/* From the innermost frame outward, as long as functions return what was made. */
static size_t find_held(struct held *list, const struct levels *l, struct pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct level *x = &l->list[i];
		struct flow f;
		int function;

		if (x->statement < 0)
			return 0;
		function = x->code->statement[x->statement].function;
		flow_from(&f, x->code, x->statement, pool);
		for (size_t k = 0; k < f.n_holders && n < HOLDERS_MAX; k++) {
			if (is_forward(x->function) && f.holder[k].key[0] != '.')
				continue;	/* x = x + block(x): it ends with the pass */
			list[n] = (struct held){.code = x->code, .holder = f.holder[k], .value = f, .backward = -1};
			judge(&list[n++], l, pool);
		}
		if (f.unknown)
			return 0;
		if (function < 0 || !flow_has(&f, flow_result(x->code, function, pool)))
			break;
	}
	return n;
}

static void find_edit(struct uses *u, struct trace *t, const struct held *list, size_t n, const struct held *first,
		      const char *shown, struct pool *pool)
{
	struct holder all[HOLDERS_MAX];
	struct code_facts facts = {0};

	find_pending(&facts, t, first->code, pool);
	find_tensors(&facts, t, first->code, pool);
	if (u->use == USE_BACKWARD) {
		if (n == 1)
			u->edit = edit_spread(first->code, &first->value, &first->holder, first->backward, shown,
					      &facts, pool);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (list[i].code != first->code)
			return;
		all[i] = list[i].holder;
	}
	u->edit = edit_detach(first->code, all, n, shown, &facts, pool);
}

static void find_use(struct uses *u, struct trace *t, const struct levels *l, struct pool *pool)
{
	struct held list[HOLDERS_MAX];
	size_t n = find_held(list, l, pool);
	const struct held *first = n ? &list[0] : NULL;
	const char *shown;

	for (size_t i = 0; i < n; i++)
		if (list[i].use == USE_UNKNOWN)
			return;
	for (size_t i = 0; i < n && first->use != USE_BACKWARD; i++)
		first = list[i].use == USE_BACKWARD ? &list[i] : first;
	if (!first)
		return;
	shown = file_shown(first->code->file, trace_header(t)->cwd);
	u->use = first->use;
	u->held = first->holder.name;
	u->keeper = pool_printf(pool, "%s:%u", shown, first->code->statement[first->holder.statement].line);
	find_edit(u, t, list, n, first, shown, pool);
}

/* --- functions that need no gradients --- */

static bool says_any(const struct code *c, int function)
{
	static const char *const words[] = {"backward(",   "autograd.grad(", ".step(",	    "requires_grad",
					    "enable_grad", "zero_grad(",     "checkpoint(", NULL};
	const struct statement *def = &c->statement[c->function[function].def];

	for (int i = c->function[function].def + 1; i < c->n && c->statement[i].indent > def->indent; i++)
		for (size_t k = 0; words[k]; k++)
			if (strstr(c->statement[i].text, words[k]))
				return true;
	return false;
}

/* Were most of the nodes that wait for backward created in this function? */
static bool made_most_that_waits(struct trace *t, const struct level *x)
{
	const struct trace_node *node;
	size_t n = trace_nodes(t, &node), here = 0, all = 0;
	uint32_t before = 0;
	bool same = false;

	for (size_t i = 0; i < n; i++) {
		const struct cw_stack *s =
			node[i].stack && node[i].stack != before ? trace_stack(t, node[i].stack) : NULL;

		if (node[i].has_run)
			continue;
		same = s ? has_frame(t, s, x, false) : node[i].stack && node[i].stack == before && same;
		before = node[i].stack;
		here += same;
		all++;
	}
	return here > all / 2;
}

static bool needs_no_grad(struct trace *t, const struct level *x, int function, struct pool *pool)
{
	struct flow f;

	if (is_forward(x->function) || str_ends(x->function, "_step") || says_any(x->code, function) ||
	    was_run(t, x, false) || !made_most_that_waits(t, x))
		return false;
	flow_of_function(&f, x->code, function, pool);
	return flow_use(&f) == USE_KEPT;
}

static void find_no_grad(struct uses *u, struct trace *t, const struct levels *l, struct pool *pool)
{
	for (size_t i = 0; i < l->n && !u->no_grad; i++) {
		const struct level *x = &l->list[i];
		int function = x->statement < 0 ? -1 : x->code->statement[x->statement].function;

		if (function >= 0 && needs_no_grad(t, x, function, pool))
			u->no_grad = edit_no_grad(x->code, function, file_shown(x->file, trace_header(t)->cwd), pool);
	}
}

/* Where the value of a line goes that is called from none of the functions it returns from: up to the first that keeps it. */
static void find_pass(struct uses *u, const struct levels *l, struct pool *pool)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct level *x = &l->list[i];
		int function = x->statement < 0 ? -1 : x->code->statement[x->statement].function;
		struct flow f;

		if (x->statement < 0)
			return;
		if (i + 1 < l->n)
			flow_in_function(&f, x->code, x->statement, pool);
		else
			flow_of_statement(&f, x->code, x->statement, pool);
		if (f.backward >= 0) {
			u->pass = flow_use(&f);
			return;
		}
		if (function >= 0 && flow_has(&f, flow_result(x->code, function, pool)) && i + 1 < l->n) {
			if (x[1].library)
				return;
			continue;	/* its caller knows */
		}
		u->pass = flow_use(&f);
		return;
	}
}

/* --- kept with the recording --- */

static const char *text_of(const json_t *o, const char *key, struct pool *pool)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? pool_strdup(pool, text) : NULL;
}

static bool from_note(struct uses *u, const json_t *o, struct pool *pool)
{
	json_int_t use = json_integer_value(json_object_get(o, "use")),
		   pass = json_integer_value(json_object_get(o, "pass"));

	if (!json_is_object(o) || use < USE_UNKNOWN || use > USE_BACKWARD || pass < USE_UNKNOWN || pass > USE_BACKWARD)
		return false;
	*u = (struct uses){.use = (enum use)use, .held = text_of(o, "held", pool), .keeper = text_of(o, "keeper", pool),
			   .edit = text_of(o, "edit", pool),
			   .no_grad = text_of(o, "no_grad", pool),
			   .pass = (enum use)pass,
			   .read = true};
	return true;
}

static json_t *to_note(const struct uses *u)
{
	json_t *o = json_pack("{s:i,s:i}", "use", (int)u->use, "pass", (int)u->pass);

	if (u->held)
		json_object_set_new(o, "held", json_string(u->held));
	if (u->keeper)
		json_object_set_new(o, "keeper", json_string(u->keeper));
	if (u->edit)
		json_object_set_new(o, "edit", json_string(u->edit));
	if (u->no_grad)
		json_object_set_new(o, "no_grad", json_string(u->no_grad));
	return o;
}

void uses_find(struct uses *u, struct trace *t, uint32_t stack, const char *file, uint32_t line, struct pool *pool)
{
	struct source_book *book = trace_sources(t);
	struct levels l;
	const char *key = "use";

	*u = (struct uses){.use = USE_UNKNOWN};
	find_levels(&l, t, stack, file, line, pool);
	for (size_t i = 0; i < l.n; i++)	/* another caller does something else with it */
		key = pool_printf(pool, "%s %u", key, l.list[i].line);
	if (!l.n || from_note(u, source_note(book, l.list[0].file, key), pool) || !l.list[0].code)
		return;
	u->read = true;
	find_use(u, t, &l, pool);
	find_no_grad(u, t, &l, pool);
	find_pass(u, &l, pool);
	source_keep_note(book, l.list[0].file, key, to_note(u));
}
