/* SPDX-License-Identifier: Apache-2.0
 * Where CPython keeps things, and how it stores line numbers: for the recorder, which reads its own process, and for
 * `cuwhy explain --pid`, which reads another one. The numbers are in kb/python_layouts.def.
 */
#ifndef CUWHY_PYTHON_H
#define CUWHY_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum instr_kind { INSTR_BYTES, INSTR_UNITS, INSTR_POINTER };

/* Offsets in bytes; measured from the headers of each version. */
struct py_layout {		/* compared as bytes: no padding */
	uint16_t minor;
	uint16_t via_cframe;
	uint16_t instr_kind;	/* enum instr_kind */
	uint16_t first_frame, cframe_frame;
	uint16_t previous, code, instr, owner;
	uint16_t first_line, filename, name, line_table, bytecode;
	uint16_t ascii_data, compact_data;
	uint16_t shim_owner;	/* this owner and above are not Python code; 255 = there are none */
	uint16_t check_type;	/* a frame may run something other than a code object */
};

enum {
#define OBJECT(name, offset) PY_##name = (offset),
#include "kb/python_layouts.def"
};
#define PY_OWNER_GENERATOR 1	/* of a frame, since 3.11 */
#define PY_TABLE_MAX	(64 << 20)	/* a table of lines is never longer */

/* Since 3.13 CPython publishes where its fields are, at the beginning of _PyRuntime: "xdebugpy", version, free-threaded, then
 * groups of 64-bit words, some of which have more words in 3.14. */
#define PY_DEBUG_WORDS	64
enum py_debug { PY_DEBUG_OK, PY_DEBUG_UNKNOWN, PY_DEBUG_FREE_THREADED };

struct py_debug_groups { const uint64_t *runtime, *interpreter, *thread, *frame, *code; };

static inline enum py_debug py_debug_groups(const uint64_t d[PY_DEBUG_WORDS], unsigned minor, struct py_debug_groups *g)
{
	if (memcmp(d, "xdebugpy", 8) != 0)
		return PY_DEBUG_UNKNOWN;
	if (d[2])
		return PY_DEBUG_FREE_THREADED;
	g->runtime = d + 3;
	g->interpreter = g->runtime + 3;
	g->thread = g->interpreter + (minor == 13 ? 13 : 16);
	g->frame = g->thread + 9;
	g->code = g->frame + (minor == 13 ? 6 : 8);
	return PY_DEBUG_OK;
}

/* Puts what CPython says about itself in the place of what the table says. */
static inline enum py_debug py_debug_layout(struct py_layout *l, const uint64_t d[PY_DEBUG_WORDS])
{
	struct py_debug_groups g;
	enum py_debug rc = py_debug_groups(d, l->minor, &g);

	if (rc)
		return rc;
	if (g.thread[4] < 16 || g.thread[4] > 400 || g.frame[1] > 200 || g.code[1] > 400 || g.code[9] > 600)
		return PY_DEBUG_UNKNOWN;
	l->first_frame = (uint16_t)g.thread[4];
	l->previous = (uint16_t)g.frame[1];
	l->code = (uint16_t)g.frame[2];
	l->instr = (uint16_t)g.frame[3];
	l->owner = (uint16_t)g.frame[5];
	l->filename = (uint16_t)g.code[1];
	l->name = (uint16_t)g.code[2];
	l->line_table = (uint16_t)g.code[4];
	l->first_line = (uint16_t)g.code[5];
	l->bytecode = (uint16_t)g.code[9];
	return PY_DEBUG_OK;
}

static inline int64_t py_varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = 0;
	unsigned shift = 0;

	while (*p < end) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 63) << shift;
		if (!(b & 64) || shift > 50)
			break;
		shift += 6;
	}
	return (int64_t)v;
}

static inline int64_t py_svarint(const uint8_t **p, const uint8_t *end)
{
	int64_t v = py_varint(p, end);

	return v & 1 ? -(v >> 1) : v >> 1;
}

/* 3.11 and later: entries with a kind and a length in code units; most do not change the line. */
static inline int64_t py_line_311(const uint8_t *p, const uint8_t *end, int64_t line, int64_t lasti)
{
	int64_t at_byte = 0;

	while (p < end) {
		unsigned kind = (*p >> 3) & 15, units = (*p & 7) + 1u;

		p++;
		if (kind == 14) {
			line += py_svarint(&p, end);
			py_varint(&p, end);
			py_varint(&p, end);
			py_varint(&p, end);
		} else if (kind == 13) {
			line += py_svarint(&p, end);
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10;
			p += 2;
		} else if (kind < 10) {
			p += 1;
		}
		at_byte += 2 * (int64_t)units;
		if (lasti < at_byte)
			break;
	}
	return line;
}

static inline int64_t py_line_310(const uint8_t *p, const uint8_t *end, int64_t line, int64_t lasti)
{
	int64_t at_byte = 0, best = line;

	for (; p + 1 < end; p += 2) {
		int8_t delta = (int8_t)p[1];

		if (delta != -128)
			best = line += delta;
		at_byte += p[0];
		if (lasti < at_byte)
			break;
	}
	return best;
}

static inline int64_t py_line_39(const uint8_t *p, const uint8_t *end, int64_t line, int64_t lasti)
{
	int64_t at_byte = 0;

	for (; p + 1 < end; p += 2) {
		at_byte += p[0];
		if (at_byte > lasti)
			break;
		line += (int8_t)p[1];
	}
	return line;
}

/* The instruction of a frame as bytes from the start of its code; negative: the frame has not started. `code`: the address of the code
 * object. */
static inline int64_t py_lasti(const struct py_layout *l, uint64_t code, uint64_t instr)
{
	if (l->instr_kind == INSTR_POINTER)
		return (int64_t)(instr - (code + l->bytecode));
	return (int64_t)(int32_t)instr * (l->instr_kind == INSTR_UNITS ? 2 : 1);
}

/* The line of an instruction; `table` has `size` bytes. */
static inline uint32_t py_line(const struct py_layout *l, const uint8_t *table, size_t size, int32_t first, int64_t lasti)
{
	int64_t line;

	if (lasti < 0)		/* not started yet */
		return (uint32_t)first;
	if (l->minor >= 11)
		line = py_line_311(table, table + size, first, lasti);
	else
		line = l->minor == 10 ? py_line_310(table, table + size, first, lasti)
				      : py_line_39(table, table + size, first, lasti);
	return line > 0 ? (uint32_t)line : (uint32_t)first;
}

#endif
