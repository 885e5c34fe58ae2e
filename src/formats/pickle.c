/* SPDX-License-Identifier: Apache-2.0
 * Reads a pickle of plain data (see pickle.h).
 *
 * Memory stays proportional to the file: every value on the stack, every mark and every memo has cost at least one
 * byte of it, and lengths that the file claims are not trusted until the bytes are there.
 */
#include "formats/pickle.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "formats/pickle_input.h"

#define MEMO_ID_BITS	28
#define DEPTH_MAX	256	/* marks at once; a PyTorch memory snapshot has about ten */
#define STACK_FREE	65536	/* values on the stack at once, and one more for every STACK_BYTES of the file: */
#define STACK_BYTES	16	/* a writer that does not batch has all events of a device there, none smaller */

enum op {
#define OP(byte, name) OP_##name = byte,
#define REFUSED(byte, name)
#include "formats/pickle_ops.def"
#undef OP
#undef REFUSED
};

struct machine {
	struct pickle_input *in;
	const struct pickle_sink *sink;
	void *it;
	struct err *err;
	struct pickle_value *stack;
	size_t n, cap;
	size_t *mark;
	size_t n_marks, cap_marks;
	uint32_t *memo;		/* kind << 28 | id */
	size_t n_memo, cap_memo;
	uint64_t op_at;		/* offset of the current opcode */
};

static int pickle_bad(struct machine *m, const char *what)
{
	if (m->in->failed)
		return m->in->failed;
	return err_set(m->err, -EBADMSG, "not %s: %s at byte %llu", m->sink->what, what,
		       (unsigned long long)m->op_at);
}

static int pickle_cut(struct machine *m)
{
	if (m->in->failed)
		return m->in->failed;
	return err_set(m->err, -EBADMSG, "the pickle is cut short: it ends at byte %llu",
		       (unsigned long long)input_offset(m->in) + (unsigned long long)(m->in->end - m->in->at));
}

static int pickle_refuse(struct machine *m, uint8_t op)
{
	static const struct { uint8_t byte; const char *name; } names[] = {
#define OP(byte, name)
#define REFUSED(byte, name) {byte, #name},
#include "formats/pickle_ops.def"
#undef OP
#undef REFUSED
	};
	char text[64] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].byte == op)
			snprintf(text, sizeof(text), "%s", names[i].name);
	if (!text[0])
		snprintf(text, sizeof(text), "0x%02x", op);
	err_set(m->err, -EPERM, "refused: pickle opcode %s at byte %llu, which %s does not need", text,
		(unsigned long long)m->op_at, m->sink->what);
	err_hint(m->err, "cuwhy reads plain data only and never executes a pickle%s", m->sink->hint);
	return -EPERM;
}

static inline struct pickle_value *pickle_push(struct machine *m, uint8_t kind)
{
	struct pickle_value *v;

	if (m->n == m->cap)
		m->stack = xgrow(m->stack, m->n, &m->cap, sizeof(*m->stack));
	v = &m->stack[m->n++];
	v->kind = kind;
	v->number = 0;
	return v;
}

static int push_number(struct machine *m, uint8_t kind, int64_t number)
{
	pickle_push(m, kind)->number = number;
	return 0;
}

/* A little-endian number of `n` bytes that follows the opcode. */
static inline bool pickle_take(struct machine *m, size_t n, uint64_t *value)
{
	uint64_t word = 0;

	if (!input_need(m->in, n))
		return false;
	if ((size_t)(m->in->end - m->in->at) >= sizeof(word)) {	/* nearly always: one load for all of them */
		memcpy(&word, m->in->at, sizeof(word));
		*value = n < 8 ? le64toh(word) & ((1ull << (8 * n)) - 1) : le64toh(word);
	} else {
		memcpy(&word, m->in->at, n);
		*value = le64toh(word);
	}
	m->in->at += n;
	return true;
}

/* Two's complement of any length; a value that does not fit 64 bits is never used. */
static int op_long(struct machine *m, uint64_t len)
{
	uint64_t value = 0;
	size_t n = len < 8 ? (size_t)len : 8;

	if (!pickle_take(m, n, &value) || !input_skip(m->in, len - n))
		return pickle_cut(m);
	if (n && n < 8 && value >> (8 * n - 1))
		value |= ~0ull << (8 * n);
	return push_number(m, V_INT, (int64_t)value);
}

static int op_float(struct machine *m)
{
	uint64_t bits;
	double real;

	if (!pickle_take(m, 8, &bits))
		return pickle_cut(m);
	bits = be64toh(htole64(bits));
	memcpy(&real, &bits, sizeof(real));
	pickle_push(m, V_FLOAT)->real = real;
	return 0;
}

