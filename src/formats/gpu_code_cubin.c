/* SPDX-License-Identifier: Apache-2.0
 * Kernels and variables of a cubin.
 *
 * A kernel is a function symbol that is marked as an entry; its symbol's section is .text.NAME. Other sections of the kernel have
 * the index of that one in sh_info: .nv.info.NAME (attributes), .nv.shared.NAME (static shared memory). The plain .nv.info has the
 * attributes that name their kernel by its symbol. (Seen in libtorch_cuda.so 2.4 to 2.15, CUDA 12.1 to 13.2, sm_50 to sm_121.)
 */
#include "formats/gpu_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/elf_sections.h"

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

#define SECTIONS_MAX	 (1u << 20)
#define SYMBOL_ENTRY	 0x10	/* st_other of a kernel */
#define SYMBOL_MANAGED	 0x20	/* of a __managed__ variable */
#define TYPE_INFO	 0x70000000u	/* sh_type of .nv.info */
#define SHARED_RESERVED	 1024	/* from sm_90 on, static shared memory includes the driver's own */
#define SHARED_RESERVED_FROM 90

enum attribute {
	ATTR_MAX_THREADS = 0x05,
	ATTR_REQUIRED_THREADS = 0x10,
	ATTR_FRAME_SIZE = 0x11,
	ATTR_PARAM = 0x17,
	ATTR_PARAM_BYTES = 0x19,
	ATTR_REGISTERS = 0x2f,
	ATTR_CLUSTER = 0x3d,
};
enum { FORMAT_HALF = 3, FORMAT_SIZED = 4 };

struct reader {
	struct gpu_code *c;
	struct elf_sections all;
	struct bytes names, symbols, strings;
	uint32_t *kernel_of;	/* by section: its kernel plus one, or 0 */
	size_t sections;
	int arch;
	size_t init_len, init_max;
};

/* An attribute; `data` is the value of a sized one. */
struct attr {
	unsigned format, id, value;
	const uint8_t *data;
	size_t len;
};

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t half_at(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool attr_next(struct bytes *rest, struct attr *a)
{
	size_t used = 4;

	if (rest->len < 4)
		return false;
	*a = (struct attr){rest->data[0], rest->data[1], half_at(rest->data + 2), NULL, 0};
	if (a->format == FORMAT_SIZED) {
		if (a->value > rest->len - 4)
			return false;
		a->data = rest->data + 4;
		a->len = a->value;
		used += a->len;
	}
	rest->data += used;
	rest->len -= used;
	return true;
}

static bool cubin_open(struct bytes cubin, Elf64_Ehdr *h, struct elf_sections *all)
{
	struct elf_source s = elf_in_memory(cubin);

	return elf_header(&s, h) && h->e_machine == EM_CUDA && elf_sections_open(all, s, h);
}

/* Since version 8 of the ABI the architecture is in the second byte. */
static int header_arch(const Elf64_Ehdr *h)
{
	return h->e_ident[EI_ABIVERSION] >= 8 ? (int)(h->e_flags >> 8 & 0xff) : (int)(h->e_flags & 0xff);
}

bool gpu_cubin_target(struct bytes cubin, struct gpu_target *t)
{
	struct elf_sections all;
	Elf64_Ehdr h;

	if (!cubin_open(cubin, &h, &all))
		return false;
	*t = (struct gpu_target){.arch = header_arch(&h)};
	return true;
}

size_t gpu_cubin_size(const void *cubin)
{
	const uint8_t *data = cubin;
	Elf64_Ehdr h;
	uint64_t end, table;

	memcpy(&h, data, sizeof(h));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_CUDA ||
	    h.e_shentsize != sizeof(Elf64_Shdr) || !h.e_shoff)
		return 0;
	end = h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize;
	table = h.e_shnum;
	if (!table)		/* more than fit the header */
		memcpy(&table, data + h.e_shoff + offsetof(Elf64_Shdr, sh_size), sizeof(table));
	if (table > SECTIONS_MAX)
		return 0;
	if (h.e_shoff + table * sizeof(Elf64_Shdr) > end)
		end = h.e_shoff + table * sizeof(Elf64_Shdr);
	for (uint64_t i = 0; i < table; i++) {
		Elf64_Shdr s;

		memcpy(&s, data + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL && s.sh_offset + s.sh_size > end)
			end = s.sh_offset + s.sh_size;
	}
	return (size_t)end;
}

