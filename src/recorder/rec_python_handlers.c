/* SPDX-License-Identifier: Apache-2.0
 * Which `except` clauses and `with` statements are around a call, and what they do. Read at a failure, from the bytecode of the frames.
 *
 * Since 3.11 the exception table says where an exception goes; before, the frame's stack of blocks. A clause names its types (what the names
 * stand for is not asked: that would be the program's own code) and is followed to where it ends: the program goes on, an
 * exception is raised, the process exits. What only passes the exception on is left out.
 */
#include <string.h>

#include "rec_python_bytecode.h"

#define WORDS		200u		/* bytes kept of what a clause catches */
#define BLOCKS_MAX	20
#define SETUP_FINALLY	122		/* as a block's type: a handler that was not entered */
#define NESTED_MAX	32		/* handlers asked per frame */

struct block { int32_t type, handler, level; };

struct out {
	struct cw_handler *at;
	uint32_t n, max;
	uint32_t frame;
	struct code_view v;
	const struct raw_frame *raw;
};

static bool name_of(const struct code_view *v, uint32_t index, char *buf, size_t size)
{
	const char *names;
	int64_t n;
	const void *name;

	memcpy(&names, v->code + py_bytecode.names, sizeof(names));
	memcpy(&n, names + PY_COUNT, sizeof(n));
	if (index >= (uint64_t)n)
		return false;
	memcpy(&name, names + PY_TUPLE_ITEMS + 8 * (size_t)index, sizeof(name));
	return python_string(name, buf, size);
}

/* The name that an instruction loads; "?" for variables whose names are not in the code's list. False: it loads none. */
static bool loads(const struct code_view *v, const struct instruction *i, char *buf, size_t size)
{
	uint32_t index = i->arg;

	switch (i->op->role) {
	case ROLE_LOAD_GLOBAL:
		index >>= py.l.minor >= 11;
		break;
	case ROLE_LOAD_ATTR:
		index >>= py.l.minor >= 12;
		break;
	case ROLE_LOAD_NAME:
	case ROLE_LOAD_METHOD:
		break;
	case ROLE_LOAD_OTHER:
		text_copy(buf, size, "?", 1);
		return true;
	default:
		return false;
	}
	return name_of(v, index, buf, size);
}

static bool is_attribute(const struct instruction *i)
{
	return i->op->role == ROLE_LOAD_ATTR || i->op->role == ROLE_LOAD_METHOD;
}

static bool is_any_of(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(name, *words) == 0)
			return true;
	return false;
}

/* sys.exit, os._exit, exit, SystemExit */
static bool exits(const char *owner, const char *name, bool attribute)
{
	static const char *const owners[] = {"sys", "os", NULL};
	static const char *const functions[] = {"exit", "_exit", "abort", NULL};
	static const char *const alone[] = {"exit", "quit", "SystemExit", NULL};

	return attribute ? is_any_of(owner, owners) && is_any_of(name, functions) : is_any_of(name, alone);
}

static uint32_t line_of_unit(const struct raw_frame *raw, uint32_t unit)
{
	uint64_t instr = py.l.instr_kind == INSTR_POINTER ? (uintptr_t)(raw->code + py.l.bytecode) + 2 * (uint64_t)unit
			 : py.l.instr_kind == INSTR_BYTES ? 2 * (uint64_t)unit : unit;

	return python_line(&py.l, raw->code, instr);
}

static bool is_condition(const struct op *op)
{
	return op->kind == KIND_FOR || op->kind == KIND_FWD || op->kind == KIND_BACK || op->kind == KIND_ABS;
}

static bool is_jump(const struct op *op)
{
	return op->kind == KIND_GO_FWD || op->kind == KIND_GO_BACK || op->kind == KIND_GO_ABS || op->kind == KIND_AGAIN;
}

