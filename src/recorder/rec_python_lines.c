/* SPDX-License-Identifier: Apache-2.0
 * From an instruction to its line, in our own process: the formats of the tables are in cuwhy/python.h.
 */
#include <string.h>

#include "rec_python.h"

uint32_t python_line(const struct py_layout *l, const void *code, uint64_t instr)
{
	const char *c = code, *table;
	int64_t size;
	int32_t first;

	memcpy(&first, c + l->first_line, sizeof(first));
	memcpy(&table, c + l->line_table, sizeof(table));
	if (!table)
		return (uint32_t)first;
	memcpy(&size, table + PY_BYTES_SIZE, sizeof(size));
	if (size < 0 || size > PY_TABLE_MAX)
		return (uint32_t)first;
	return py_line(l, (const uint8_t *)table + PY_BYTES_DATA, (size_t)size, first,
		       py_lasti(l, (uint64_t)(uintptr_t)c, instr));
}