static const char *section_name(const struct reader *r, const Elf64_Shdr *s)
{
	return s->sh_name < r->names.len ? (const char *)r->names.data + s->sh_name : "";
}

static bool text_ends(struct bytes b)
{
	return b.len && b.data[b.len - 1] == '\0';
}

/* The tables that everything else refers to. Texts must end, so that they can be used where they are. */
static bool reader_open(struct reader *r, struct bytes cubin)
{
	Elf64_Shdr s, strings;
	Elf64_Ehdr h;

	if (!cubin_open(cubin, &h, &r->all) || r->all.n > SECTIONS_MAX || r->all.n > r->all.room ||
	    !elf_section(&r->all, r->all.names, &s))
		return false;
	r->arch = header_arch(&h);
	r->sections = (size_t)r->all.n;
	r->names = elf_section_bytes(&r->all, &s);
	if (!text_ends(r->names) || !elf_section_named(&r->all, ".symtab", &s) ||
	    !elf_section(&r->all, s.sh_link, &strings))
		return false;
	r->symbols = elf_section_bytes(&r->all, &s);
	r->strings = elf_section_bytes(&r->all, &strings);
	return text_ends(r->strings);
}

static size_t symbols_count(const struct reader *r)
{
	return r->symbols.len / sizeof(Elf64_Sym);
}

static Elf64_Sym symbol_at(const struct reader *r, size_t i)
{
	Elf64_Sym s;

	memcpy(&s, r->symbols.data + i * sizeof(s), sizeof(s));
	return s;
}

static bool is_kernel(const struct reader *r, const Elf64_Sym *s)
{
	return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_other & SYMBOL_ENTRY && s->st_shndx &&
	       s->st_name < r->strings.len;
}

/* More sections than 16 bits count: there the symbol does not say which is its own, but the name does. */
static size_t kernel_section(const struct reader *r, const Elf64_Sym *s, const char *name)
{
	Elf64_Shdr section;

	if (s->st_shndx != SHN_XINDEX)
		return s->st_shndx;
	for (size_t i = 1; elf_section(&r->all, i, &section); i++)
		if (!strncmp(section_name(r, &section), ".text.", 6) && !strcmp(section_name(r, &section) + 6, name))
			return i;
	return 0;
}

static int kernels_find(struct reader *r)
{
	struct gpu_code *c = r->c;
	size_t n = 0;

	for (size_t i = 0; i < symbols_count(r); i++) {
		Elf64_Sym s = symbol_at(r, i);

		n += is_kernel(r, &s);
	}
	c->kernel = calloc(n + 1, sizeof(*c->kernel));
	r->kernel_of = calloc(r->sections + 1, sizeof(*r->kernel_of));
	if (!c->kernel || !r->kernel_of)
		return -ENOMEM;
	for (size_t i = 0; i < symbols_count(r); i++) {
		Elf64_Sym s = symbol_at(r, i);
		struct gpu_kernel *k = &c->kernel[c->kernels];
		Elf64_Shdr section;
		size_t at;

		if (!is_kernel(r, &s))
			continue;
		k->name = c->names + s.st_name;
		at = kernel_section(r, &s, k->name);
		if (!elf_section(&r->all, at, &section))
			continue;
		k->code = section.sh_size;
		k->regs = section.sh_info >> 24;	/* where .nv.info does not say */
		r->kernel_of[at] = (uint32_t)++c->kernels;
	}
	return 0;
}

