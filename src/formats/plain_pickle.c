/* SPDX-License-Identifier: Apache-2.0
 * A pickle of plain data (see plain.h). Opcodes by their bytes, as Python's documentation of pickletools lists them.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "formats/plain.h"
#include "formats/plain_build.h"

#define STACK_MAX (1u << 20)
#define MEMO_MAX  (1u << 20)

struct machine {
	struct plain_build b;
	const unsigned char *at, *end, *start;
	struct plain **stack;	/* NULL = a mark */
	size_t n, room;
	struct plain **memo;
	size_t n_memo, room_memo;
	struct err *e;
};

static int bad(struct machine *m, const char *what)
{
	return err_set(m->e, -EBADMSG, "not a pickle of plain data: %s at byte %zu", what, (size_t)(m->at - m->start));
}

static bool take(struct machine *m, size_t n, uint64_t *value)
{
	unsigned char word[8] = {0};

	if ((size_t)(m->end - m->at) < n)
		return false;
	memcpy(word, m->at, n);
	memcpy(value, word, sizeof(*value));
	*value = le64toh(*value);
	m->at += n;
	return true;
}

static int push(struct machine *m, struct plain *p)
{
	if (m->n >= STACK_MAX)
		return bad(m, "too much on the stack");
	m->stack = xgrow(m->stack, m->n, &m->room, sizeof(*m->stack));
	m->stack[m->n++] = p;
	return 0;
}

static int push_new(struct machine *m, struct plain *p)
{
	return p ? push(m, p) : bad(m, "too many values");
}

static int push_number(struct machine *m, enum plain_kind kind, int64_t number)
{
	struct plain *p = plain_new(&m->b, kind);

	if (p)
		p->number = number;
	return push_new(m, p);
}

/* Two's complement; what does not fit 64 bits is cut. */
static int push_long(struct machine *m, uint64_t len)
{
	uint64_t value = 0;
	size_t n = len < 8 ? (size_t)len : 8;

	if ((uint64_t)(m->end - m->at) < len || !take(m, n, &value))
		return bad(m, "a number that is cut short");
	m->at += len - n;
	if (n && n < 8 && value >> (8 * n - 1))
		value |= ~0ull << (8 * n);
	return push_number(m, PLAIN_INT, (int64_t)value);
}

static int push_int(struct machine *m, size_t bytes)
{
	uint64_t value;

	if (!take(m, bytes, &value))
		return bad(m, "a number that is cut short");
	return push_number(m, PLAIN_INT, bytes == 4 ? (int32_t)value : (int64_t)value);
}

static int push_text(struct machine *m, size_t bytes)
{
	uint64_t len;
	int rc;

	if (!take(m, bytes, &len) || (uint64_t)(m->end - m->at) < len)
		return bad(m, "a text that is cut short");
	rc = push_new(m, plain_new_text(&m->b, (const char *)m->at, (size_t)len));
	m->at += len;
	return rc;
}

static int push_real(struct machine *m)
{
	struct plain *p = plain_new(&m->b, PLAIN_REAL);
	uint64_t bits;

	if (!take(m, 8, &bits))
		return bad(m, "a number that is cut short");
	bits = be64toh(htole64(bits));
	if (p)
		memcpy(&p->real, &bits, sizeof(bits));
	return push_new(m, p);
}

static bool top_mark(const struct machine *m, size_t *at)
{
	for (size_t i = m->n; i-- > 0;) {
		if (!m->stack[i]) {
			*at = i;
			return true;
		}
	}
	return false;
}

/* The values from `from` on become items of `to`. */
static int move_into(struct machine *m, struct plain *to, size_t from)
{
	for (size_t i = from; i < m->n; i++)
		if (!m->stack[i] || !plain_add(&m->b, to, m->stack[i]))
			return bad(m, "too many values");
	m->n = from;
	return 0;
}

/* APPENDS, SETITEMS: into the value below the mark. */
static int into_marked(struct machine *m, enum plain_kind kind)
{
	size_t mark;
	int rc;

	if (!top_mark(m, &mark) || !mark || !m->stack[mark - 1] || m->stack[mark - 1]->kind != kind ||
	    (kind == PLAIN_DICT && (m->n - mark - 1) % 2))
		return bad(m, "values that belong to nothing");
	rc = move_into(m, m->stack[mark - 1], mark + 1);
	if (rc == 0)
		m->n = mark;
	return rc;
}

static int into_below(struct machine *m, enum plain_kind kind, size_t n)
{
	if (m->n < n + 1 || !m->stack[m->n - n - 1] || m->stack[m->n - n - 1]->kind != kind)
		return bad(m, "a value that belongs to nothing");
	return move_into(m, m->stack[m->n - n - 1], m->n - n);
}

