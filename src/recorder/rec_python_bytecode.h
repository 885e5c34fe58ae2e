/* SPDX-License-Identifier: Apache-2.0
 * Code objects as instructions: opcodes, arguments, jumps, exception tables. Offsets are in code units (two bytes).
 */
#ifndef CUWHY_REC_PYTHON_BYTECODE_H
#define CUWHY_REC_PYTHON_BYTECODE_H

#include "rec_python.h"

#define UNITS_MAX	60000u

enum form { FORM_NONE, FORM_ARG, FORM_BIT, FORM_ONES, FORM_FOUR, FORM_THREE, FORM_EX };
enum kind { KIND_UNKNOWN, KIND_PLAIN, KIND_EXT, KIND_FOR, KIND_FWD, KIND_BACK, KIND_ABS, KIND_GO_FWD, KIND_GO_BACK,
	KIND_GO_ABS,
	KIND_TRY,
	KIND_AGAIN,
	KIND_END,
	KIND_ANEXT,
	KIND_EXC,
	KIND_STORE,
	KIND_STORE_LOAD,
	KIND_STORE_STORE
};

/* What an instruction makes of a truth value, and what it has to do with exceptions. LOAD_: the name of a variable or an attribute. */
enum role {
	ROLE_NONE,
	ROLE_NOT,
	ROLE_KEEP,
	ROLE_IF_TRUE,
	ROLE_IF_FALSE,
	ROLE_RAISE,
	ROLE_LOAD_NAME,
	ROLE_LOAD_GLOBAL,
	ROLE_LOAD_ATTR,
	ROLE_LOAD_METHOD,
	ROLE_LOAD_OTHER,
	ROLE_BUILD_TUPLE,
	ROLE_MATCH,
	ROLE_WITH,
	ROLE_POP,
	ROLE_COPY,
	ROLE_CALL,
	ROLE_POP_EXCEPT
};

struct op { int8_t effect, times, jumped; uint8_t form, kind, caches, role; };

/* Of this Python. `op` NULL: it is not known; offsets in frames and code objects. */
struct py_bytecode {
	const struct op *op;
	uint16_t locals, n_locals, stack, exceptions, bytes, names;
};
extern struct py_bytecode py_bytecode __attribute__((visibility("hidden")));
void bytecode_start(bool on);

struct code_view {
	const char *code;
	const uint8_t *bytes;
	uint32_t n;			/* units */
	const uint8_t *handlers;	/* the exception table, since 3.11 */
	uint32_t n_handlers;		/* bytes */
};
bool code_view_of(const char *code, struct code_view *v);
uint32_t code_locals(const char *code);		/* variables in a frame, before its stack */

struct instruction {
	uint32_t start, at, next;	/* start: with its EXTENDED_ARGs */
	uint32_t arg, target;
	const struct op *op;
};
bool code_decode(const struct code_view *v, uint32_t start, struct instruction *i);
bool code_decode_whole(const struct code_view *v, uint32_t unit, struct instruction *i);	/* `unit` may be behind EXTENDED_ARGs */

struct handler { uint32_t from, to, target, depth; bool lasti; };
bool code_next_handler(const struct code_view *v, const uint8_t **p, struct handler *h);	/* *p begins as v->handlers */

#endif
