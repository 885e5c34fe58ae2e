/* SPDX-License-Identifier: Apache-2.0
 * Reads CPython's bytecode (see rec_python_bytecode.h).
 */
#include <string.h>

#include "rec_python_bytecode.h"

struct py_bytecode py_bytecode;

#define IS(name, words) (__builtin_strcmp(#name, words) == 0)
#define STARTS(name, words) (__builtin_strncmp(#name, words, sizeof(words) - 1) == 0)
#define IF(name, value)                                                                                    \
	(IS(name, "POP_JUMP_IF_" value) || IS(name, "POP_JUMP_FORWARD_IF_" value) ||                       \
	 IS(name, "POP_JUMP_BACKWARD_IF_" value) || IS(name, "INSTRUMENTED_POP_JUMP_IF_" value))
#define ROLE_OF_EXCEPTIONS(name)                                                                           \
	(IS(name, "LOAD_NAME") ? ROLE_LOAD_NAME : STARTS(name, "LOAD_GLOBAL") ? ROLE_LOAD_GLOBAL :            \
	 STARTS(name, "LOAD_ATTR") ? ROLE_LOAD_ATTR : STARTS(name, "LOAD_METHOD") ? ROLE_LOAD_METHOD :        \
	 STARTS(name, "LOAD_") ? ROLE_LOAD_OTHER : IS(name, "BUILD_TUPLE") ? ROLE_BUILD_TUPLE :               \
	 IS(name, "CHECK_EXC_MATCH") || IS(name, "CHECK_EG_MATCH") || IS(name, "JUMP_IF_NOT_EXC_MATCH") ? ROLE_MATCH : \
	 IS(name, "WITH_EXCEPT_START") ? ROLE_WITH : IS(name, "POP_TOP") ? ROLE_POP :                         \
	 IS(name, "COPY") || IS(name, "DUP_TOP") ? ROLE_COPY : STARTS(name, "CALL") ? ROLE_CALL :             \
	 IS(name, "POP_EXCEPT") ? ROLE_POP_EXCEPT : ROLE_NONE)
#define ROLE(name)                                                                                         \
	(IF(name, "TRUE") ? ROLE_IF_TRUE : IF(name, "FALSE") ? ROLE_IF_FALSE : IS(name, "UNARY_NOT") ? ROLE_NOT : \
	 STARTS(name, "TO_BOOL") ? ROLE_KEEP : IS(name, "RAISE_VARARGS") ? ROLE_RAISE : ROLE_OF_EXCEPTIONS(name))

