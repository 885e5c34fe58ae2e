/* SPDX-License-Identifier: Apache-2.0
 * Mappings and symbols of another process (see target.h).
 *
 * Files are opened below /proc/PID/root: those of a container are not ours. Nothing in them is trusted.
 */
#include "read/live/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "formats/elf_sections.h"

#define MAPS_MAX	(64u << 20)
#define SYMBOLS_MAX	(4u << 20)
#define NAMES_MAX	(256u << 20)

static uint32_t module_of(struct target *t, size_t *cap, const char *path, uint64_t start)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = t->n_modules; i > 0; i--)
		if (!strcmp(t->module[i - 1].path, path))
			return (uint32_t)(i - 1);
	t->module = xgrow(t->module, t->n_modules, cap, sizeof(*t->module));
	t->module[t->n_modules] = (struct module){.path = path, .base = slash ? slash + 1 : path, .start = start};
	return (uint32_t)t->n_modules++;
}

void target_parse(struct target *t, const char *maps)
{
	size_t cap = 0, cap_modules = 0;

	for (const char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		unsigned long long start, end, offset;
		char perms[5] = "";
		int at = 0;
		const char *path, *stop;
		struct mapping *m;

		if (sscanf(line, "%llx-%llx %4s %llx %*x:%*x %*u%n", &start, &end, perms, &offset, &at) < 4 || !at ||
		    end <= start)
			continue;
		path = line + at;
		while (*path == ' ')
			path++;
		stop = strchr(path, '\n');
		t->map = xgrow(t->map, t->n_maps, &cap, sizeof(*t->map));
		m = &t->map[t->n_maps++];
		*m = (struct mapping){
			.start = start, .end = end, .offset = offset, .exec = perms[2] == 'x', .module = UINT32_MAX};
		m->path = pool_copy(&t->pool, path, stop ? (size_t)(stop - path) : strlen(path));
		if (m->path[0] == '/')
			m->module = module_of(t, &cap_modules, m->path, start - (offset < start ? offset : 0));
	}
	t->is_32bit = t->n_maps && t->map[t->n_maps - 1].end <= 1ull << 32;
}

