/* SPDX-License-Identifier: Apache-2.0
 * Loops and calls in the bytecode of another process (see pyloop.h). Offsets are in code units of two bytes.
 */
#include "read/live/pyloop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "read/live/pyproc.h"

#define UNITS_MAX	60000u
#define NAME_BYTES	64
#define TUPLE_ITEMS	24

#define FIRST_MINOR	9u
#define LAST_MINOR	13u

enum jump { JUMP_NONE, JUMP_BACK, JUMP_ABS };
enum does { DOES_NOTHING, DOES_EXTEND, DOES_CALL, DOES_ITERATE, DOES_NAME, DOES_NAME_1, DOES_NAME_2 };	/* its argument is shifted by so many */

#define STARTS(name, words)	(!__builtin_strncmp(#name, words, sizeof(words) - 1))
#define IS(name, words)		(!__builtin_strcmp(#name, words))
#define JUMP_PLAIN	JUMP_NONE
#define JUMP_EXT	JUMP_NONE
#define JUMP_FOR	JUMP_NONE
#define JUMP_FWD	JUMP_NONE
#define JUMP_GO_FWD	JUMP_NONE
#define JUMP_GO_BACK	JUMP_BACK
#define JUMP_GO_ABS	JUMP_ABS
#define JUMP_TRY	JUMP_NONE
#define JUMP_AGAIN	JUMP_NONE
#define JUMP_END	JUMP_NONE
#define JUMP_ANEXT	JUMP_NONE
#define JUMP_EXC	JUMP_NONE
#define JUMP_STORE	JUMP_NONE
#define JUMP_STORE_LOAD	JUMP_NONE
#define JUMP_STORE_STORE JUMP_NONE
#define IS_CALL(name)	((STARTS(name, "CALL") && !STARTS(name, "CALL_INTRINSIC")) || STARTS(name, "INSTRUMENTED_CALL"))
#define DOES(minor, name)                                                                                                 \
	(STARTS(name, "EXTENDED_ARG")					     ? DOES_EXTEND \
	 : IS_CALL(name)						     ? DOES_CALL \
	 : STARTS(name, "FOR_ITER") || STARTS(name, "INSTRUMENTED_FOR_ITER") ? DOES_ITERATE \
	 : STARTS(name, "LOAD_GLOBAL")					     ? ((minor) >= 11 ? DOES_NAME_1 : DOES_NAME) \
	 : STARTS(name, "LOAD_ATTR")					     ? ((minor) >= 12 ? DOES_NAME_1 : DOES_NAME) \
	 : STARTS(name, "LOAD_SUPER_ATTR")				     ? DOES_NAME_2 \
	 : IS(name, "LOAD_NAME") || STARTS(name, "LOAD_METHOD")		     ? DOES_NAME \
									     : DOES_NOTHING)

