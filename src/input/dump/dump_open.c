/* SPDX-License-Identifier: Apache-2.0
 * Opens a GPU core dump: checks its header, reads its tables, lists its sections by type and parent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "input/dump/dump_priv.h"
#include "base/banned.h"

#define RUN_GAP		4096	/* read over a hole of this size sooner than call the kernel again */

/* Large and rarely needed: read on first use. Everything else is read when the dump is opened. */
static bool is_lazy(uint32_t table)
{
	return table == DUMP_IMAGE || table == DUMP_ELF_IMAGE || table == DUMP_GLOBAL ||
	       table == DUMP_MANAGED || table == DUMP_LOCAL || table == DUMP_SHARED;
}

static int check_header(const struct dump *d, Elf64_Ehdr *h, struct err *e)
{
	if (d->len < sizeof(*h))
		return err_set(e, -EBADMSG, "not a GPU core dump: only %zu bytes", d->len);
	memcpy(h, d->base, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(e, -EINVAL, "not a GPU core dump: not a 64-bit ELF file");
	if (h->e_machine != DUMP_MACHINE)
		return err_set(e, -EINVAL, "not a GPU core dump: ELF machine %u, expected %d%s",
			       h->e_machine, DUMP_MACHINE,
			       h->e_type == ET_CORE ? " (a core dump of the CPU?)" : "");
	if (h->e_type != ET_CORE)
		return err_set(e, -EINVAL, "not a GPU core dump: GPU code (a cubin), not a core file");
	if (h->e_shoff == 0 || h->e_shoff >= d->len)
		return err_set(e, -EBADMSG, "the GPU core dump is cut short: its tables should begin at "
			       "byte %llu, it ends at %zu", (unsigned long long)h->e_shoff, d->len);
	if (h->e_shentsize < sizeof(Elf64_Shdr))
		return err_set(e, -EBADMSG, "the GPU core dump is damaged: section headers of %u bytes",
			       h->e_shentsize);
	return 0;
}

/* More than 65,279 sections do not fit the header: then the count is in section 0. */
static int read_headers(struct dump *d, const Elf64_Ehdr *h, struct err *e)
{
	uint64_t n = h->e_shnum, room;
	Elf64_Shdr zero;
	int rc;

	d->shoff = h->e_shoff;
	d->shstride = h->e_shentsize;
	rc = dump_read(d, d->shoff, sizeof(zero), e);
	if (rc != 0)
		return rc;
	memcpy(&zero, d->base + d->shoff, sizeof(zero));
	if (n == 0)
		n = zero.sh_size;
	room = (d->len - d->shoff) / d->shstride;
	if (n == 0 || n > room || n > UINT32_MAX)
		return err_set(e, -EBADMSG, "the GPU core dump is cut short: room for %llu of %llu sections",
			       (unsigned long long)room, (unsigned long long)n);
	d->n_sections = (uint32_t)n;
	return dump_read(d, d->shoff, n * d->shstride, e);
}

/* The strings of the tables are in the string table that does not hold the names of the sections. */
static void find_strings(struct dump *d, const Elf64_Ehdr *h)
{
	uint32_t i, names = h->e_shstrndx;
	Elf64_Shdr s;

	if (names == SHN_XINDEX && dump_section(d, 0, &s))
		names = s.sh_link;
	for (i = 1; i < d->n_sections && !d->strings; i++)
		if (i != names && dump_section(d, i, &s) && s.sh_type == SHT_STRTAB)
			d->strings = i;
	if (!d->strings && names < d->n_sections)
		d->strings = names;
}

/* Neighbouring tables are read together: a dump has one small section per lane and kind. */
static int read_tables(struct dump *d, struct err *e)
{
	uint64_t from = 0, to = 0;
	Elf64_Shdr s;
	uint32_t i, table;
	int rc = 0;

	for (i = 1; i < d->n_sections && rc == 0; i++) {
		if (!dump_section(d, i, &s))
			continue;
		table = dump_table_of(&s);
		if ((!table && s.sh_type != SHT_STRTAB) || s.sh_size == 0)
			continue;
		if (!dump_inside(d, s.sh_offset, s.sh_size))
			return err_set(e, -EBADMSG, "the GPU core dump is cut short: section %u ends beyond "
				       "its %zu bytes", i, d->len);
		if (is_lazy(table))
			continue;
		d->read[i] = 1;
		if (s.sh_offset >= from && s.sh_offset <= to + RUN_GAP) {
			if (s.sh_offset + s.sh_size > to)
				to = s.sh_offset + s.sh_size;
			continue;
		}
		rc = dump_read(d, from, to - from, e);
		from = s.sh_offset;
		to = s.sh_offset + s.sh_size;
	}
	return rc ? rc : dump_read(d, from, to - from, e);
}

struct key {
	uint32_t link, info, section;
};

static int by_parent(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->info != y->info)
		return x->info < y->info ? -1 : 1;
	return x->section < y->section ? -1 : x->section > y->section;
}

