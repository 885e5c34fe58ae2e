/* SPDX-License-Identifier: Apache-2.0
 * A tensor that autograd had saved was changed in place: which line did that?
 *
 * The message says how often the tensor was changed since it was saved, and whether it was the result of the operation or an operand. It lies in
 * a block that the operation's kernel got on the forward line, and that was not freed before backward needed it. What wrote into such a block
 * afterwards is a change. Only if there is one such block, and it was written to exactly as often as the message says, is the line proven.
 */
#include "find/failure/observe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define BLOCKS_MAX 64
#define OPERANDS   3
#define WORDS "modified by an inplace operation"

struct block {
	uint64_t addr, size, made, freed;
};

struct saved {			/* a block that the forward line used */
	struct block block;
	uint64_t ticks;		/* of its last launch that did */
	unsigned writes;
	uint32_t stack;		/* of the first write */
};

struct search {
	struct trace *trace;
	struct pool *pool;
	struct block *block;	/* that were alive when backward failed, by address */
	size_t n_blocks;
	struct saved saved[BLOCKS_MAX];
	size_t n;
	bool more;
	char op[48];		/* of the gradient, in lower case: "relu" */
	bool result;		/* it was the operation's result; else an operand */
};

static int by_address(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void take_blocks(struct search *s, uint64_t at)
{
	const struct cw_allocation *const *live;
	const struct cw_freed *const *freed;
	size_t n_live = trace_blocks(s->trace, &live), n_freed = trace_freed(s->trace, &freed);

	s->block = xcalloc(n_live + n_freed + 1, sizeof(*s->block));
	for (size_t i = 0; i < n_live; i++)
		if (live[i]->ticks < at)
			s->block[s->n_blocks++] =
				(struct block){live[i]->addr, live[i]->size, live[i]->ticks, UINT64_MAX};
	for (size_t i = 0; i < n_freed; i++)
		if (freed[i]->kind == CW_MEM_TORCH && freed[i]->made_ticks < at && freed[i]->ticks > at)
			s->block[s->n_blocks++] =
				(struct block){freed[i]->addr, freed[i]->size, freed[i]->made_ticks, freed[i]->ticks};
	xsort(s->block, s->n_blocks, sizeof(*s->block), by_address);
}

static const struct block *block_at(const struct search *s, uint64_t addr)
{
	size_t from = 0, end = s->n_blocks;

	while (from < end) {
		size_t mid = from + (end - from) / 2;

		if (addr < s->block[mid].addr)
			end = mid;
		else if (addr - s->block[mid].addr >= s->block[mid].size)
			from = mid + 1;
		else
			return &s->block[mid];
	}
	return NULL;
}

#define POINTERS 2	/* which parameter of these kernels has the pointers: to the result, then to the operands */

/* PyTorch's kernels for operations on each element. Where the pointers are in others is not known. False: it is another one. */
static bool pointers_of(const struct search *s, const struct cw_launch *l, uint64_t *result, uint64_t operand[OPERANDS])
{
	const struct cw_layout *k = trace_layout(s->trace, trace_function(s->trace, l->func));
	const char *name = trace_function_name(s->trace, l->func);
	size_t at, n, end = l->n_param < CW_PARAM_BYTES ? l->n_param : CW_PARAM_BYTES;

	if (!strstr(name, "::vectorized_elementwise_kernel<") && !strstr(name, "::unrolled_elementwise_kernel<"))
		return false;
	if (!k || k->n <= POINTERS)
		return false;
	at = k->param[POINTERS].off;
	n = k->param[POINTERS].size / sizeof(*result);
	if (!n || n > 1 + OPERANDS || at + n * sizeof(*result) > end)
		return false;
	memset(operand, 0, OPERANDS * sizeof(*operand));
	memcpy(result, l->params + at, sizeof(*result));
	memcpy(operand, l->params + at + sizeof(*result), (n - 1) * sizeof(*result));
	return true;
}

static bool counts(const struct cw_launch *l, uint64_t until)
{
	return !l->result && !(l->flags & (CW_LAUNCH_CAPTURED | CW_LAUNCH_IN_BACKWARD)) && l->ticks < until;
}

static void save(struct search *s, const struct block *b, uint64_t ticks)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->saved[i].block.addr == b->addr) {
			s->saved[i].ticks = ticks;
			return;
		}
	if (s->n == BLOCKS_MAX)
		s->more = true;
	else
		s->saved[s->n++] = (struct saved){.block = *b, .ticks = ticks};
}

static void written(struct search *s, const struct block *b, uint64_t ticks, uint32_t stack)
{
	for (size_t i = 0; b && i < s->n; i++)
		if (s->saved[i].block.addr == b->addr && ticks > s->saved[i].ticks) {
			s->saved[i].stack = s->saved[i].writes ? s->saved[i].stack : stack;
			s->saved[i].writes++;
		}
}

/* What changes a tensor without its version, through `.data`, is not what the message counts. */
static bool is_counted(const struct search *s, uint32_t stack)
{
	enum owner top = stack_top_owner(s->trace, stack);
	struct place p;

	if ((top != OWNER_USER && top != OWNER_TORCH) || !place_of_stack(s->trace, stack, &p))
		return false;
	return !strstr(str_given(place_source(&p, trace_sources(s->trace), s->pool)), ".data");
}

static void written_by_launch(struct search *s, const struct cw_launch *l)
{
	uint64_t result, operand[OPERANDS];

	if (pointers_of(s, l, &result, operand))
		written(s, block_at(s, result), l->ticks, l->stack);
}