static int tuple(struct machine *m, size_t from)
{
	struct plain *p = plain_new(&m->b, PLAIN_LIST);
	int rc = p ? move_into(m, p, from) : bad(m, "too many values");

	return rc ? rc : push(m, p);
}

static int tuple_marked(struct machine *m)
{
	struct plain *p = plain_new(&m->b, PLAIN_LIST);
	size_t mark;
	int rc;

	if (!p || !top_mark(m, &mark))
		return bad(m, "a tuple without a beginning");
	rc = move_into(m, p, mark + 1);
	m->n = mark;
	return rc ? rc : push(m, p);
}

static int put(struct machine *m, uint64_t id)
{
	if (!m->n || !m->stack[m->n - 1] || id >= MEMO_MAX)
		return bad(m, "nothing to remember");
	while (m->n_memo <= id) {
		m->memo = xgrow(m->memo, m->n_memo, &m->room_memo, sizeof(*m->memo));
		m->memo[m->n_memo++] = NULL;
	}
	m->memo[id] = m->stack[m->n - 1];
	return 0;
}

static int get(struct machine *m, size_t bytes)
{
	uint64_t id;

	if (!take(m, bytes, &id) || id >= m->n_memo || !m->memo[id])
		return bad(m, "a value that was not remembered");
	return push(m, m->memo[id]);
}

static int put_next(struct machine *m, size_t bytes)
{
	uint64_t id = m->n_memo;

	if (bytes && !take(m, bytes, &id))
		return bad(m, "a number that is cut short");
	return put(m, id);
}

static int skip(struct machine *m, size_t bytes)
{
	uint64_t ignored;

	return take(m, bytes, &ignored) ? 0 : bad(m, "it is cut short");
}

/* 1: the end. */
static int step(struct machine *m, unsigned char op)
{
	switch (op) {
	case 0x80: return skip(m, 1);			/* PROTO */
	case 0x95: return skip(m, 8);			/* FRAME */
	case '.': return 1;				/* STOP */
	case '(': return push(m, NULL);			/* MARK */
	case 'N': return push_number(m, PLAIN_NONE, 0);
	case 0x88: return push_number(m, PLAIN_BOOL, 1);
	case 0x89: return push_number(m, PLAIN_BOOL, 0);
	case 'K': return push_int(m, 1);		/* BININT1 */
	case 'M': return push_int(m, 2);		/* BININT2 */
	case 'J': return push_int(m, 4);		/* BININT */
	case 0x8a: {					/* LONG1 */
		uint64_t n;

		return take(m, 1, &n) ? push_long(m, n) : bad(m, "it is cut short");
	}
	case 'G': return push_real(m);			/* BINFLOAT */
	case 'X': return push_text(m, 4);		/* BINUNICODE */
	case 0x8c: return push_text(m, 1);		/* SHORT_BINUNICODE */
	case 0x8d: return push_text(m, 8);		/* BINUNICODE8 */
	case ']': return push_new(m, plain_new(&m->b, PLAIN_LIST));
	case '}': return push_new(m, plain_new(&m->b, PLAIN_DICT));
	case ')': return push_new(m, plain_new(&m->b, PLAIN_LIST));
	case 'a': return into_below(m, PLAIN_LIST, 1);	/* APPEND */
	case 's': return into_below(m, PLAIN_DICT, 2);	/* SETITEM */
	case 'e': return into_marked(m, PLAIN_LIST);
	case 'u': return into_marked(m, PLAIN_DICT);
	case 0x85: return m->n < 1 ? bad(m, "a tuple without values") : tuple(m, m->n - 1);
	case 0x86: return m->n < 2 ? bad(m, "a tuple without values") : tuple(m, m->n - 2);
	case 0x87: return m->n < 3 ? bad(m, "a tuple without values") : tuple(m, m->n - 3);
	case 't': return tuple_marked(m);
	case 'q': return put_next(m, 1);		/* BINPUT */
	case 'r': return put_next(m, 4);		/* LONG_BINPUT */
	case 0x94: return put_next(m, 0);		/* MEMOIZE */
	case 'h': return get(m, 1);			/* BINGET */
	case 'j': return get(m, 4);			/* LONG_BINGET */
	default: return bad(m, "an opcode that plain data does not need, and that cuwhy does not execute,");
	}
}

struct plain *plain_from_pickle(const unsigned char *bytes, size_t n, struct pool *pool, struct err *e)
{
	struct machine m = {.b.pool = pool, .at = bytes, .end = bytes + n, .start = bytes, .e = e};
	struct plain *p = NULL;
	int rc = 0;

	while (rc == 0 && m.at < m.end)
		rc = step(&m, *m.at++);
	if (rc == 1 && m.n == 1)
		p = m.stack[0];
	if (!p && rc >= 0)
		bad(&m, "it has no end");
	free(m.stack);
	free(m.memo);
	return p;
}
