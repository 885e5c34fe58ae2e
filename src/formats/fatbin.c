/* SPDX-License-Identifier: Apache-2.0
 * Reads a library: its file, its sections, its fat binaries.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "formats/elf_sections.h"
#include "formats/fatbin_priv.h"
#include "base/banned.h"

#define SECTIONS_MAX	65536

bool source_read(const struct source *s, uint64_t off, void *to, size_t n)
{
	return elf_get(&(struct elf_source){s->fd, s->data, s->len}, off, to, n);
}

void fatbin_damage(struct fatbin *f, const char *why)
{
	if (!f->damaged)
		str_copy(f->why, sizeof(f->why), why);
	f->damaged = true;
}

/* ".nv_fatbin" or "__nv_relfatbin". */
static bool has_fatbins(const struct elf_sections *all, const Elf64_Shdr *names, const Elf64_Shdr *s, bool *linked)
{
	if (s->sh_type == SHT_NOBITS || s->sh_size == 0)
		return false;
	*linked = elf_section_is(all, names, s, "__nv_relfatbin");
	return *linked || elf_section_is(all, names, s, ".nv_fatbin");
}

static bool overlaps(const struct span *spans, int n, uint64_t off, uint64_t len)
{
	for (int i = 0; i < n; i++)
		if (off < spans[i].off + spans[i].len && spans[i].off < off + len)
			return true;
	return false;
}

/* A section that two names share, or that lies beyond the end, is nothing that a linker makes. */
static int span_add(const struct source *s, struct span *spans, int n, const Elf64_Shdr *h, struct fatbin *f)
{
	uint64_t len = h->sh_size;

	if (h->sh_offset >= s->len || len > s->len - h->sh_offset) {
		fatbin_damage(f, "the file is shorter than its sections say");
		if (h->sh_offset >= s->len)
			return n;
		len = s->len - h->sh_offset;
	}
	if (n == SPANS_MAX || overlaps(spans, n, h->sh_offset, len)) {
		fatbin_damage(f, "its sections overlap");
		return n;
	}
	spans[n] = (struct span){h->sh_offset, len, false};
	return n + 1;
}

int sections_find(const struct source *s, struct span *spans, struct fatbin *f, struct err *e)
{
	struct elf_source file = {s->fd, s->data, s->len};
	struct elf_sections all;
	Elf64_Shdr names, section;
	Elf64_Ehdr h;
	bool linked;
	int n = 0, before;

	if (!elf_header(&file, &h))
		return err_set(e, -ENOEXEC, "not a 64-bit ELF file");
	f->scanned = h.e_shoff == 0;
	if (f->scanned)
		return 0;
	if (!elf_sections_open(&all, file, &h) || all.n == 0 || all.n > SECTIONS_MAX || all.n > all.room ||
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

static struct fatbin *source_walk(const struct source *s, struct err *e)
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
	struct source s = {-1, data, len};

	return source_walk(&s, e);
}

/* O_NONBLOCK: a pipe in the place of a library must not stop us. */
static int file_open(const char *path, struct source *s, struct err *e)
{
	struct stat st;

	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s->fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(s->fd);
		return err_set(e, -EINVAL, "%s: not a regular file", path);
	}
	s->len = (uint64_t)st.st_size;
	/* headers lie far apart: what is between them need not be read */
	posix_fadvise(s->fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

struct fatbin *fatbin_read(const char *path, struct err *e)
{
	struct source s = {-1, NULL, 0};
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
