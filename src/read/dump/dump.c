/* SPDX-License-Identifier: Apache-2.0
 * Reads a GPU core dump (see dump.h): its bytes, piece by piece; its sections, listed by type and parent; its rows
 * and fields. Each access is checked against the file when it is made.
 */
#include "read/dump/dump.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "formats/elf_sections.h"

#define DUMP_MACHINE	190		/* EM_CUDA */
#define DUMP_TYPE_BASE	0x80000000u	/* SHT_LOUSER */

/* Dumps as cuwhy arms them stay below 200 MB. A file may be larger, but not what is read of it: sections can
 * overlap and files can have holes, so its length is not a bound. */
#define READ_MAX	((uint64_t)1 << 30)
#define EXPANDED_MAX	((size_t)1 << 30)
#define EXPANDED_START	((size_t)1 << 20)
#define MEMORY_MAX	65536	/* sections of global memory, one per allocation */
#define RUN_GAP		4096	/* reading a gap of this size is cheaper than another system call */

struct dump {
	uint8_t *base;		/* the file's bytes, where they have been read */
	size_t len;
	int fd;			/* -1: everything is in memory */
	bool mapped;		/* base is a mapping, not malloc */
	uint64_t n_read;	/* bytes read so far, bounded */
	struct elf_sections sections;
	uint32_t n_sections;
	uint32_t strings;	/* section of the strings of the tables, 0 = none */
	uint8_t *read;		/* per section: has been read (of a file), or failed */
	uint32_t *order;	/* sections by type, then parent */
	uint32_t first[DUMP_TABLES_END + 1];	/* where each type begins in `order` */
};

/* Inside the file, and not beyond it. */
static bool dump_inside(const struct dump *d, uint64_t off, uint64_t len)
{
	return off <= d->len && len <= d->len - off;
}

static void dump_unload(struct dump *d)
{
	if (d->mapped && d->base)
		munmap(d->base, d->len);
	else
		free(d->base);
	if (d->fd >= 0)
		close(d->fd);
	d->base = NULL;
	d->len = 0;
	d->fd = -1;
	d->mapped = false;
}