static struct gpu_kernel *kernel_of_section(const struct reader *r, size_t section)
{
	uint32_t k = section < r->sections ? r->kernel_of[section] : 0;

	return k ? &r->c->kernel[k - 1] : NULL;
}

static struct gpu_kernel *kernel_of_symbol(const struct reader *r, size_t symbol)
{
	Elf64_Sym s;

	if (symbol >= symbols_count(r))
		return NULL;
	s = symbol_at(r, symbol);
	return is_kernel(r, &s) ? kernel_of_section(r, kernel_section(r, &s, r->c->names + s.st_name)) : NULL;
}

static size_t params_count(struct bytes info)
{
	struct attr a;
	size_t n = 0;

	while (attr_next(&info, &a))
		n += a.id == ATTR_PARAM && a.len >= 12;
	return n;
}

/* Ordinal, offset, and in the upper bits of the last word the size. They are listed from the last to the first. */
static void param_read(struct gpu_code *c, struct gpu_kernel *k, const struct attr *a)
{
	unsigned ordinal = half_at(a->data + 4);

	if (ordinal < k->n_params)
		c->param[k->param + ordinal] =
			(struct gpu_param){half_at(a->data + 6), (uint16_t)(word_at(a->data + 8) >> 18)};
}

static unsigned product(const uint8_t *three)
{
	uint64_t n = (uint64_t)word_at(three) * word_at(three + 4);

	n = n < UINT32_MAX ? n * word_at(three + 8) : n;
	return n > UINT16_MAX ? 0 : (unsigned)n;	/* more than any GPU allows: no bound */
}

static void kernel_attr(struct gpu_code *c, struct gpu_kernel *k, const struct attr *a)
{
	if (a->id == ATTR_PARAM && a->len >= 12) {
		param_read(c, k, a);
	} else if (a->id == ATTR_PARAM_BYTES && a->format == FORMAT_HALF) {
		k->param_bytes = a->value;
	} else if ((a->id == ATTR_MAX_THREADS || a->id == ATTR_REQUIRED_THREADS) && a->len >= 12) {
		k->bounds = product(a->data);
	} else if (a->id == ATTR_CLUSTER && a->len >= 12) {
		for (int i = 0; i < 3; i++)
			k->cluster[i] = word_at(a->data + 4 * i);
	}
}

static void kernel_info(struct gpu_code *c, struct gpu_kernel *k, struct bytes info)
{
	struct attr a;

	k->n_params = (unsigned)params_count(info);
	k->param = c->params;
	c->params += k->n_params;
	while (attr_next(&info, &a))
		kernel_attr(c, k, &a);
}

static void module_info(struct reader *r, struct bytes info)
{
	struct gpu_kernel *k;
	struct attr a;

	while (attr_next(&info, &a)) {
		if ((a.id != ATTR_REGISTERS && a.id != ATTR_FRAME_SIZE) || a.len < 8)
			continue;
		k = kernel_of_symbol(r, word_at(a.data));
		if (k)
			*(a.id == ATTR_REGISTERS ? &k->regs : &k->local) = word_at(a.data + 4);
	}
}

static void shared_info(struct reader *r, const Elf64_Shdr *s)
{
	struct gpu_kernel *k = kernel_of_section(r, s->sh_info);
	uint64_t own = r->arch >= SHARED_RESERVED_FROM && s->sh_size >= SHARED_RESERVED ? SHARED_RESERVED : 0;

	if (k)
		k->shared = s->sh_size - own > INT32_MAX ? INT32_MAX : (unsigned)(s->sh_size - own);
}