#define FIRST_MINOR	9u
#define LAST_MINOR	13u
static const struct op ops[LAST_MINOR - FIRST_MINOR + 1][256] = {
#define PY_OP(minor, number, name, caches, effect, times, form, jumped, kind) \
	[minor - FIRST_MINOR][number] = {effect, times, jumped, FORM_##form, KIND_##kind, caches, ROLE(name)},
#include "kb/python_opcodes.def"
};

bool code_decode(const struct code_view *v, uint32_t start, struct instruction *i)
{
	uint32_t arg = 0, at = start;

	for (;; at++) {
		if (at >= v->n)
			return false;
		i->op = &py_bytecode.op[v->bytes[2 * at]];
		arg = arg << 8 | v->bytes[2 * at + 1];
		if (i->op->kind != KIND_EXT)
			break;
	}
	i->start = start;
	i->at = at;
	i->arg = arg;
	i->next = at + 1 + i->op->caches;
	switch (i->op->kind) {
	case KIND_FOR:
	case KIND_FWD:
	case KIND_GO_FWD:
	case KIND_TRY:
		i->target = i->next + (py.l.minor == 9 ? arg / 2 : arg);
		break;
	case KIND_BACK:
	case KIND_GO_BACK:
	case KIND_AGAIN:
		i->target = i->next - arg;
		break;
	case KIND_ABS:
	case KIND_GO_ABS:
		i->target = py.l.minor == 9 ? arg / 2 : arg;
		break;
	default:
		i->target = v->n;
	}
	return i->op->kind != KIND_UNKNOWN && i->target <= v->n;
}

/* The instruction at `unit` with its EXTENDED_ARGs. */
bool code_decode_whole(const struct code_view *v, uint32_t unit, struct instruction *i)
{
	for (int n = 0; n < 3 && unit && unit <= v->n && py_bytecode.op[v->bytes[2 * unit - 2]].kind == KIND_EXT; n++)
		unit--;
	return code_decode(v, unit, i);
}

/* The code unit of an instruction; UINT32_MAX: not started. */
uint32_t code_unit(const char *code, uint64_t instr)
{
	if (py.l.instr_kind == INSTR_POINTER)
		instr = (instr - (uintptr_t)(code + py.l.bytecode)) / 2;
	else
		instr = py.l.instr_kind == INSTR_BYTES ? (uint32_t)instr / 2 : (uint32_t)instr;
	return instr < UNITS_MAX ? (uint32_t)instr : UINT32_MAX;
}

static uint32_t handler_number(const uint8_t **p, const uint8_t *end)
{
	uint32_t v = 0;

	while (*p < end) {
		uint8_t b = *(*p)++;

		v = v << 6 | (b & 63);
		if (!(b & 64))
			break;
	}
	return v;
}

bool code_next_handler(const struct code_view *v, const uint8_t **p, struct handler *h)
{
	const uint8_t *end = v->handlers + v->n_handlers;
	uint32_t depth;

	if (!v->handlers || *p >= end)
		return false;
	h->from = handler_number(p, end);
	h->to = h->from + handler_number(p, end);
	h->target = handler_number(p, end);
	depth = handler_number(p, end);
	h->depth = depth >> 1;
	h->lasti = depth & 1;
	return true;
}

bool code_view_of(const char *code, struct code_view *v)
{
	int64_t size;

	memset(v, 0, sizeof(*v));
	v->code = code;
	if (py.l.minor >= 11) {
		const char *table;

		memcpy(&size, code + PY_CODE_UNITS, sizeof(size));
		v->bytes = (const uint8_t *)code + py.l.bytecode;
		memcpy(&table, code + py_bytecode.exceptions, sizeof(table));
		if (table) {
			int64_t bytes;

			memcpy(&bytes, table + PY_BYTES_SIZE, sizeof(bytes));
			v->handlers = (const uint8_t *)table + PY_BYTES_DATA;
			v->n_handlers = bytes > 0 && bytes < (1 << 20) ? (uint32_t)bytes : 0;
		}
	} else {
		const char *bytes;

		memcpy(&bytes, code + py_bytecode.bytes, sizeof(bytes));
		memcpy(&size, bytes + PY_BYTES_SIZE, sizeof(size));
		size /= 2;
		v->bytes = (const uint8_t *)bytes + PY_BYTES_DATA;
	}
	v->n = size > 0 && size < (int64_t)UNITS_MAX ? (uint32_t)size : 0;
	return v->n;
}

uint32_t code_locals(const char *code)
{
	int32_t n;

	memcpy(&n, code + py_bytecode.n_locals, sizeof(n));
	return n > 0 && n < 30000 ? (uint32_t)n : 0;
}

void bytecode_start(bool on)
{
	static const uint16_t where[][9] = {
#define LOCALS(minor, ...) {minor, __VA_ARGS__},
#include "kb/python_layouts.def"
	};
	const uint16_t *w;

	py_bytecode.op = NULL;
	if (!on || py.l.minor < FIRST_MINOR || py.l.minor > LAST_MINOR)
		return;
	w = where[py.l.minor - FIRST_MINOR];
	py_bytecode.locals = w[1];
	py_bytecode.n_locals = w[2];
	py_bytecode.stack = w[3];
	py_bytecode.exceptions = w[4];
	py_bytecode.bytes = w[5];
	py_bytecode.names = w[8];
	py_bytecode.op = ops[py.l.minor - FIRST_MINOR];
}
