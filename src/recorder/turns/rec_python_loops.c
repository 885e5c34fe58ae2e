/* SPDX-License-Identifier: Apache-2.0
 * Where a code object loops, read once from its bytecode.
 *
 * One pass from the first instruction to the last follows the depth of the stack, as CPython's own frame_setlineno does.
 * A `for` loop keeps its iterator on the stack, so an instruction is in the loop exactly as long as that slot is
 * occupied, wherever the compiler put it. Other loops are the instructions between the target of a backward jump and the
 * jump itself; a handler that the compiler moved out of line is in the loop of the instructions it protects.
 *
 * Offsets are in code units. Code that cannot be followed has loops without a slot, or none.
 */
#include <string.h>

#include "recorder/rec_python_bytecode.h"

#define CODES		4096u		/* code objects with loops */
#define CODE_SLOTS	16384u		/* code objects read */
#define LOOPS		8192u
#define SPANS		32768u
#define PENDING		256u		/* jump targets ahead */
#define DEPTH_UNKNOWN	(-1)

static struct {
	uint32_t n_codes, n_loops, n_spans;
	struct code_loops code[CODES];
	struct span { uint16_t from, loop; } span[SPANS];	/* up to the next one: the innermost loop of its code, from 1; 0 = none */
} loops;
struct py_loop py_loop[LOOPS];

static struct slot index_of[CODE_SLOTS];
static struct spin loops_lock;
LOCK_LISTED(python_loops, loops_lock);

static bool is_loop(const struct instruction *i)
{
	return (i->op->kind == KIND_BACK || i->op->kind == KIND_GO_BACK || i->op->kind == KIND_ABS ||
		i->op->kind == KIND_GO_ABS) && i->target <= i->start;
}

static bool passes_on(const struct op *op)
{
	return op->kind != KIND_GO_FWD && op->kind != KIND_GO_BACK && op->kind != KIND_GO_ABS &&
	       op->kind != KIND_AGAIN && op->kind != KIND_END;
}

static int effect_of(const struct op *op, uint32_t arg)
{
	uint32_t form = 0;

	switch (op->form) {
	case FORM_ARG: form = arg; break;
	case FORM_BIT: form = arg & 1; break;
	case FORM_ONES: form = (uint32_t)__builtin_popcount(arg & 15); break;
	case FORM_FOUR: form = !!(arg & 4); break;
	case FORM_THREE: form = arg == 3; break;
	case FORM_EX: form = (arg & 255) + (arg >> 8); break;
	}
	return op->effect + op->times * (int)(form & 0xffff);
}

struct state {
	int depth;			/* DEPTH_UNKNOWN: nothing gets here, as far as we have seen */
	uint16_t loop;			/* innermost; from 1, 0 = none */
	bool cold;			/* code that the compiler moved out of line */
};

static struct {				/* under the lock */
	struct code_view v;
	struct py_loop *loop;		/* those of this code object, in the order of their heads */
	uint32_t n_loops, max_loops;
	struct span *span;
	uint32_t n_spans, max_spans;
	struct { uint32_t target; struct state s; } ahead[PENDING];
	uint32_t n_ahead;
	uint32_t cold;			/* where handlers begin */
	bool unsure;			/* depths contradict each other: no slot can be trusted */
} pass;

static struct py_loop *pass_loop(uint16_t number)
{
	return &pass.loop[number - 1];
}

static struct py_loop *loop_with_head(uint32_t head)
{
	for (uint32_t i = 0; i < pass.n_loops; i++)
		if (pass.loop[i].head == head)
			return &pass.loop[i];
	return NULL;
}

/* Since 3.12, handlers are behind everything else. */
static uint32_t find_cold(const struct code_view *v)
{
	const uint8_t *p = v->handlers;
	uint32_t cold = LOOPS_NOT_COLD;
	struct handler h;

	while (py.l.minor >= 12 && code_next_handler(v, &p, &h))
		if (h.target < cold && h.target < v->n && py_bytecode.op[v->bytes[2 * h.target]].kind == KIND_EXC)
			cold = h.target;
	return cold;
}

