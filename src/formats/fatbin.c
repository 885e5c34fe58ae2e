/* SPDX-License-Identifier: Apache-2.0
 * Reads a library: its file, its sections, and in them the fat binaries, header by header (see fatbin.h).
 */
#include "formats/fatbin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "formats/elf_sections.h"

static void fatbin_damage(struct fatbin *f, const char *why)
{
	if (!f->damaged)
		str_copy(f->why, sizeof(f->why), why);
	f->damaged = true;
}

static int file_open(const char *path, struct elf_source *s, struct err *e)
{
	s->fd = fs_open_foreign(path, UINT64_MAX, &s->len);
	if (s->fd < 0)
		return err_set(e, s->fd, "%s: %s", path, fs_reason(s->fd));
	/* headers are far apart: skip readahead for what lies between */
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

#define SECTIONS_MAX	65536
#define SPANS_MAX	16

struct span {
	uint64_t off, len;
	bool linked;
};

/* ".nv_fatbin" or "__nv_relfatbin". */
static bool has_fatbins(const struct elf_sections *all, const Elf64_Shdr *names, const Elf64_Shdr *s, bool *linked)
{
	if (s->sh_type == SHT_NOBITS || s->sh_size == 0)
		return false;
	*linked = elf_section_is(all, names, s, "__nv_relfatbin");
	return *linked || elf_section_is(all, names, s, ".nv_fatbin");
}

static bool span_overlaps(const struct span *spans, int n, uint64_t off, uint64_t len)
{
	for (int i = 0; i < n; i++)
		if (off < spans[i].off + spans[i].len && spans[i].off < off + len)
			return true;
	return false;
}

/* A section that two names share, or that lies beyond the end, was not made by a linker. */
static int span_add(const struct elf_source *s, struct span *spans, int n, const Elf64_Shdr *h, struct fatbin *f)
{
	uint64_t len = h->sh_size;

	if (h->sh_offset >= s->len || len > s->len - h->sh_offset) {
		fatbin_damage(f, "the file is shorter than its sections say");
		if (h->sh_offset >= s->len)
			return n;
		len = s->len - h->sh_offset;
	}
	if (n == SPANS_MAX || span_overlaps(spans, n, h->sh_offset, len)) {
		fatbin_damage(f, "its sections overlap");
		return n;
	}
	spans[n] = (struct span){h->sh_offset, len, false};
	return n + 1;
}

/* Returns how many; `f` gets `scanned` and damage. -ENOEXEC: not a file we can read. */
static int sections_find(const struct elf_source *s, struct span *spans, struct fatbin *f, struct err *e)
{
	struct elf_sections all;
	Elf64_Shdr names, section;
	Elf64_Ehdr h;
	bool linked;
	int n = 0, before;

	if (!elf_header(s, &h))
		return err_set(e, -ENOEXEC, "not a 64-bit ELF file");
	f->scanned = h.e_shoff == 0;
	if (f->scanned)
		return 0;
	if (!elf_sections_open(&all, *s, &h) || all.n == 0 || all.n > SECTIONS_MAX || all.n > all.room ||
	    !elf_section(&all, all.names, &names)) {
		f->scanned = true;
		fatbin_damage(f, "its list of sections is broken or cut off");
		return 0;
	}
	for (uint64_t i = 1; elf_section(&all, i, &section); i++) {
		if (!has_fatbins(&all, &names, &section, &linked))
			continue;
		before = n;
		n = span_add(s, spans, n, &section, f);
		if (n > before)
			spans[before].linked = linked;
	}
	return n;
}

#define TARGETS_MAX	256	/* different ones; NVIDIA's libraries have up to thirty */
#define SETS_MAX	256	/* of targets */
#define WORDS		(TARGETS_MAX / 64)
#define HEADERS_MAX	(1u << 20)	/* a hostile file could have one every 64 bytes */
#define BLOCK		65536u

struct set_bits {
	uint64_t word[WORDS];
	uint32_t count;
	bool linked;
};

struct walk {
	const struct elf_source *source;
	struct fatbin *f;
	struct fatbin_target target[TARGETS_MAX];
	size_t n_targets;
	struct set_bits set[SETS_MAX];
	size_t n_sets;
	uint64_t headers;	/* read so far: there is a limit */
};

static bool headers_left(struct walk *w)
{
	if (w->headers++ < HEADERS_MAX)
		return true;
	fatbin_damage(w->f, "it has more fat binaries than any real library");
	return false;
}

/* Its place in the list of targets; -1 when we have no name for it. */
static int target_index(struct walk *w, const struct fatbin_entry *e)
{
	struct fatbin_target t = {.kind = e->kind, .arch = (int)e->arch, .suffix = e->suffix, .ptx = e->ptx};
	size_t i;

	if (e->arch == 0 || e->arch > FATBIN_ARCH_MAX)
		return -1;
	for (i = 0; i < w->n_targets; i++)
		if (w->target[i].kind == t.kind && w->target[i].arch == t.arch && w->target[i].suffix == t.suffix &&
		    w->target[i].ptx == t.ptx)
			return (int)i;
	if (i == TARGETS_MAX)
		return -1;
	w->target[w->n_targets++] = t;
	return (int)i;
}

static void set_count(struct walk *w, const struct set_bits *bits)
{
	struct set_bits *s;

	w->f->binaries++;
	for (s = w->set; s < w->set + w->n_sets; s++)
		if (s->linked == bits->linked && memcmp(s->word, bits->word, sizeof(s->word)) == 0) {
			s->count++;
			return;
		}
	if (w->n_sets == SETS_MAX) {
		fatbin_damage(w->f, "it has more kinds of fat binaries than any real library");
		return;
	}
	*s = *bits;
	s->count = 1;
	w->n_sets++;
}

/* One fat binary from its first entry to its end. */
static void binary_walk(struct walk *w, uint64_t at, uint64_t end, bool linked)
{
	struct set_bits bits = {.linked = linked};
	struct fatbin_entry e;
	int i;

	while (end - at >= 8 && headers_left(w)) {
		if (!fatbin_entry_at(w->source, at, end, &e)) {
			fatbin_damage(w->f, "a fat binary entry is broken");
			break;
		}
		i = target_index(w, &e);
		if (i < 0)
			fatbin_damage(w->f, "a fat binary entry is for a GPU that does not exist");
		else
			bits.word[i / 64] |= 1ull << (i % 64);
		at = e.next;
	}
	set_count(w, &bits);
}

/* Counts a fat binary and returns where it ends. */
static uint64_t binary_count(struct walk *w, uint64_t end, const struct fatbin_binary *b, bool linked)
{
	uint64_t first = b->first, left = first <= end ? end - first : 0;

	if (b->size > left) {
		fatbin_damage(w->f, "a fat binary is longer than the section that contains it");
		binary_walk(w, first <= end ? first : end, end, linked);
		return first <= end ? first : end;
	}
	binary_walk(w, first, first + b->size, linked);
	return first + b->size;
}

/* The next place, 8 bytes at a time, where a magic number is; `end` when there is none. Between fat binaries is padding, and
 * in a file without sections everything else. */
static uint64_t magic_next(struct walk *w, uint64_t at, uint64_t end)
{
	static const uint32_t magic = FATBIN_MAGIC;
	uint64_t n, i, most = 512;	/* most gaps are short */
	uint8_t block[BLOCK];

	for (; at < end; at += n) {
		n = end - at < most ? end - at : most;
		most = most < sizeof(block) ? most * 2 : most;
		if (!elf_get(w->source, at, block, n)) {
			fatbin_damage(w->f, "it could not be read to the end");
			return end;
		}
		for (i = 0; i + sizeof(magic) <= n; i += 8)
			if (memcmp(block + i, &magic, sizeof(magic)) == 0)
				return at + i;
		n = n >= 8 ? n / 8 * 8 : n;
	}
	return end;
}

static void walk_span(struct walk *w, const struct span *span)
{
	uint64_t at = span->off, end = span->off + span->len;
	struct fatbin_binary b;

	while (end - at >= FATBIN_HEADER && headers_left(w)) {
		if (fatbin_binary_at(w->source, at, end, &b)) {
			at = binary_count(w, end, &b, span->linked);
			continue;
		}
		at = magic_next(w, at + 8 <= end ? at + 8 : end, end);
	}
}

/* The whole file: fat binaries wherever they are. Without sections, the magic number may be a constant in code: a complete
 * first entry must follow. */
static void walk_scan(struct walk *w)
{
	uint64_t at = 0, end = w->source->len;
	struct fatbin_binary b;
	struct fatbin_entry e;

	while ((at = magic_next(w, at, end)) < end && headers_left(w)) {
		if (fatbin_binary_at(w->source, at, end, &b) && fatbin_entry_at(w->source, b.first, end, &e) &&
		    e.arch && e.arch <= FATBIN_ARCH_MAX && e.number && e.number <= 64)
			at = binary_count(w, end, &b, false);
		else
			at += 8;
	}
}

static int target_order(const void *left, const void *right)
{
	const struct fatbin_target *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->arch != b->arch)
		return a->arch - b->arch;
	return a->suffix != b->suffix ? a->suffix - b->suffix : a->ptx - b->ptx;
}