struct op { bool known; uint8_t caches, jump, does; };
static const struct op ops[LAST_MINOR - FIRST_MINOR + 1][256] = {
#define PY_OP(minor, number, name, caches, effect, times, form, jumped, kind) \
	[minor - FIRST_MINOR][number] = {true, caches, JUMP_##kind, DOES(minor, name)},
#include "kb/python_opcodes.def"
};

static const char *const pure[] = {
#define PY_PURE(name) name,
#include "kb/python_pure.def"
};

struct code {
	unsigned minor;
	uint8_t *bytes;
	uint32_t n;
	uint64_t names;		/* the tuple */
};

struct instruction {
	uint32_t start, next, arg;
	const struct op *op;
};

static bool read_code(struct pyproc *p, uint64_t at, struct code *c)
{
	uint64_t bytes = at + p->l.bytecode, n = 0;
	bool inside = p->l.minor >= 11;	/* the bytecode is a part of the code object, whose size counts units */

	if (!inside && !remote_word(p->r, at + p->bytecode, &bytes))
		return false;
	if (!remote_word(p->r, inside ? at + PY_CODE_UNITS : bytes + PY_BYTES_SIZE, &n) ||
	    !remote_word(p->r, at + p->names, &c->names))
		return false;
	n = inside ? n : n / 2;
	if (!n || n > UNITS_MAX)
		return false;
	c->minor = p->l.minor;
	c->n = (uint32_t)n;
	c->bytes = malloc(2 * n);
	return c->bytes && remote_read(p->r, bytes + (inside ? 0 : PY_BYTES_DATA), c->bytes, 2 * n);
}

static bool decode(const struct code *c, uint32_t at, struct instruction *i)
{
	i->start = at;
	i->arg = 0;
	for (; at < c->n; at++) {
		i->op = &ops[c->minor - FIRST_MINOR][c->bytes[2 * at]];
		i->arg = i->arg << 8 | c->bytes[2 * at + 1];
		i->next = at + 1 + i->op->caches;
		if (!i->op->known)
			return false;
		if (i->op->does != DOES_EXTEND)
			return true;
	}
	return false;
}

static uint32_t target_of(const struct code *c, const struct instruction *i)
{
	if (i->op->jump == JUMP_BACK)
		return i->arg <= i->next ? i->next - i->arg : 0;
	return c->minor == 9 ? i->arg / 2 : i->arg;
}

/* The smallest loop around these instructions: from the target of a jump back to that jump; without one, `*to` is 0. False: there is an
 * instruction that is not known. */
static bool find_loop(const struct code *c, uint32_t low, uint32_t high, uint32_t *from, uint32_t *to)
{
	struct instruction i;

	*from = *to = 0;
	for (uint32_t at = 0; at < c->n; at = i.next) {
		uint32_t target;

		if (!decode(c, at, &i))
			return false;
		target = i.op->jump != JUMP_NONE ? target_of(c, &i) : at;
		if (target < at && target <= low && high < i.next && (!*to || i.next - target < *to - *from)) {
			*from = target;
			*to = i.next;
		}
	}
	return true;
}

static bool is_pure(const char *name)
{
	for (size_t i = 0; i < sizeof(pure) / sizeof(pure[0]); i++)
		if (!strcmp(pure[i], name))
			return true;
	return false;
}

static bool name_at(struct pyproc *p, const struct code *c, const struct instruction *i, char *to, size_t size)
{
	uint32_t index = i->arg >> (i->op->does - DOES_NAME);
	uint64_t text = 0;

	return remote_word(p->r, c->names + PY_TUPLE_ITEMS + (uint64_t)index * 8, &text) &&
	       pyproc_text(p, text, to, size);
}

static const char *told(const char *name, struct pool *pool)
{
	return name[0] ? pool_printf(pool, "it calls %s in this loop, which may return something else each time", name)
		       : "the loop calls functions that may return something else each time";
}

/* Each call needs a name of the list: which name belongs to which call is not worked out. */
static const char *may_end(struct pyproc *p, const struct code *c, uint32_t from, uint32_t to, struct pool *pool)
{
	char name[NAME_BYTES] = "", other[NAME_BYTES] = "";
	unsigned calls = 0, known = 0;
	struct instruction i;

	for (uint32_t at = from; at < to && decode(c, at, &i); at = i.next) {
		switch ((enum does)i.op->does) {
		case DOES_ITERATE:
			return "the loop takes items from an iterator, which may have an end";
		case DOES_CALL:
			calls++;
			if (name[0] && !is_pure(name))
				memcpy(other, name, sizeof(other));
			name[0] = '\0';
			break;
		case DOES_NAME:
		case DOES_NAME_1:
		case DOES_NAME_2:
			if (!name_at(p, c, &i, name, sizeof(name)))
				name[0] = '\0';
			known += is_pure(name);
			break;
		default:
			break;
		}
	}
	return calls > known ? told(other, pool) : NULL;
}

/* False: the code cannot be read. `*to` 0: there is no loop. The caller frees the bytes. */
static bool open_loop(struct pyproc *p, uint64_t code, int64_t low, int64_t high, struct code *c, uint32_t *from,
		      uint32_t *to)
{
	*c = (struct code){0};
	if (p->l.minor < FIRST_MINOR || p->l.minor > LAST_MINOR || low < 0 || high < low)
		return false;
	return read_code(p, code, c) && high / 2 < (int64_t)c->n &&
	       find_loop(c, (uint32_t)low / 2, (uint32_t)high / 2, from, to);
}

bool pyloop_is_none(struct pyproc *p, uint64_t code, int64_t low, int64_t high)
{
	struct code c;
	uint32_t from, to;
	bool none = open_loop(p, code, low, high, &c, &from, &to) && !to;

	free(c.bytes);
	return none;
}

const char *pyloop_may_end(struct pyproc *p, uint64_t code, int64_t low, int64_t high, struct pool *pool)
{
	const char *text = told("", pool);
	struct code c;
	uint32_t from, to;

	if (open_loop(p, code, low, high, &c, &from, &to))
		text = to ? may_end(p, &c, from, to, pool) : "it is inside a call, which may return";
	free(c.bytes);
	return text;
}