/* The heads of all loops, in order. A jump out of an exception handler defines a loop only if no other jump does. */
static bool find_heads(void)
{
	struct instruction i;

	for (int cold = 0; cold < 2; cold++)
		for (uint32_t at = 0; at < pass.v.n; at = i.next) {
			struct py_loop *l;

			if (!code_decode(&pass.v, at, &i))
				return false;
			if (i.op->kind == KIND_FOR && !cold) {
				if (pass.n_loops == pass.max_loops)
					return false;
				pass.loop[pass.n_loops++] = (struct py_loop){.head = (uint16_t)i.start,
									     .end = (uint16_t)i.target,
									     .body = (uint16_t)i.next,
									     .is_for = true,
									     .slot = -1};
			}
			if (!is_loop(&i) || (i.start >= pass.cold) != cold)
				continue;
			l = loop_with_head(i.target);
			if (!l) {
				if (pass.n_loops == pass.max_loops)
					return false;
				l = &pass.loop[pass.n_loops++];
				*l = (struct py_loop){.head = (uint16_t)i.target, .end = (uint16_t)i.next, .slot = -1};
			} else if (!cold && !l->is_for && i.next > l->end) {
				l->end = (uint16_t)i.next;
			}
			if (!l->is_for && !cold)
				l->jump = (uint16_t)i.at;
		}
	return true;
}

/* Drops the loops that are left by being at `at` with this depth. */
static void trim(struct state *s, uint32_t at)
{
	while (s->loop) {
		const struct py_loop *l = pass_loop(s->loop);
		bool inside = l->is_for ? s->depth > l->depth
					: (s->cold || (at >= l->head && at < l->end)) && s->depth >= l->depth;

		if (inside)
			break;
		s->loop = l->up;
	}
}

static void go_ahead(uint32_t target, int depth, struct state s)
{
	for (uint32_t i = 0; i < pass.n_ahead; i++)
		if (pass.ahead[i].target == target) {
			pass.unsure |= pass.ahead[i].s.depth != depth;
			return;
		}
	if (pass.n_ahead == PENDING) {
		pass.unsure = true;
		return;
	}
	s.depth = depth;
	pass.ahead[pass.n_ahead].target = target;
	pass.ahead[pass.n_ahead++].s = s;
}

static uint16_t loop_at(uint32_t at)
{
	uint16_t loop = 0;

	for (uint32_t i = 0; i < pass.n_spans && pass.span[i].from <= at; i++)
		loop = pass.span[i].loop;
	return loop;
}

/* What jumps, or an exception, bring to this instruction. */
static void arrive(uint32_t at, struct state *s)
{
	const uint8_t *p = pass.v.handlers;
	struct handler h;

	for (uint32_t i = 0; i < pass.n_ahead; i++) {
		if (pass.ahead[i].target != at)
			continue;
		if (s->depth == DEPTH_UNKNOWN)
			*s = pass.ahead[i].s;
		else
			pass.unsure |= s->depth != pass.ahead[i].s.depth;
		pass.ahead[i] = pass.ahead[--pass.n_ahead];
		break;
	}
	if (s->depth != DEPTH_UNKNOWN)
		return;
	while (code_next_handler(&pass.v, &p, &h)) {
		if (h.target != at || h.from >= at)
			continue;
		s->depth = (int)h.depth + h.lasti + 1;
		s->loop = loop_at(h.from);
		s->cold = py.l.minor >= 12;
		/* what the handler found on the stack, not what it puts there */
		while (s->loop && pass_loop(s->loop)->depth + pass_loop(s->loop)->is_for > (int)h.depth)
			s->loop = pass_loop(s->loop)->up;
		return;
	}
}

static bool put_span(uint32_t at, uint16_t loop)
{
	if (pass.n_spans ? pass.span[pass.n_spans - 1].loop == loop : !loop)
		return true;
	if (pass.n_spans == pass.max_spans)
		return false;
	pass.span[pass.n_spans++] = (struct span){(uint16_t)at, loop};
	return true;
}

/* A change of this variable says nothing about the loop, or those around it. */
static void tells_nothing(uint16_t loop, uint32_t variable)
{
	for (; loop; loop = pass_loop(loop)->up) {
		struct py_loop *l = pass_loop(loop);
		uint8_t n = 0;

		l->inside |= 1ull << variable % 64;
		for (uint32_t i = 0; i < l->n_vars; i++)
			if (l->var[i] % 64 != variable % 64)
				l->var[n++] = l->var[i];
		l->n_vars = n;
	}
}