static int attributes_read(struct reader *r)
{
	size_t n = 0;
	Elf64_Shdr s;

	for (size_t i = 1; elf_section(&r->all, i, &s); i++)
		if (s.sh_type == TYPE_INFO && kernel_of_section(r, s.sh_info))
			n += params_count(elf_section_bytes(&r->all, &s));
	r->c->param = calloc(n + 1, sizeof(*r->c->param));
	if (!r->c->param)
		return -ENOMEM;
	for (size_t i = 1; elf_section(&r->all, i, &s); i++) {
		struct gpu_kernel *k = kernel_of_section(r, s.sh_info);

		if (s.sh_type == TYPE_INFO && k)
			kernel_info(r->c, k, elf_section_bytes(&r->all, &s));
		else if (s.sh_type == TYPE_INFO && !strcmp(section_name(r, &s), ".nv.info"))
			module_info(r, elf_section_bytes(&r->all, &s));
		else if (s.sh_type == SHT_NOBITS && k && !strncmp(section_name(r, &s), ".nv.shared.", 11))
			shared_info(r, &s);
	}
	return 0;
}

/* __device__ variables, with and without contents, and __constant__ ones. */
static bool variable_section(const struct reader *r, const Elf64_Sym *s, Elf64_Shdr *section)
{
	const char *name;

	if (ELF64_ST_TYPE(s->st_info) != STT_OBJECT || !s->st_shndx || s->st_name >= r->strings.len || !s->st_size ||
	    !elf_section(&r->all, s->st_shndx, section))
		return false;
	name = section_name(r, section);
	return (!strcmp(name, ".nv.global") || !strcmp(name, ".nv.global.init") || !strcmp(name, ".nv.constant3")) &&
	       s->st_value <= section->sh_size && s->st_size <= section->sh_size - s->st_value;
}

static void variable_read(struct reader *r, const Elf64_Sym *s, const Elf64_Shdr *section)
{
	struct gpu_code *c = r->c;
	struct bytes from = elf_section_bytes(&r->all, section);
	struct gpu_variable *v = &c->variable[c->variables++];

	*v = (struct gpu_variable){.name = c->names + s->st_name,
				   .size = s->st_size,
				   .constant = !strcmp(section_name(r, section), ".nv.constant3"),
				   .managed = (s->st_other & SYMBOL_MANAGED) != 0};
	/* no compiler lets variables overlap: where they do, what exceeds the file is left out */
	if (!from.data || s->st_size > r->init_max - r->init_len)
		return;
	memcpy(c->init + r->init_len, from.data + s->st_value, (size_t)s->st_size);
	v->init = (struct bytes){c->init + r->init_len, (size_t)s->st_size};
	r->init_len += (size_t)s->st_size;
}

static int variables_find(struct reader *r)
{
	struct gpu_code *c = r->c;
	size_t n = 0, bytes = 0;
	Elf64_Shdr section;

	for (size_t i = 0; i < symbols_count(r); i++) {
		Elf64_Sym s = symbol_at(r, i);

		if (!variable_section(r, &s, &section))
			continue;
		n++;
		if (elf_section_bytes(&r->all, &section).data && bytes < r->all.file.len)
			bytes += (size_t)s.st_size;
	}
	r->init_max = bytes;
	c->variable = calloc(n + 1, sizeof(*c->variable));
	c->init = malloc(bytes + 1);
	if (!c->variable || !c->init)
		return -ENOMEM;
	for (size_t i = 0; i < symbols_count(r); i++) {
		Elf64_Sym s = symbol_at(r, i);

		if (variable_section(r, &s, &section))
			variable_read(r, &s, &section);
	}
	return 0;
}

int gpu_code_from_cubin(struct gpu_code *c, struct bytes cubin)
{
	struct reader r = {.c = c};
	int code;

	*c = (struct gpu_code){0};
	if (!reader_open(&r, cubin))
		return -EINVAL;
	c->names = malloc(r.strings.len);
	if (!c->names)
		return -ENOMEM;
	memcpy(c->names, r.strings.data, r.strings.len);
	code = kernels_find(&r);
	if (!code)
		code = attributes_read(&r);
	if (!code)
		code = variables_find(&r);
	free(r.kernel_of);
	if (code)
		gpu_code_release(c);
	else
		gpu_code_sort(c);
	return code;
}
