/* SPDX-License-Identifier: Apache-2.0
 * Writes a Python pickle (see pickle_write.h).
 */
#include "show/pickle_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Opcodes of protocol 4, as Python's pickletools lists them. */
enum {
	OP_PROTO = 0x80, OP_STOP = '.', OP_MARK = '(', OP_MEMOIZE = 0x94, OP_BINGET = 'h', OP_LONG_BINGET = 'j',
	OP_EMPTY_LIST = ']', OP_APPENDS = 'e', OP_EMPTY_DICT = '}', OP_SETITEMS = 'u', OP_TUPLE2 = 0x86,
	OP_BININT1 = 'K', OP_BININT2 = 'M', OP_BININT = 'J', OP_LONG1 = 0x8a, OP_BINFLOAT = 'G',
	OP_NEWTRUE = 0x88, OP_NEWFALSE = 0x89, OP_SHORT_TEXT = 0x8c, OP_TEXT = 'X',
};

struct pickle_memo {
	const char *text;		/* NULL: an object with a key */
	struct pickle_key key;
};

static void op(struct pickle *p, int code)
{
	unsigned char c = (unsigned char)code;

	buf_add(&p->out, &c, 1);
}

/* An opcode and the low bytes of a number, little-endian. */
static void op_number(struct pickle *p, int code, uint64_t n, size_t bytes)
{
	unsigned char c[9] = {(unsigned char)code};

	for (size_t i = 0; i < bytes; i++)
		c[i + 1] = (unsigned char)(n >> (8 * i));
	buf_add(&p->out, c, bytes + 1);
}

void pickle_begin(struct pickle *p, size_t max)
{
	*p = (struct pickle){.n_memo = 0};
	buf_init(&p->out, max);
	op_number(p, OP_PROTO, 4, 1);
}

void pickle_end(struct pickle *p)
{
	op(p, OP_STOP);
}

void pickle_release(struct pickle *p)
{
	buf_release(&p->out);
	free(p->memo);
	map_release(&p->map);
	pool_release(&p->texts);
	*p = (struct pickle){0};
}

/* n as LONG1: `bytes` of two's complement. */
static void long_number(struct pickle *p, uint64_t n, size_t bytes)
{
	op_number(p, OP_LONG1, bytes, 1);
	for (size_t i = 0; i < bytes; i++)
		op(p, i < 8 ? (int)(n >> (8 * i) & 0xff) : 0);
}

void pickle_uint(struct pickle *p, uint64_t n)
{
	size_t bytes = 4;

	if (n < 0x100) {
		op_number(p, OP_BININT1, n, 1);
	} else if (n < 0x10000) {
		op_number(p, OP_BININT2, n, 2);
	} else if (n < 0x80000000u) {
		op_number(p, OP_BININT, n, 4);
	} else {
		/* the highest bit is the sign: a number that has it set needs one byte more */
		while (bytes < 9 && n >> (8 * bytes - 1))
			bytes++;
		long_number(p, n, bytes);
	}
}

void pickle_int(struct pickle *p, int64_t n)
{
	if (n >= 0)
		pickle_uint(p, (uint64_t)n);
	else if (n >= INT32_MIN)
		op_number(p, OP_BININT, (uint64_t)n, 4);
	else
		long_number(p, (uint64_t)n, 8);
}

void pickle_bool(struct pickle *p, bool yes)
{
	op(p, yes ? OP_NEWTRUE : OP_NEWFALSE);
}

void pickle_float(struct pickle *p, double x)
{
	uint64_t n;

	memcpy(&n, &x, sizeof(n));
	op_number(p, OP_BINFLOAT, __builtin_bswap64(n), 8);	/* the only big-endian number */
}

static bool memo_same(const void *list, uint32_t i, const void *key)
{
	const struct pickle_memo *m = (const struct pickle_memo *)list + i, *want = key;

	if (m->text && want->text)
		return strcmp(m->text, want->text) == 0;
	return !m->text && !want->text && m->key.a == want->key.a && m->key.b == want->key.b;
}

/* If it was written before, writes a reference; otherwise gives it the next number, and the caller writes it. */
static bool written_before(struct pickle *p, uint64_t hash, const struct pickle_memo *one)
{
	uint32_t n = (uint32_t)p->n_memo, number = map_put(&p->map, hash, memo_same, p->memo, one, n);

	if (number != n) {
		op_number(p, number < 256 ? OP_BINGET : OP_LONG_BINGET, number, number < 256 ? 1 : 4);
		return true;
	}
	p->memo = xgrow(p->memo, p->n_memo, &p->cap_memo, sizeof(*p->memo));
	p->memo[p->n_memo++] = *one;
	return false;
}

void pickle_text(struct pickle *p, const char *text)
{
	size_t len = strlen(text), start;

	if (written_before(p, map_hash_bytes(0, text, len), &(struct pickle_memo){.text = text}))
		return;
	p->memo[p->n_memo - 1].text = pool_strdup(&p->texts, text);	/* the caller's may be gone when it is compared */
	op_number(p, len < 256 ? OP_SHORT_TEXT : OP_TEXT, len, len < 256 ? 1 : 4);
	start = p->out.len;
	buf_add(&p->out, text, len);
	if (!p->out.full)
		str_make_utf8(p->out.data + start);
	op(p, OP_MEMOIZE);
}

void pickle_list(struct pickle *p)
{
	op(p, OP_EMPTY_LIST);
	op(p, OP_MARK);
}

void pickle_list_end(struct pickle *p)
{
	op(p, OP_APPENDS);
}

/* In batches, as Python does: some readers pass the items of one batch as arguments of one call. */
void pickle_list_item(struct pickle *p, size_t i)
{
	if (i == 0 || i % 1000)
		return;
	op(p, OP_APPENDS);
	/* the list is on top again: what follows is added to it */
	op(p, OP_MARK);
}

void pickle_dict(struct pickle *p)
{
	op(p, OP_EMPTY_DICT);
	op(p, OP_MARK);
}

void pickle_dict_end(struct pickle *p)
{
	op(p, OP_SETITEMS);
}

void pickle_pair_end(struct pickle *p)
{
	op(p, OP_TUPLE2);
}

static bool shared(struct pickle *p, struct pickle_key key, int code)
{
	if (written_before(p, map_hash(key.a + map_hash(key.b)), &(struct pickle_memo){.key = key}))
		return false;
	op(p, code);
	op(p, OP_MEMOIZE);
	op(p, OP_MARK);
	return true;
}

bool pickle_shared_list(struct pickle *p, struct pickle_key key)
{
	return shared(p, key, OP_EMPTY_LIST);
}

bool pickle_shared_dict(struct pickle *p, struct pickle_key key)
{
	return shared(p, key, OP_EMPTY_DICT);
}