/* Follows a clause from its first instruction. Behind a condition, whatever comes first counts, but an exit further on counts more. */
static void follow(const struct out *o, uint32_t from, uint32_t to, struct cw_handler *h)
{
	char name[64] = "", owner[64] = "";
	struct instruction i = {.next = from};
	bool settled = false, handled = false;
	uint32_t does = CW_HANDLER_GOES_ON, at;

	h->first_line = h->last_line = line_of_unit(o->raw, from);
	for (at = from; at < to && code_decode(&o->v, at, &i); at = i.next) {
		uint32_t line = line_of_unit(o->raw, i.at), now = UINT32_MAX;

		if (!settled && line > h->last_line)
			h->last_line = line;
		if (loads(&o->v, &i, name, sizeof(name)) && exits(owner, name, is_attribute(&i)))
			now = CW_HANDLER_EXITS;
		memcpy(owner, name, sizeof(owner));
		handled |= i.op->role == ROLE_POP_EXCEPT;
		if (i.op->role == ROLE_RAISE)
			now = CW_HANDLER_RAISES;
		else if (i.op->kind == KIND_END || (handled && is_jump(i.op)))
			now = CW_HANDLER_GOES_ON;
		else if (is_condition(i.op) || is_jump(i.op))
			h->flags |= settled ? 0 : CW_HANDLER_BRANCHES;
		if (now == UINT32_MAX)
			continue;
		if (!settled || now == CW_HANDLER_EXITS)
			does = now;
		settled = true;
		if (!h->flags || does == CW_HANDLER_EXITS)
			break;
	}
	h->does = (uint16_t)does;
	if (does == CW_HANDLER_GOES_ON)
		h->flags = 0;
}

static void add(struct out *o, const struct cw_handler *h)
{
	if (o->n < o->max)
		o->at[o->n++] = *h;
}

/* What a clause catches: its instructions up to the comparison, as names. False: this is none. `i`: the comparison. */
static bool read_types(const struct code_view *v, uint32_t at, struct instruction *i, char *words)
{
	char name[96];
	uint32_t n = 0, last = 0;

	words[0] = '\0';
	for (; code_decode(v, at, i); at = i->next) {
		if (i->op->role == ROLE_MATCH)
			return true;
		if (i->op->role == ROLE_COPY || i->op->role == ROLE_BUILD_TUPLE)
			continue;
		if (!loads(v, i, name, sizeof(name)))
			return false;
		if (is_attribute(i) && n)
			n = last;	/* of `torch.cuda.OutOfMemoryError`, the last name */
		last = n;
		if (n + strlen(name) + 3 > WORDS)
			continue;
		if (n) {
			words[n++] = ',';
			words[n++] = ' ';
		}
		text_copy(words + n, WORDS - n, name, strlen(name));
		n += (uint32_t)strlen(words + n);
	}
	return false;
}

/* Where the comparison goes on if the exception is another one. */
static uint32_t next_clause(const struct code_view *v, struct instruction *i)
{
	if (i->op->kind == KIND_ABS || i->op->kind == KIND_FWD)		/* 3.9, 3.10: one instruction */
		return i->target;
	while (code_decode(v, i->next, i))
		if (is_condition(i->op))
			return i->target;
		else if (i->op->role != ROLE_COPY && i->op->kind != KIND_PLAIN)
			break;
	return 0;
}

static void add_clauses(struct out *o, uint32_t at, uint32_t end)
{
	struct instruction i;
	char words[WORDS];

	for (uint32_t guard = 0; guard < NESTED_MAX && code_decode(&o->v, at, &i); guard++) {
		struct cw_handler h = {.frame = o->frame, .kind = CW_HANDLER_EXCEPT};
		uint32_t next;

		if (i.op->role == ROLE_POP) {		/* `except:` */
			follow(o, i.next, end, &h);
			add(o, &h);
			return;
		}
		if (!read_types(&o->v, at, &i, words))
			return;				/* `finally`, or no clause is left */
		next = next_clause(&o->v, &i);
		if (next <= i.at)
			return;
		h.types = intern_string(words, strlen(words));
		follow(o, i.next, next, &h);
		add(o, &h);
		at = next;
	}
}

static const void *read_pointer(const void *from)
{
	const void *p = NULL;

	return from && rec_read_memory(&p, from, sizeof(p)) ? p : NULL;
}

/* The name of an object's type. */
static bool type_name(const void *object, char *buf, size_t size)
{
	const char *type = object ? read_pointer((const char *)object + PY_TYPE) : NULL;
	const char *name = type ? read_pointer(type + PY_TYPE_NAME) : NULL, *dot;

	if (!name)
		return false;
	for (size_t n = 0; n < size; n++) {
		if (!rec_read_memory(&buf[n], name + n, 1))
			return false;
		if (!buf[n]) {
			dot = strrchr(buf, '.');
			if (dot)
				memmove(buf, dot + 1, strlen(dot));
			return true;
		}
	}
	return false;
}

