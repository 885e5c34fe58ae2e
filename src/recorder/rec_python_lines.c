/* SPDX-License-Identifier: Apache-2.0
 * From an instruction to its line: CPython's three table formats, as it stores them in code objects.
 */
#include <string.h>

#include "rec_python.h"

#define BYTES_SIZE 16	/* PyBytesObject: length, then data */
#define BYTES_DATA 32

static int64_t read_varint(const uint8_t **p, const uint8_t *end)
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

static int64_t read_signed(const uint8_t **p, const uint8_t *end)
{
	int64_t v = read_varint(p, end);

	return v & 1 ? -(v >> 1) : v >> 1;
}

/* 3.11 and later: entries with a kind and a length in code units; most do not change the line. */
static int64_t line_311(const uint8_t *p, const uint8_t *end, int64_t line, int64_t lasti)
{
	int64_t at_byte = 0;

	while (p < end) {
		unsigned kind = (*p >> 3) & 15, units = (*p & 7) + 1u;

		p++;
		if (kind == 14) {
			line += read_signed(&p, end);
			read_varint(&p, end);
			read_varint(&p, end);
			read_varint(&p, end);
		} else if (kind == 13) {
			line += read_signed(&p, end);
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

static int64_t line_310(const uint8_t *p, const uint8_t *end, int64_t line, int64_t lasti)
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

static int64_t line_39(const uint8_t *p, const uint8_t *end, int64_t line, int64_t lasti)
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

uint32_t python_line(const struct py_layout *l, const void *code, uint64_t instr)
{
	const char *c = code, *table;
	int64_t lasti, size, line;
	const uint8_t *p;
	int32_t first;

	memcpy(&first, c + l->first_line, sizeof(first));
	memcpy(&table, c + l->line_table, sizeof(table));
	if (!table)
		return (uint32_t)first;
	memcpy(&size, table + BYTES_SIZE, sizeof(size));
	if (size < 0 || size > (64 << 20))
		return (uint32_t)first;
	p = (const uint8_t *)table + BYTES_DATA;
	if (l->instr_kind == INSTR_POINTER)
		lasti = (int64_t)(instr - (uint64_t)(uintptr_t)(c + l->bytecode));
	else
		lasti = (int32_t)instr * (l->instr_kind == INSTR_UNITS ? 2 : 1);
	if (lasti < 0)		/* not started yet */
		return (uint32_t)first;
	if (l->minor >= 11)
		line = line_311(p, p + size, first, lasti);
	else
		line = l->minor == 10 ? line_310(p, p + size, first, lasti) : line_39(p, p + size, first, lasti);
	return line > 0 ? (uint32_t)line : (uint32_t)first;
}