static int op_string(struct machine *m, uint64_t len)
{
	size_t kept = len < m->sink->string_kept ? (size_t)len : m->sink->string_kept;
	int rc;

	if (!input_need(m->in, kept))
		return pickle_cut(m);
	rc = m->sink->string(m->it, m->in->at, kept, pickle_push(m, V_STRING));
	m->in->at += kept;
	if (rc == 0 && !input_skip(m->in, len - kept))
		return pickle_cut(m);
	return rc;
}

static int memo_put(struct machine *m, uint64_t index)
{
	const struct pickle_value *v;
	size_t cap = m->cap_memo;

	if (!m->n)
		return pickle_bad(m, "a memo without a value");
	/* writers count from 0 and spend at least a byte per memo: larger numbers are forged */
	if (index > m->op_at)
		return pickle_bad(m, "a memo out of order");
	if (index >= cap) {
		while (index >= cap)
			cap = cap ? cap + cap / 2 + 1 : 256;
		m->memo = xrealloc(m->memo, cap, sizeof(*m->memo));
		m->cap_memo = cap;
	}
	for (; m->n_memo <= index; m->n_memo++)
		m->memo[m->n_memo] = (uint32_t)V_OTHER << MEMO_ID_BITS;
	v = &m->stack[m->n - 1];
	if (v->kind >= V_STRING)
		m->memo[index] = (uint32_t)v->kind << MEMO_ID_BITS | v->id;
	return 0;
}

static inline int memo_get(struct machine *m, uint64_t index)
{
	struct pickle_value *v;

	if (index >= m->n_memo)
		return pickle_bad(m, "a memo that was never stored");
	v = pickle_push(m, (uint8_t)(m->memo[index] >> MEMO_ID_BITS));
	v->id = m->memo[index] & ((1u << MEMO_ID_BITS) - 1);
	return 0;
}

static int op_mark(struct machine *m)
{
	if (m->n_marks >= DEPTH_MAX)
		return pickle_bad(m, "too deeply nested");
	m->mark = xgrow(m->mark, m->n_marks, &m->cap_marks, sizeof(*m->mark));
	m->mark[m->n_marks++] = m->n;
	return 0;
}

/* Can this many values be popped? Not from below a mark. */
static bool pickle_has(const struct machine *m, size_t n)
{
	size_t floor = m->n_marks ? m->mark[m->n_marks - 1] : 0;

	return m->n - floor >= n;
}

/* The values above the last mark, which is removed; they stay in place until the next push. */
static bool above_mark(struct machine *m, size_t *first, size_t *n)
{
	if (!m->n_marks)
		return false;
	*first = m->mark[--m->n_marks];
	*n = m->n - *first;
	return true;
}

static int op_tuple(struct machine *m, size_t first, size_t n)
{
	struct pickle_value v = {.kind = V_OTHER};
	int rc = m->sink->tuple(m->it, m->stack + first, n, &v);

	m->n = first;
	*pickle_push(m, V_OTHER) = v;
	return rc;
}

static int op_tuple_fixed(struct machine *m, size_t n)
{
	return pickle_has(m, n) ? op_tuple(m, m->n - n, n) : pickle_bad(m, "a tuple without values");
}

static int op_tuple_mark(struct machine *m)
{
	size_t first, n;

	return above_mark(m, &first, &n) ? op_tuple(m, first, n) : pickle_bad(m, "no mark");
}

static int op_into(struct machine *m, uint8_t kind, size_t first, size_t n)
{
	const struct pickle_value *to;

	m->n = first;
	if (!pickle_has(m, 1))
		return pickle_bad(m, "values without a container");
	to = &m->stack[first - 1];
	if (to->kind == V_OTHER)	/* a tuple or a value that is not understood */
		return pickle_bad(m, "values added to something other than a list or dictionary");
	if (to->kind != kind)
		return pickle_bad(m, kind == V_DICT ? "keys set on something other than a dictionary"
						    : "values appended to something other than a list");
	return kind == V_DICT ? m->sink->set(m->it, to->id, &m->stack[first], n)
			      : m->sink->append(m->it, to->id, &m->stack[first], n);
}

static int op_into_fixed(struct machine *m, uint8_t kind, size_t n)
{
	return pickle_has(m, n) ? op_into(m, kind, m->n - n, n) : pickle_bad(m, "values are missing");
}

static int op_into_mark(struct machine *m, uint8_t kind)
{
	size_t first, n;

	if (!above_mark(m, &first, &n))
		return pickle_bad(m, "no mark");
	if (kind == V_DICT && n % 2)
		return pickle_bad(m, "a key without a value");
	return op_into(m, kind, first, n);
}