/* Reads a piece of the file into its place. Every piece is read once, so what was checked cannot change. */
static int dump_read(struct dump *d, uint64_t off, uint64_t len, struct err *e)
{
	ssize_t n;

	if (!dump_inside(d, off, len))
		return err_set(e, -EBADMSG, "the GPU core dump is cut short at %zu bytes", d->len);
	d->n_read += d->fd >= 0 ? len : 0;
	if (d->n_read > READ_MAX)
		return err_set(e, -EFBIG, "the GPU core dump is too large: more than %llu MiB of tables",
			       (unsigned long long)(READ_MAX >> 20));
	while (d->fd >= 0 && len > 0) {
		n = pread(d->fd, d->base + off, len, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "cannot read the GPU core dump: %s", strerror(errno));
		if (n == 0)
			return err_set(e, -EBADMSG, "the GPU core dump shrank while it was read");
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Address space for the whole file; pages take memory only where something is read into them. Shared, because RLIMIT_DATA counts
 * private space, used or not. */
static int dump_reserve(struct dump *d, const char *path, uint64_t size, struct err *e)
{
	void *p;

	if (size == 0)
		return err_set(e, -EBADMSG, "'%s' is empty", path);
	p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return err_set(e, -ENOMEM, "'%s' is too large: %s", path, strerror(errno));
	d->base = p;
	d->len = (size_t)size;
	d->mapped = true;
	return 0;
}

static int dump_load(struct dump *d, const char *path, struct err *e)
{
	uint64_t size = 0;
	int rc;

	d->fd = fs_open_foreign(path, INT64_MAX, &size);
	if (d->fd < 0)
		return err_set(e, d->fd, "cannot open '%s': %s", path, fs_reason(d->fd));
	rc = dump_reserve(d, path, size, e);
	if (rc == 0)
		rc = dump_read(d, 0, d->len < sizeof(Elf64_Ehdr) ? d->len : sizeof(Elf64_Ehdr), e);
	return rc;
}

struct expand {
	z_stream z;
	uint8_t *out;
	size_t len, cap;
};

static int expand_grow(struct expand *x, struct err *e)
{
	if (x->len < x->cap)
		return 0;
	if (x->cap >= EXPANDED_MAX)
		return err_set(e, -EFBIG, "the compressed GPU core dump expands to more than %zu MiB",
			       EXPANDED_MAX >> 20);
	x->cap = x->cap ? x->cap * 2 : EXPANDED_START;
	x->out = xrealloc(x->out, x->cap, 1);
	return 0;
}

/* A file may be several gzip members in a row; what follows the last one is ignored, as gzip does. */
static int expand_all(struct expand *x, struct err *e)
{
	const unsigned char *member = x->z.next_in;
	size_t room;
	int rc;

	for (;;) {
		if (expand_grow(x, e) != 0)
			return -EFBIG;
		room = x->cap - x->len < (1u << 30) ? x->cap - x->len : (1u << 30);
		x->z.next_out = x->out + x->len;
		x->z.avail_out = (uInt)room;
		rc = inflate(&x->z, Z_NO_FLUSH);
		x->len += room - x->z.avail_out;
		if (rc == Z_STREAM_END) {
			member = x->z.next_in;
			if (x->z.avail_in < 18 || member[0] != 0x1f || member[1] != 0x8b)
				return 0;
			rc = inflateReset(&x->z);
		}
		if (rc == Z_BUF_ERROR && x->z.avail_in == 0)
			return err_set(e, -EBADMSG, "the compressed GPU core dump is cut short");
		if (rc != Z_OK && rc != Z_BUF_ERROR)
			return err_set(e, -EBADMSG, "the compressed GPU core dump is damaged: %s",
				       x->z.msg ? x->z.msg : "not gzip");
	}
}

static int dump_expand(struct dump *d, struct err *e)
{
	struct expand x = {0};
	int rc;

	if (d->len < 2 || d->base[0] != 0x1f || d->base[1] != 0x8b)
		return 0;
	if (d->len > UINT32_MAX)
		return err_set(e, -EFBIG, "the compressed GPU core dump is too large");
	rc = dump_read(d, 0, d->len, e);
	if (rc != 0)
		return rc;
	if (inflateInit2(&x.z, 15 + 16) != Z_OK)
		return err_set(e, -ENOMEM, "zlib cannot start");
	x.z.next_in = d->base;
	x.z.avail_in = (uInt)d->len;
	rc = expand_all(&x, e);
	inflateEnd(&x.z);
	dump_unload(d);
	d->base = x.out;	/* ownership moves to the dump, also when it is incomplete */
	d->len = x.len;
	return rc;
}

/* The table in a section (enum dump_table), 0 = none of them. */
static uint32_t dump_table_of(const Elf64_Shdr *s)
{
	uint32_t n = s->sh_type - DUMP_TYPE_BASE;

	return s->sh_type > DUMP_TYPE_BASE && n < DUMP_TABLES_END ? n : 0;
}

/* Large and rarely needed: read on first use. Everything else is read when the dump is opened. */
static bool is_lazy(uint32_t table)
{
	return table == DUMP_IMAGE || table == DUMP_ELF_IMAGE || table == DUMP_GLOBAL ||
	       table == DUMP_MANAGED || table == DUMP_LOCAL || table == DUMP_SHARED;
}

static int check_header(const struct dump *d, Elf64_Ehdr *h, struct err *e)
{
	struct elf_source file = elf_in_memory((struct bytes){d->base, d->len});

	if (d->len < sizeof(*h))
		return err_set(e, -EBADMSG, "not a GPU core dump: only %zu bytes", d->len);
	if (!elf_header(&file, h))
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

static int read_headers(struct dump *d, const Elf64_Ehdr *h, struct err *e)
{
	struct elf_sections *all = &d->sections;
	int rc;

	/* section 0 may say how many there are */
	rc = dump_read(d, h->e_shoff, sizeof(Elf64_Shdr), e);
	if (rc != 0)
		return rc;
	elf_sections_open(all, elf_in_memory((struct bytes){d->base, d->len}), h);
	if (all->n == 0 || all->n > all->room || all->n > UINT32_MAX)
		return err_set(e, -EBADMSG, "the GPU core dump is cut short: it has room for %llu of %llu sections",
			       (unsigned long long)all->room, (unsigned long long)all->n);
	d->n_sections = (uint32_t)all->n;
	return dump_read(d, all->at, all->n * all->stride, e);
}

/* Adjacent tables are read together: a dump has one small section per lane and kind. */
static int read_tables(struct dump *d, struct err *e)
{
	uint64_t from = 0, to = 0;
	Elf64_Shdr s;
	uint32_t i, table;
	int rc = 0;

	for (i = 1; i < d->n_sections && rc == 0; i++) {
		if (!elf_section(&d->sections, i, &s))
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

struct parent_key {
	uint32_t link, info, section;
};

static int by_parent(const void *a, const void *b)
{
	const struct parent_key *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->info != y->info)
		return x->info < y->info ? -1 : 1;
	return x->section < y->section ? -1 : x->section > y->section;
}

static struct parent_key parent_key(const struct dump *d, uint32_t section)
{
	struct parent_key k = {.section = section};
	Elf64_Shdr s;

	if (elf_section(&d->sections, section, &s)) {
		k.link = s.sh_link;
		k.info = s.sh_info;
	}
	return k;
}

/* Drivers write sections in the order of their parents; other files are sorted. */
static void sort_type(struct dump *d, uint32_t first, uint32_t end)
{
	struct parent_key *keys, last = {0}, k;
	uint32_t i;

	for (i = first; i < end; i++, last = k) {
		k = parent_key(d, d->order[i]);
		if (by_parent(&last, &k) > 0)
			break;
	}
	if (i == end)
		return;
	keys = xcalloc(end - first, sizeof(*keys));
	for (i = first; i < end; i++)
		keys[i - first] = parent_key(d, d->order[i]);
	xsort(keys, end - first, sizeof(*keys), by_parent);
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
		if (elf_section(&d->sections, i, &s))
			next[dump_table_of(&s)]++;
	for (t = 1; t < DUMP_TABLES_END; t++) {
		d->first[t] = n;
		n += next[t];
		next[t] = d->first[t];
	}
	d->first[DUMP_TABLES_END] = n;
	d->order = xcalloc((size_t)n + 1, sizeof(*d->order));
	for (i = 1; i < d->n_sections; i++) {
		t = elf_section(&d->sections, i, &s) ? dump_table_of(&s) : 0;
		/* headers that overlap a table they describe could have changed in between */
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
	uint64_t names;
	Elf64_Shdr s;
	uint32_t i;

	rc = dump_expand(d, e);
	if (rc == 0)
		rc = check_header(d, &h, e);
	if (rc == 0)
		rc = read_headers(d, &h, e);
	if (rc != 0)
		return rc;
	d->read = xcalloc(d->n_sections, 1);
	/* The strings of the tables are in the string table that does not have the section names. */
	names = d->sections.names;
	for (i = 1; i < d->n_sections && !d->strings; i++)
		if (i != names && elf_section(&d->sections, i, &s) && s.sh_type == SHT_STRTAB)
			d->strings = i;
	if (!d->strings && names < d->n_sections)
		d->strings = (uint32_t)names;
	rc = read_tables(d, e);
	if (rc != 0)
		return rc;
	index_sections(d);
	if (d->first[DUMP_DEVICE] == d->first[DUMP_DEVICE + 1])
		return err_set(e, -EBADMSG, "the GPU core dump has no device");
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

static const struct field {
	uint8_t table, off, bytes;
} fields[DUMP_FIELDS_END] = {
#define FIELD(table, name, off, bytes)	[DUMP_##table##_##name] = {DUMP_##table, off, bytes},
#include "read/dump/dump_fields.def"
};

struct bytes dump_bytes(struct dump *d, uint32_t section)
{
	struct bytes none = {NULL, 0};
	Elf64_Shdr s;

	if (section == 0 || !elf_section(&d->sections, section, &s) || s.sh_type == SHT_NOBITS || s.sh_size == 0 ||
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

	return elf_section(&d->sections, section, &s) ? s.sh_addr : 0;
}

static bool memory_in(struct dump *d, uint32_t section, uint64_t address, void *to, size_t n)
{
	Elf64_Shdr s;

	if (!elf_section(&d->sections, section, &s) || s.sh_type == SHT_NOBITS || !s.sh_addr || address < s.sh_addr ||
	    address - s.sh_addr > s.sh_size || n > s.sh_size - (address - s.sh_addr) ||
	    !dump_inside(d, s.sh_offset, s.sh_size))
		return false;
	if (d->fd < 0)
		memcpy(to, d->base + s.sh_offset + (address - s.sh_addr), n);
	else if (pread(d->fd, to, n, (off_t)(s.sh_offset + (address - s.sh_addr))) != (ssize_t)n)
		return false;
	return true;
}

bool dump_memory(struct dump *d, uint64_t address, void *to, size_t n)
{
	static const enum dump_table tables[] = {DUMP_GLOBAL, DUMP_MANAGED};
	const uint32_t *sections;
	size_t t, i, count;

	for (t = 0; t < 2; t++) {
		count = dump_sections(d, tables[t], &sections);
		for (i = 0; i < count && i < MEMORY_MAX; i++)
			if (memory_in(d, sections[i], address, to, n))
				return true;
	}
	return false;
}

/* The stride is the section's entry size; drivers leave it 0 for the one row of the metadata. */
static uint64_t stride_of(const Elf64_Shdr *s)
{
	return s->sh_entsize ? s->sh_entsize : s->sh_size;
}

static uint32_t count_rows(struct dump *d, uint32_t section)
{
	Elf64_Shdr s;
	uint64_t n;

	if (section == 0 || !elf_section(&d->sections, section, &s) || stride_of(&s) == 0)
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
	if (index >= count_rows(d, section) || !elf_section(&d->sections, section, &s))
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

/* The first position in the list whose section does not come before this parent row. */
static size_t lower_bound(const struct dump *d, const uint32_t *list, size_t n, uint32_t link, uint64_t info)
{
	size_t from = 0, mid;
	Elf64_Shdr s;

	while (from < n) {
		mid = from + (n - from) / 2;
		if (elf_section(&d->sections, list[mid], &s) &&
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
	return row->section && elf_section(&row->dump->sections, row->section, &s) &&
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

/* The cursor is the position in the list of sections (high half) and the row in it (low half). */
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

/* Images and memory are left out: they are large, and the same in many runs. */
uint64_t dump_mark(struct dump *d)
{
	static const enum dump_table tables[] = {DUMP_DEVICE, DUMP_CONTEXT, DUMP_SM,   DUMP_GRID,  DUMP_CTA,
						 DUMP_WARP,   DUMP_LANE,    DUMP_REGS, DUMP_PARAMS};
	uint64_t h = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		const uint32_t *sections;
		size_t n = dump_sections(d, tables[i], &sections);

		for (size_t k = 0; k < n; k++) {
			struct bytes b = dump_bytes(d, sections[k]);

			h = map_hash_bytes(h, b.data, b.data ? b.len : 0);
		}
	}
	return h >> 1 ? h >> 1 : 1;
}