static struct key key_of(const struct dump *d, uint32_t section)
{
	struct key k = {.section = section};
	Elf64_Shdr s;

	if (dump_section(d, section, &s)) {
		k.link = s.sh_link;
		k.info = s.sh_info;
	}
	return k;
}

/* Drivers write sections in the order of their parents; a file that does not is put in order. */
static void sort_type(struct dump *d, uint32_t first, uint32_t end)
{
	struct key *keys, last = {0}, k;
	uint32_t i;

	for (i = first; i < end; i++, last = k) {
		k = key_of(d, d->order[i]);
		if (by_parent(&last, &k) > 0)
			break;
	}
	if (i == end)
		return;
	keys = xcalloc(end - first, sizeof(*keys));
	for (i = first; i < end; i++)
		keys[i - first] = key_of(d, d->order[i]);
	qsort(keys, end - first, sizeof(*keys), by_parent);
	for (i = first; i < end; i++)
		d->order[i] = keys[i - first].section;
	free(keys);
}

/* Lists the sections of each type, in two passes over the headers. */
static void index_sections(struct dump *d)
{
	uint32_t next[DUMP_TABLES_END] = {0}, i, t, n = 0;
	Elf64_Shdr s;

	for (i = 1; i < d->n_sections; i++)
		if (dump_section(d, i, &s))
			next[dump_table_of(&s)]++;
	for (t = 1; t < DUMP_TABLES_END; t++) {
		d->first[t] = n;
		n += next[t];
		next[t] = d->first[t];
	}
	d->first[DUMP_TABLES_END] = n;
	d->order = xcalloc((size_t)n + 1, sizeof(*d->order));
	for (i = 1; i < d->n_sections; i++) {
		t = dump_section(d, i, &s) ? dump_table_of(&s) : 0;
		/* headers overlapping a table they describe could have changed in between */
		if (t && next[t] < d->first[t + 1])
			d->order[next[t]++] = i;
	}
	for (t = 1; t < DUMP_TABLES_END; t++)
		sort_type(d, d->first[t], d->first[t + 1]);
}

static int dump_parse(struct dump *d, struct err *e)
{
	Elf64_Ehdr h;
	int rc;

	rc = dump_expand(d, e);
	if (rc == 0)
		rc = check_header(d, &h, e);
	if (rc == 0)
		rc = read_headers(d, &h, e);
	if (rc != 0)
		return rc;
	d->read = xcalloc(d->n_sections, 1);
	find_strings(d, &h);
	rc = read_tables(d, e);
	if (rc != 0)
		return rc;
	index_sections(d);
	if (d->first[DUMP_DEVICE] == d->first[DUMP_DEVICE + 1])
		return err_set(e, -EBADMSG, "the GPU core dump holds no device");
	return 0;
}

bool dump_is_dump(const void *head, size_t len)
{
	const uint8_t *p = head;
	Elf64_Ehdr h;

	if (len >= 2 && p[0] == 0x1f && p[1] == 0x8b)
		return true;
	if (len < sizeof(h))
		return false;
	memcpy(&h, head, sizeof(h));
	return memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 && h.e_machine == DUMP_MACHINE && h.e_type == ET_CORE;
}

void dump_free(struct dump *d)
{
	if (!d)
		return;
	dump_unload(d);
	free(d->read);
	free(d->order);
	free(d);
}

struct dump *dump_open(const char *path, struct err *e)
{
	struct dump *d = xcalloc(1, sizeof(*d));

	d->fd = -1;
	if (dump_load(d, path, e) != 0 || dump_parse(d, e) != 0) {
		dump_free(d);
		return NULL;
	}
	return d;
}

struct dump *dump_from_bytes(void *bytes, size_t len, struct err *e)
{
	struct dump *d = xcalloc(1, sizeof(*d));

	d->fd = -1;
	d->base = bytes;	/* ownership moves to the dump */
	d->len = len;
	if (dump_parse(d, e) != 0) {
		dump_free(d);
		return NULL;
	}
	return d;
}