/* A bound `__exit__` is on the stack below the handler; a method of any kind has its object in the same place. */
static void add_with(struct out *o, uint32_t at, uint32_t level)
{
	static const char *const methods[] = {"method", "builtin_function_or_method", "method-wrapper", NULL};
	struct cw_handler h = {.frame = o->frame, .kind = CW_HANDLER_WITH};
	const char *stack = o->raw->frame + py_bytecode.locals + 8 * (size_t)code_locals(o->raw->code);
	const char *method;
	char words[WORDS];

	if (py.l.minor < 11)
		memcpy(&stack, o->raw->frame + py_bytecode.stack, sizeof(stack));
	method = level ? read_pointer(stack + 8 * (size_t)(level - 1)) : NULL;
	if (!type_name(method, words, sizeof(words)) || !is_any_of(words, methods) ||
	    !type_name(read_pointer(method + PY_METHOD_SELF), words, sizeof(words)))
		return;
	h.types = intern_string(words, strlen(words));
	h.first_line = h.last_line = line_of_unit(o->raw, at);
	add(o, &h);
}

/* The handler that begins at `at`; `level`: how much of the frame's stack it finds. */
static void add_handler(struct out *o, uint32_t at, uint32_t level, uint32_t end)
{
	struct instruction i;

	if (!code_decode(&o->v, at, &i))
		return;
	if (py.l.minor >= 11) {
		if (i.op->kind != KIND_EXC || !code_decode(&o->v, at = i.next, &i))
			return;		/* leaves a handler, and passes the exception on */
	}
	if (i.op->role == ROLE_WITH)
		add_with(o, at, level);
	else
		add_clauses(o, at, end);
}

static bool handler_at(const struct code_view *v, uint32_t unit, struct handler *h)
{
	const uint8_t *p = v->handlers;

	while (code_next_handler(v, &p, h))
		if (unit >= h->from && unit < h->to)
			return h->target < v->n;
	return false;
}

static void frame_by_table(struct out *o, uint32_t unit)
{
	struct handler h, behind;

	for (uint32_t guard = 0; guard < NESTED_MAX && handler_at(&o->v, unit, &h); guard++) {
		bool nested = handler_at(&o->v, h.target, &behind);

		add_handler(o, h.target, h.depth, nested && behind.target > h.target ? behind.target : o->v.n);
		unit = h.target;
	}
}

static void frame_by_blocks(struct out *o)
{
	const char *blocks = o->raw->frame + py_bytecode.locals - PY_BLOCKS_BEFORE;
	int32_t n;

	memcpy(&n, o->raw->frame + py.l.instr + PY_BLOCK_COUNT, sizeof(n));
	for (n = n > BLOCKS_MAX ? 0 : n; n > 0; n--) {
		struct block b;

		memcpy(&b, blocks + sizeof(b) * (size_t)(n - 1), sizeof(b));
		if (b.type == SETUP_FINALLY && b.handler >= 0)
			add_handler(o, (uint32_t)b.handler / (py.l.minor == 9 ? 2 : 1),
				    b.level > 0 ? (uint32_t)b.level : 0, o->v.n);
	}
}

uint32_t handlers_of_frames(const struct raw_frame *raw, uint32_t n, struct cw_handler *out, uint32_t max)
{
	struct out o = {.at = out, .max = max};

	if (!py_bytecode.op)
		return HANDLERS_UNKNOWN;
	for (uint32_t k = 0; k < n && o.n < max; k++) {
		struct raw_frame f = {UNTAGGED(raw[k].code), raw[k].frame, raw[k].instr};
		uint32_t unit = code_unit(f.code, f.instr);

		o.frame = k;
		o.raw = &f;
		if (unit == UINT32_MAX || !code_view_of(f.code, &o.v))
			continue;
		if (py.l.minor >= 11)
			frame_by_table(&o, unit);
		else
			frame_by_blocks(&o);
	}
	return o.n;
}