static void stores(uint16_t loop, uint32_t variable)
{
	struct py_loop *l;
	uint32_t i = 0;

	if (!loop || variable > 254)
		return;
	l = pass_loop(loop);
	while (i < l->n_vars && l->var[i] != variable)
		i++;
	if (i < LOOP_VARS && i == l->n_vars && !(l->inside & 1ull << variable % 64))
		l->var[l->n_vars++] = (uint8_t)variable;
	tells_nothing(l->up, variable);
}

/* Of stores in a row, CPython makes one instruction: the frame stands still while it drops what they replace, one after the other. The first
 * tells the turn; the others would look like turns of their own. */
static void note_stores(uint16_t loop, const struct instruction *i, bool in_row)
{
	if (i->op->kind == KIND_STORE && in_row)
		tells_nothing(loop, i->arg);
	else if (i->op->kind == KIND_STORE)
		stores(loop, i->arg);
	else if (i->op->kind == KIND_STORE_LOAD || i->op->kind == KIND_STORE_STORE)
		stores(loop, i->arg >> 4);
	if (i->op->kind == KIND_STORE_STORE)
		tells_nothing(loop, i->arg & 15);
}

static bool follow_code(void)
{
	struct state s = {0};
	struct instruction i;
	bool stored = false;

	for (uint32_t at = 0; at < pass.v.n; at = i.next) {
		struct py_loop *l = loop_with_head(at);

		if (!code_decode(&pass.v, at, &i))
			return false;
		arrive(at, &s);
		trim(&s, at);
		if (l && s.depth != DEPTH_UNKNOWN) {
			l->up = s.loop;
			l->depth = (int16_t)(s.depth - l->is_for);
			l->slot = l->is_for ? l->depth : -1;
			s.loop = (uint16_t)(l - pass.loop + 1);
		}
		if (!put_span(at, s.depth == DEPTH_UNKNOWN ? 0 : s.loop))
			return false;
		if (s.depth == DEPTH_UNKNOWN) {
			stored = false;
			continue;
		}
		if (i.op->kind == KIND_FOR || i.op->kind == KIND_FWD || i.op->kind == KIND_GO_FWD ||
		    i.op->kind == KIND_TRY || ((i.op->kind == KIND_ABS || i.op->kind == KIND_GO_ABS) && i.target > at))
			go_ahead(i.target, s.depth + i.op->jumped, s);
		note_stores(s.loop, &i, stored);
		stored = i.op->kind == KIND_STORE || i.op->kind == KIND_STORE_STORE;
		s.depth += effect_of(i.op, i.arg);
		if (i.op->kind == KIND_ANEXT)
			s.cold = false;
		if (s.depth < 0) {
			pass.unsure = true;
			s.depth = 0;
		}
		if (!passes_on(i.op))
			s.depth = DEPTH_UNKNOWN;
	}
	return true;
}

uint32_t code_units(const char *code)
{
	struct code_view v;

	return py_bytecode.op && code_view_of(code, &v) ? v.n : 0;
}

/* Under the lock. The number of its code_loops, 0 = it has no loops, or they cannot be found. */
static uint32_t read_code(const char *code)
{
	struct code_loops *c = &loops.code[loops.n_codes];

	memset(&pass, 0, sizeof(pass));
	if (loops.n_codes == CODES || !code_view_of(code, &pass.v))
		return 0;
	pass.loop = &py_loop[loops.n_loops];
	pass.max_loops = LOOPS - loops.n_loops;
	pass.span = &loops.span[loops.n_spans];
	pass.max_spans = SPANS - loops.n_spans;
	pass.cold = find_cold(&pass.v);
	if (!find_heads() || (!pass.n_loops && pass.cold == LOOPS_NOT_COLD) || !follow_code())
		return 0;
	for (uint32_t i = 0; i < pass.n_loops; i++) {
		if (pass.unsure)
			pass.loop[i].slot = -1;
		pass.loop[i].up = pass.loop[i].up ? (uint16_t)(loops.n_loops + pass.loop[i].up - 1) : 0;
	}
	for (uint32_t i = 0; i < pass.n_spans; i++)
		if (pass.span[i].loop)
			pass.span[i].loop = (uint16_t)(loops.n_loops + pass.span[i].loop - 1);
	*c = (struct code_loops){.first = loops.n_spans, .n = (uint16_t)pass.n_spans, .locals = (uint16_t)code_locals(code),
				 .cold = (uint16_t)pass.cold};
	loops.n_spans += pass.n_spans;
	loops.n_loops += pass.n_loops;
	return loops.n_codes++;
}