static int op_pop(struct machine *m)
{
	if (!pickle_has(m, 1))
		return pickle_bad(m, "nothing to drop");
	m->n--;
	return 0;
}

static int op_proto(struct machine *m)
{
	uint64_t version;

	if (!pickle_take(m, 1, &version))
		return pickle_cut(m);
	return version >= 2 && version <= 5 ? 0 : pickle_bad(m, "a pickle of an unknown protocol");
}

/* Opcodes with a number after them: how many bytes it has. */
static const uint8_t operand[256] = {
	[OP_BININT1] = 1,     [OP_LONG1] = 1,	    [OP_SHORT_BINUNICODE] = 1, [OP_BINPUT] = 1,
	[OP_BINGET] = 1,      [OP_BININT2] = 2,	    [OP_BININT] = 4,	       [OP_LONG4] = 4,
	[OP_BINUNICODE] = 4,  [OP_LONG_BINPUT] = 4, [OP_LONG_BINGET] = 4,      [OP_FRAME] = 8,
	[OP_BINUNICODE8] = 8,
};

static int pickle_step(struct machine *m, uint8_t op)
{
	size_t len = operand[op];
	uint64_t n = 0;

	if (len && !pickle_take(m, len, &n))
		return pickle_cut(m);
	switch (op) {
	case OP_BINGET:
	case OP_LONG_BINGET: return memo_get(m, n);
	case OP_BININT1:
	case OP_BININT2: return push_number(m, V_INT, (int64_t)n);
	case OP_BININT: return push_number(m, V_INT, (int32_t)(uint32_t)n);
	case OP_LONG1: return op_long(m, n);
	case OP_LONG4: return n <= INT32_MAX ? op_long(m, n) : pickle_bad(m, "a number of negative length");
	case OP_SHORT_BINUNICODE:
	case OP_BINUNICODE:
	case OP_BINUNICODE8: return op_string(m, n);
	case OP_EMPTY_DICT: return m->sink->dict(m->it, pickle_push(m, V_DICT));
	case OP_EMPTY_LIST: return m->sink->list(m->it, pickle_push(m, V_LIST));
	case OP_MARK: return op_mark(m);
	case OP_MEMOIZE: return memo_put(m, m->n_memo);
	case OP_BINPUT:
	case OP_LONG_BINPUT: return memo_put(m, n);
	case OP_SETITEMS: return op_into_mark(m, V_DICT);
	case OP_APPENDS: return op_into_mark(m, V_LIST);
	case OP_SETITEM: return op_into_fixed(m, V_DICT, 2);
	case OP_APPEND: return op_into_fixed(m, V_LIST, 1);
	case OP_TUPLE1: return op_tuple_fixed(m, 1);
	case OP_TUPLE2: return op_tuple_fixed(m, 2);
	case OP_TUPLE3: return op_tuple_fixed(m, 3);
	case OP_TUPLE: return op_tuple_mark(m);
	case OP_EMPTY_TUPLE: return op_tuple(m, m->n, 0);
	case OP_NONE: return push_number(m, V_NONE, 0);
	case OP_NEWTRUE:
	case OP_NEWFALSE: return push_number(m, V_BOOL, op == OP_NEWTRUE);
	case OP_BINFLOAT: return op_float(m);
	case OP_PROTO: return op_proto(m);
	case OP_POP: return op_pop(m);
	case OP_FRAME: return 0;	/* only a hint for reading ahead */
	default: return pickle_refuse(m, op);
	}
}

static int pickle_run(struct machine *m)
{
	uint8_t op;
	int rc;

	for (;;) {
		m->op_at = input_offset(m->in);
		if (!input_need(m->in, 1))
			return pickle_cut(m);
		op = *m->in->at++;
		if (op == OP_STOP)
			return m->n && !m->n_marks ? m->sink->root(m->it, &m->stack[m->n - 1])
						   : pickle_bad(m, "an unexpected end");
		/* two thirds of all opcodes */
		rc = op == OP_BINGET && m->in->at < m->in->end ? memo_get(m, *m->in->at++) : pickle_step(m, op);
		if (rc == 0 && m->n > STACK_FREE + m->op_at / STACK_BYTES)
			rc = pickle_bad(m, "too many values without a container");
		if (rc != 0)
			return rc;
	}
}

int pickle_read(struct pickle_input *in, const struct pickle_sink *sink, void *it, struct err *e)
{
	struct machine m = {.in = in, .sink = sink, .it = it, .err = e};
	int rc = pickle_run(&m);

	free(m.stack);
	free(m.mark);
	free(m.memo);
	return rc;
}