/* cuMemset… and copies to the device: the destination is the first argument. */
static void written_by_call(struct search *s, const struct cw_call *c)
{
	const char *name = api_name(c->api);

	if (!c->result &&
	    (!strncmp(name, "cuMemset", 8) || !strncmp(name, "cuMemcpyDtoD", 12) ||
	     !strncmp(name, "cuMemcpyHtoD", 12) || !strcmp(name, "cuMemcpyAsync") || !strcmp(name, "cuMemcpy")))
		written(s, block_at(s, c->arg[0]), c->ticks, c->stack);
}

/* "…launch_clamp_scalar…" is relu; otherwise kernels have the operation's name in theirs. */
static bool is_kernel_of(const struct search *s, const struct cw_launch *l)
{
	const char *name = trace_function_name(s->trace, l->func);

	return strcasestr(name, s->op) || (!strcmp(s->op, "relu") && strstr(name, "clamp"));
}

static void save_if_alive(struct search *s, uint64_t pointer, uint64_t ticks)
{
	const struct block *b = pointer ? block_at(s, pointer) : NULL;

	if (b && b->made < ticks)
		save(s, b, ticks);
}

static void save_what_it_used(struct search *s, const struct cw_launch *l)
{
	uint64_t result, operand[OPERANDS];

	if (!is_kernel_of(s, l) || !pointers_of(s, l, &result, operand))
		return;
	if (s->result)
		save_if_alive(s, result, l->ticks);
	for (size_t i = 0; i < OPERANDS && !s->result; i++)
		save_if_alive(s, operand[i], l->ticks);
}

/* The blocks that the operation used on the forward line, and what wrote into them between that and `until`. */
static void follow(struct search *s, uint32_t forward, uint64_t until)
{
	const struct cw_launch *const *l;
	const struct cw_call *const *c;
	size_t n = trace_launches(s->trace, &l), n_calls = trace_calls(s->trace, &c);

	for (size_t i = 0; i < n; i++)
		if (l[i]->stack == forward && counts(l[i], until))
			save_what_it_used(s, l[i]);
	for (size_t i = 0; i < n; i++)
		if (counts(l[i], until))
			written_by_launch(s, l[i]);
	for (size_t i = 0; i < n_calls; i++)
		if (c[i]->ticks < until)
			written_by_call(s, c[i]);
}

/* The one block that was written to, as often as the message says. NULL: none, or another number of times, or several blocks. */
static const struct saved *only_change(const struct search *s, unsigned changes)
{
	const struct saved *found = NULL;

	for (size_t i = 0; i < s->n; i++)
		if (s->saved[i].writes) {
			if (found || s->saved[i].writes != changes)
				return NULL;
			found = &s->saved[i];
		}
	return s->more ? NULL : found;
}

/* "… is at version 2; expected version 1 instead": how often it was changed since it was saved; 0: the message does not say. */
static unsigned changes_told(const char *text)
{
	const char *at = strstr(text, WORDS) ? strstr(text, "is at version ") : NULL;
	unsigned is, was;

	return at && sscanf(at, "is at version %u; expected version %u", &is, &was) == 2 && is > was ? is - was : 0;
}

/* "N5torch8autograd9generated13ReluBackward0E": the last name, "ReluBackward0". */
static const char *node_of(const char *mangled, char *to, size_t room)
{
	const char *at = *mangled == 'N' ? mangled + 1 : mangled;

	*to = '\0';
	while (*at >= '0' && *at <= '9') {
		char *name;
		size_t n = strtoul(at, &name, 10);

		if (n > strlen(name))
			break;
		snprintf(to, room, "%.*s", (int)n, name);
		at = name + n;
	}
	return to;
}

/* Which operation's gradient failed, and whether it needs its result. False: not known. */
static bool take_operation(struct search *s, const char *node, const char *text)
{
	const char *end = strstr(node, "Backward"), *by = strstr(text, "which is output ");
	size_t n = end ? (size_t)(end - node) : 0, len = strlen(node);

	if (n < 3 || n >= sizeof(s->op))
		return false;
	for (size_t i = 0; i < n; i++)
		s->op[i] = (char)tolower((unsigned char)node[i]);
	by = by ? strstr(by, " of ") : NULL;
	s->result = by && !strncmp(by + 4, node, len) && by[4 + len] == ',';
	return true;
}

static const struct cw_failure *check_in_backward(const struct incident *i)
{
	const struct cw_failure *check = incident_from(i, CW_SRC_TORCH_CHECK);

	return check && check->forward_stack &&
			       (strstr(check->text, WORDS) || strstr(check->text, "backward through the graph"))
		       ? check
		       : NULL;
}

static const char *shown(struct casefile *c, const struct trace *t, const struct place *p)
{
	return pool_printf(c->pool, "%s:%u", file_shown(p->file, trace_header(t)->cwd), p->line);
}

void observe_autograd(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s)
{
	const struct cw_failure *check = check_in_backward(i);
	struct search q = {.trace = t, .pool = c->pool};
	const struct saved *change;
	char node[96];
	unsigned changes;
	struct place p;

	if (!check || !s->forward.file)
		return;
	fact_set_text(c, FACT_autograd_saved, shown(c, t, &s->forward));
	changes = changes_told(check->text);
	if (!changes || !take_operation(&q, node_of(trace_string(t, check->node_name), node, sizeof(node)), check->text))
		return;
	take_blocks(&q, check->ticks);
	follow(&q, check->forward_stack, check->ticks);
	change = only_change(&q, changes);
	if (change && is_counted(&q, change->stack) && place_of_stack(t, change->stack, &p)) {
		fact_set_text(c, FACT_autograd_changed, shown(c, t, &p));
		s->where = p;
	}
	free(q.block);
}