int target_open(struct target *t, pid_t pid)
{
	char path[64];
	struct buf b;
	int fd, rc;

	*t = (struct target){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	buf_init(&b, MAPS_MAX);
	rc = buf_read_fd(&b, fd);
	close(fd);
	if (!rc)
		target_parse(t, b.data ? b.data : "");
	buf_release(&b);
	/* a kernel thread or a zombie has none */
	return rc ? rc : t->n_maps ? 0 : -ESRCH;
}

void target_close(struct target *t)
{
	for (size_t i = 0; i < t->n_modules; i++)
		free(t->module[i].symbol);
	free(t->module);
	free(t->map);
	pool_release(&t->pool);
	*t = (struct target){0};
}

const struct mapping *target_mapping(const struct target *t, uint64_t address)
{
	size_t low = 0, high = t->n_maps;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (t->map[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n_maps && t->map[low].start <= address ? &t->map[low] : NULL;
}

struct module *target_module(const struct target *t, uint64_t address)
{
	const struct mapping *m = target_mapping(t, address);

	return m && m->exec && m->module < t->n_modules ? &t->module[m->module] : NULL;
}

struct module *target_has(const struct target *t, const char *base)
{
	for (size_t i = 0; i < t->n_modules; i++)
		if (str_starts(t->module[i].base, base))
			return &t->module[i];
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct module_symbol *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_wanted(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return s->st_shndx != SHN_UNDEF && s->st_value && s->st_name &&
	       (type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

static void read_table(const struct target *t, struct module *m, const struct elf_sections *all,
		       const Elf64_Shdr *table, size_t *cap)
{
	uint64_t n = table->sh_entsize == sizeof(Elf64_Sym) ? table->sh_size / sizeof(Elf64_Sym) : 0;
	struct pool *pool = (struct pool *)(uintptr_t)&t->pool;
	Elf64_Shdr strings;
	char *names;

	if (!n || n > SYMBOLS_MAX || !elf_section(all, table->sh_link, &strings) || !strings.sh_size ||
	    strings.sh_size > NAMES_MAX || !elf_inside(&all->file, strings.sh_offset, strings.sh_size))
		return;
	names = pool_alloc(pool, strings.sh_size + 1);	/* zeroed: it ends */
	if (!elf_get(&all->file, strings.sh_offset, names, strings.sh_size))
		return;
	for (uint64_t i = 0; i < n;) {
		Elf64_Sym s[256];
		size_t part = n - i < 256 ? (size_t)(n - i) : 256;

		if (!elf_get(&all->file, table->sh_offset + i * sizeof(*s), s, part * sizeof(*s)))
			return;
		for (size_t k = 0; k < part; k++) {
			if (!is_wanted(&s[k]) || s[k].st_name >= strings.sh_size)
				continue;
			m->symbol = xgrow(m->symbol, m->n_symbols, cap, sizeof(*m->symbol));
			m->symbol[m->n_symbols++] = (struct module_symbol){
				s[k].st_value, s[k].st_size, names + s[k].st_name,
				ELF64_ST_TYPE(s[k].st_info) == STT_FUNC || ELF64_ST_TYPE(s[k].st_info) == STT_GNU_IFUNC};
		}
		i += part;
	}
}

/* Address in memory less address in the file: from the segment that is at the beginning of the file. */
static uint64_t find_bias(const struct elf_source *f, const Elf64_Ehdr *h, uint64_t start)
{
	for (unsigned i = 0; i < h->e_phnum && h->e_phentsize == sizeof(Elf64_Phdr); i++) {
		Elf64_Phdr p;

		if (elf_get(f, h->e_phoff + i * sizeof(p), &p, sizeof(p)) && p.p_type == PT_LOAD)
			return start - (p.p_vaddr - p.p_offset);
	}
	return start;
}

static void read_module(const struct target *t, struct module *m, int fd, uint64_t size)
{
	struct elf_source f = {.fd = fd, .len = size};
	struct elf_sections all;
	size_t cap = 0;
	Elf64_Ehdr h;

	if (!elf_header(&f, &h))
		return;
	m->bias = h.e_type == ET_EXEC ? 0 : find_bias(&f, &h, m->start);
	if (!elf_sections_open(&all, f, &h))
		return;
	for (uint64_t i = 1; i < all.n && i < all.room; i++) {
		Elf64_Shdr s;

		if (elf_section(&all, i, &s) && (s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM))
			read_table(t, m, &all, &s, &cap);
	}
	xsort(m->symbol, m->n_symbols, sizeof(*m->symbol), by_address);
	{
		Elf64_Shdr s;

		if (elf_section_named(&all, ".PyRuntime", &s))
			m->runtime_section = s.sh_addr + m->bias;
	}
}

static int open_module(const struct target *t, const struct module *m, struct stat *st)
{
	char path[4096 + 64];
	int fd = -1;

	if (!str_ends(m->path, " (deleted)")) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)t->pid, m->path);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	for (size_t i = 0; fd < 0 && i < t->n_maps; i++) {	/* root may look through the mapping itself */
		if (t->map[i].module >= t->n_modules || &t->module[t->map[i].module] != m)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)t->pid,
			 (unsigned long long)t->map[i].start, (unsigned long long)t->map[i].end);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		break;
	}
	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void need_symbols(const struct target *t, struct module *m)
{
	struct stat st;
	int fd;

	if (m->opened)
		return;
	m->opened = true;
	fd = open_module(t, m, &st);
	if (fd < 0)
		return;
	read_module(t, m, fd, (uint64_t)st.st_size);
	close(fd);
}

uint64_t module_symbol(const struct target *t, struct module *m, const char *name)
{
	need_symbols(t, m);
	for (size_t i = 0; i < m->n_symbols; i++)
		if (!strcmp(m->symbol[i].name, name))
			return m->symbol[i].at + m->bias;
	return 0;
}

const char *module_function(const struct target *t, struct module *m, uint64_t address, uint64_t *offset)
{
	size_t low = 0, high;
	uint64_t at;

	need_symbols(t, m);
	at = address - m->bias;
	for (high = m->n_symbols; low < high;) {
		size_t mid = (low + high) / 2;

		if (m->symbol[mid].at <= at)
			low = mid + 1;
		else
			high = mid;
	}
	/* of several at one address, and of those before it: the nearest that reaches it */
	for (size_t back = 0; low > 0 && back < 16; low--, back++) {
		const struct module_symbol *s = &m->symbol[low - 1];

		if (s->is_function && (at - s->at < s->size || (!s->size && at - s->at < 4096))) {
			*offset = at - s->at;
			return s->name;
		}
	}
	return NULL;
}
