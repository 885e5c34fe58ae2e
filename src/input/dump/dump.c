/* SPDX-License-Identifier: Apache-2.0
 * Sections, rows and fields of a GPU core dump. Each access is checked against the file when it is made.
 */
#include <endian.h>
#include <string.h>

#include "input/dump/dump_priv.h"
#include "base/banned.h"

static const struct field {
	uint8_t table, off, bytes;
} fields[DUMP_FIELDS_END] = {
#define FIELD(table, name, off, bytes)	[DUMP_##table##_##name] = {DUMP_##table, off, bytes},
#include "input/dump/dump_fields.def"
};

struct bytes dump_bytes(struct dump *d, uint32_t section)
{
	struct bytes none = {NULL, 0};
	Elf64_Shdr s;

	if (section == 0 || !dump_section(d, section, &s) || s.sh_type == SHT_NOBITS || s.sh_size == 0 ||
	    !dump_inside(d, s.sh_offset, s.sh_size))
		return none;
	if (!d->read[section])
		d->read[section] = dump_read(d, s.sh_offset, s.sh_size, NULL) == 0 ? 1 : 2;
	if (d->read[section] != 1)
		return none;
	return (struct bytes){d->base + s.sh_offset, s.sh_size};
}

uint64_t dump_address(struct dump *d, uint32_t section)
{
	Elf64_Shdr s;

	return dump_section(d, section, &s) ? s.sh_addr : 0;
}

/* The stride is the section's entry size; drivers leave it 0 for the one row of the metadata. */
static uint64_t stride_of(const Elf64_Shdr *s)
{
	return s->sh_entsize ? s->sh_entsize : s->sh_size;
}

uint32_t dump_count(struct dump *d, uint32_t section)
{
	Elf64_Shdr s;
	uint64_t n;

	if (section == 0 || !dump_section(d, section, &s) || stride_of(&s) == 0)
		return 0;
	n = s.sh_size / stride_of(&s);
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

bool dump_row(struct dump *d, uint32_t section, uint32_t index, struct dump_row *row)
{
	struct bytes b;
	Elf64_Shdr s;
	uint64_t stride;

	*row = (struct dump_row){.dump = d};
	if (index >= dump_count(d, section) || !dump_section(d, section, &s))
		return false;
	b = dump_bytes(d, section);
	stride = stride_of(&s);
	if (!b.data || stride > UINT32_MAX || stride * index > b.len || stride > b.len - stride * index)
		return false;
	row->data = b.data + stride * index;
	row->len = (uint32_t)stride;
	row->table = dump_table_of(&s);
	row->section = section;
	row->index = index;
	return true;
}

size_t dump_sections(const struct dump *d, enum dump_table table, const uint32_t **sections)
{
	*sections = d->order + d->first[table];
	return d->first[table + 1] - d->first[table];
}

/* The first place in the list where a section does not come before this parent row. */
static size_t lower_bound(const struct dump *d, const uint32_t *list, size_t n, uint32_t link, uint64_t info)
{
	size_t from = 0, mid;
	Elf64_Shdr s;

	while (from < n) {
		mid = from + (n - from) / 2;
		if (dump_section(d, list[mid], &s) &&
		    (s.sh_link < link || (s.sh_link == link && s.sh_info < info)))
			from = mid + 1;
		else
			n = mid;
	}
	return from;
}

size_t dump_children(const struct dump_row *row, enum dump_table table, const uint32_t **sections)
{
	size_t n, from;

	*sections = NULL;
	if (!row->section)
		return 0;
	n = dump_sections(row->dump, table, sections);
	from = lower_bound(row->dump, *sections, n, row->section, row->index);
	*sections += from;
	return lower_bound(row->dump, *sections, n - from, row->section, (uint64_t)row->index + 1);
}

uint32_t dump_child(const struct dump_row *row, enum dump_table table)
{
	const uint32_t *sections;

	return dump_children(row, table, &sections) ? sections[0] : 0;
}

struct bytes dump_child_bytes(const struct dump_row *row, enum dump_table table)
{
	uint32_t section = dump_child(row, table);

	return section ? dump_bytes(row->dump, section) : (struct bytes){NULL, 0};
}

bool dump_parent(const struct dump_row *row, struct dump_row *parent)
{
	Elf64_Shdr s;

	*parent = (struct dump_row){.dump = row->dump};
	return row->section && dump_section(row->dump, row->section, &s) &&
	       dump_row(row->dump, s.sh_link, s.sh_info, parent);
}

bool dump_has(const struct dump_row *row, enum dump_field f)
{
	return row->section && row->table == fields[f].table &&
	       (uint32_t)fields[f].off + fields[f].bytes <= row->len;
}

uint64_t dump_get(const struct dump_row *row, enum dump_field f)
{
	uint64_t v = 0;

	if (dump_has(row, f))
		memcpy(&v, row->data + fields[f].off, fields[f].bytes);
	return le64toh(v);
}

const char *dump_string(const struct dump_row *row, enum dump_field f)
{
	uint64_t off = dump_get(row, f);
	struct bytes b;

	if (!dump_has(row, f) || !row->dump->strings)
		return "";
	b = dump_bytes(row->dump, row->dump->strings);
	if (!b.data || off >= b.len || !memchr(b.data + off, '\0', b.len - off))
		return "";
	return (const char *)b.data + off;
}

/* The cursor holds the place in the list of sections (high half) and the row in it (low half). */
bool dump_next(struct dump *d, enum dump_table table, size_t *cursor, struct dump_row *row)
{
	const uint32_t *sections;
	size_t n = dump_sections(d, table, &sections), at = *cursor >> 32;
	uint32_t index = (uint32_t)*cursor;

	for (; at < n; at++, index = 0)
		if (dump_row(d, sections[at], index, row)) {
			*cursor = (at << 32) | (index + 1);
			return true;
		}
	*cursor = at << 32;
	return false;
}