static int set_order(const void *left, const void *right)
{
	const struct fatbin_set *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->linked - b->linked;
}

static bool is_runnable(const struct fatbin_target *t)
{
	return t->kind == FATBIN_SASS || t->kind == FATBIN_PTX;
}

/* How many generations a set is made for: PTX is for all later ones. 0 = arch-specific targets alone, 2 = several. */
static int generations(const struct fatbin *f, const struct fatbin_set *s)
{
	int major = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct fatbin_target *t = &f->target[s->target[i]];

		if (!is_runnable(t) || t->suffix)
			continue;
		if (t->kind == FATBIN_PTX || (major && major != t->arch / 10))
			return 2;
		major = t->arch / 10;
	}
	return major ? 1 : 0;
}

/* Sets of one generation are special where most fat binaries are built for several. */
static void generality_find(struct fatbin *f)
{
	uint64_t count[3] = {0};

	for (size_t i = 0; i < f->n_sets; i++)
		count[generations(f, &f->set[i])] += f->set[i].count;
	for (size_t i = 0; i < f->n_sets; i++) {
		int n = generations(f, &f->set[i]);

		f->set[i].general = n == 2 || (n == 1 && count[1] > count[2]);
		f->general += f->set[i].general ? f->set[i].count : 0;
	}
}