uint32_t loops_of_code(const char *code, uint64_t id)
{
	uint32_t with, locals;

	if (!py_bytecode.op)
		return LOOPS_KNOWN;
	with = table_get(index_of, CODE_SLOTS, id);
	if (likely(with))
		return with;
	if (!spin_try(&loops_lock))
		return LOOPS_LATER;
	with = table_get(index_of, CODE_SLOTS, id);
	if (!with) {
		locals = code_locals(code);
		with = LOOPS_KNOWN | read_code(code) | (locals < 127 ? locals : 127) << 24;
		with |= loops.code[LOOPS_NUMBER(with)].n ? LOOPS_ANY : 0;
		with |= code_is_method(code) ? LOOPS_METHOD : 0;
		if (!table_put(index_of, CODE_SLOTS, id, with))
			with = LOOPS_KNOWN;
	}
	spin_done(&loops_lock);
	return with;
}

#define RAISE_UNITS 1024u		/* of code that makes up the message */

/* Does what is here lead to `raise`, whatever happens on the way? */
static bool raises(const struct code_view *v, uint32_t at)
{
	struct instruction i;

	for (uint32_t end = at + RAISE_UNITS; at < end; at = i.next) {
		if (!code_decode(v, at, &i))
			return false;
		if (i.op->role == ROLE_RAISE)
			return true;
		if (i.op->kind != KIND_PLAIN && i.op->kind != KIND_STORE && i.op->kind != KIND_STORE_LOAD &&
		    i.op->kind != KIND_STORE_STORE)
			return false;
	}
	return false;
}

enum branch loops_branch(const char *code, uint32_t unit)
{
	struct code_view v;
	struct instruction i;
	bool is_not, on_jump, on_next;

	if (!py_bytecode.op || !code_view_of(code, &v) || !code_decode_whole(&v, unit, &i))
		return BRANCH_ANY;
	is_not = i.op->role == ROLE_NOT;
	if (i.op->role != ROLE_IF_TRUE && i.op->role != ROLE_IF_FALSE)	/* a call that returns it, or what makes a bool of it */
		for (int n = 0; n < 3; n++) {
			if (!code_decode(&v, i.next, &i))
				return BRANCH_ANY;
			if (i.op->role != ROLE_NOT && i.op->role != ROLE_KEEP)
				break;
			is_not ^= i.op->role == ROLE_NOT;
		}
	if (i.op->role != ROLE_IF_TRUE && i.op->role != ROLE_IF_FALSE)
		return BRANCH_ANY;
	on_jump = raises(&v, i.target);
	on_next = raises(&v, i.next);
	if (on_jump == on_next)
		return BRANCH_ANY;
	return (on_jump == (i.op->role == ROLE_IF_TRUE)) != is_not ? BRANCH_TRUE_RAISES : BRANCH_FALSE_RAISES;
}

uint32_t loops_around(uint32_t number, uint32_t unit, uint32_t *range)
{
	const struct code_loops *c = &loops.code[number];
	const struct span *s = &loops.span[c->first];
	uint32_t low = 0, high = c->n;

	if (unit == UINT32_MAX)
		return 0;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (s[middle].from <= unit)
			low = middle + 1;
		else
			high = middle;
	}
	if (range) {
		range[0] = low ? s[low - 1].from : 0;
		range[1] = low < c->n ? s[low].from : UNITS_MAX;
	}
	return low ? s[low - 1].loop : 0;
}

uint32_t loops_cold(uint32_t number)
{
	return number ? loops.code[number].cold : LOOPS_NOT_COLD;
}

uint32_t loops_locals(void)
{
	return py_bytecode.locals;
}

const void *const *loops_stack(const char *frame, uint32_t number)
{
	const void *const *stack;

	if (py.l.minor >= 11)
		return (const void *const *)(const void *)(frame + py_bytecode.locals) + loops.code[number].locals;
	memcpy(&stack, frame + py_bytecode.stack, sizeof(stack));
	return stack;
}

/* A recording begins, perhaps in a forked child: what is known about code stays valid, numbers of the old recording do not. */
void loops_start(bool on)
{
	for (uint32_t i = 1; i < loops.n_loops; i++)
		py_loop[i].number = 0;
	bytecode_start(on);
	if (!loops.n_codes)
		loops.n_codes = loops.n_loops = 1;	/* 0 means none */
}