static void targets_count(struct fatbin *f)
{
	for (size_t i = 0; i < f->n_sets; i++)
		for (size_t k = 0; k < f->set[i].n; k++) {
			struct fatbin_target *t = &f->target[f->set[i].target[k]];

			t->in += f->set[i].count;
			t->in_general += f->set[i].general ? f->set[i].count : 0;
		}
}

static void set_make(struct fatbin_set *to, const struct walk *w, const struct set_bits *bits)
{
	uint16_t *list = xcalloc(w->n_targets + 1, sizeof(*list));
	size_t i, k;

	/* targets were found in any order and are sorted now */
	for (i = 0; i < w->n_targets; i++)
		for (k = 0; k < w->n_targets; k++)
			if (bits->word[k / 64] >> (k % 64) & 1 && target_order(&w->target[k], &w->f->target[i]) == 0)
				list[to->n++] = (uint16_t)i;
	to->target = list;
	to->count = bits->count;
	to->linked = bits->linked;
}

/* Hands the result over to `w->f`. */
static void walk_finish(struct walk *w)
{
	struct fatbin *f = w->f;

	f->n = w->n_targets;
	f->target = xcalloc(f->n + 1, sizeof(*f->target));
	memcpy(f->target, w->target, f->n * sizeof(*f->target));
	xsort(f->target, f->n, sizeof(*f->target), target_order);
	f->set = xcalloc(w->n_sets + 1, sizeof(*f->set));
	for (size_t i = 0; i < w->n_sets; i++)
		set_make(&f->set[f->n_sets++], w, &w->set[i]);
	xsort(f->set, f->n_sets, sizeof(*f->set), set_order);
	generality_find(f);
	targets_count(f);
}

static struct fatbin *source_walk(const struct elf_source *s, struct err *e)
{
	struct fatbin *f = xcalloc(1, sizeof(*f));
	struct walk *w = xcalloc(1, sizeof(*w));
	struct span spans[SPANS_MAX];
	int n = sections_find(s, spans, f, e);

	f->bytes = s->len;
	w->source = s;
	w->f = f;
	for (int i = 0; i < n; i++)
		walk_span(w, &spans[i]);
	if (n >= 0 && f->scanned)
		walk_scan(w);
	walk_finish(w);
	free(w);
	if (n < 0) {
		fatbin_free(f);
		return NULL;
	}
	return f;
}

struct fatbin *fatbin_from_bytes(const void *data, size_t len, struct err *e)
{
	struct elf_source s = {-1, data, len};

	return source_walk(&s, e);
}

struct fatbin *fatbin_read(const char *path, struct err *e)
{
	struct elf_source s = {-1, NULL, 0};
	struct err inner = {0};
	struct fatbin *f;

	if (file_open(path, &s, e) != 0)
		return NULL;
	f = source_walk(&s, &inner);
	if (!f)
		err_set(e, inner.code, "%s: %.150s", path, inner.msg);
	close(s.fd);
	return f;
}

void fatbin_free(struct fatbin *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_sets; i++)
		free((void *)(uintptr_t)f->set[i].target);
	free(f->set);
	free(f->target);
	free(f);
}
