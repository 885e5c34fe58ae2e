/* SPDX-License-Identifier: Apache-2.0
 * Parameters of kernels (see signature.h). Offsets follow the natural alignment of each type.
 */
#include "case/signature.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/str.h"

#define TYPE_MAX 256

static const struct { const char *name; uint8_t size; bool is_integer, is_signed; const char *dtype; } types[] = {
	{"bool", 1, true, false, "bool"},	{"char", 1, true, true, "int8"},
	{"signed char", 1, true, true, "int8"}, {"unsigned char", 1, true, false, "uint8"},
	{"short", 2, true, true, "int16"},	{"unsigned short", 2, true, false, "uint16"},
	{"int", 4, true, true, "int32"},	{"unsigned int", 4, true, false, "uint32"},
	{"long", 8, true, true, "int64"},	{"unsigned long", 8, true, false, "uint64"},
	{"long long", 8, true, true, "int64"},	{"unsigned long long", 8, true, false, "uint64"},
	{"float", 4, false, true, "float32"},	{"double", 8, false, true, "float64"},
};

/* "void at::f<g(int)>(float*, int)" -> "float*, int)": the last group of parentheses, at the end of the name. */
static const char *params_of(const char *name)
{
	size_t n = strlen(name);
	int depth = 0;

	if (!n || name[n - 1] != ')')
		return NULL;
	for (size_t i = n; i > 0; i--) {
		depth += (name[i - 1] == ')') - (name[i - 1] == '(');
		if (depth == 0)
			return name + i;
	}
	return NULL;
}

/* The type that begins here; *rest is what follows it. */
static bool next_type(const char *s, char type[TYPE_MAX], const char **rest)
{
	int depth = 0;
	size_t n = 0;

	while (*s == ' ')
		s++;
	for (; s[n] && (depth > 0 || (s[n] != ',' && s[n] != ')')); n++)
		depth += (strchr("(<[", s[n]) != NULL) - (strchr(")>]", s[n]) != NULL);
	if (!n || n >= TYPE_MAX || depth || !s[n])
		return false;
	memcpy(type, s, n);
	type[n] = '\0';
	*rest = s[n] == ',' ? s + n + 1 : NULL;
	return true;
}

/* Strips what does not affect the size. */
static void strip(char *type)
{
	static const char *const ends[] = {" const", " __restrict", " volatile", " "};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (str_ends(type, ends[i])) {
			type[strlen(type) - strlen(ends[i])] = '\0';
			i = (size_t)-1;
		}
}

static int type_find(const char *type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].name, type))
			return (int)i;
	return -1;
}

/* What PyTorch's own types take; char is also what it calls bytes of unknown meaning. */
static unsigned element_bytes(const char *type)
{
	static const struct { const char *name; unsigned bytes; } own[] = {
		{"c10::Half", 2},	       {"c10::BFloat16", 2},	  {"__half", 2},
		{"__nv_bfloat16", 2},	       {"c10::complex<float>", 8}, {"c10::complex<double>", 16},
		{"c10::complex<c10::Half>", 4},
	};
	const char *opaque = strstr(type, "OpaqueType<");
	int i = strcmp(type, "char") ? type_find(type) : -1;
	unsigned long n;
	char *end;

	if (i >= 0)
		return types[i].size;
	for (size_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
		if (!strcmp(own[k].name, type))
			return own[k].bytes;
	n = opaque ? strtoul(opaque + strlen("OpaqueType<"), &end, 10) : 0;
	return n == 1 || n == 2 || n == 4 || n == 8 || n == 16 ? (unsigned)n : 0;
}

/* "at::cuda::detail::TensorInfo<float const, unsigned int>" */
static bool measure_info(char *type, struct signature_param *p)
{
	static const char name[] = "at::cuda::detail::TensorInfo<";
	char *comma = strrchr(type, ',');
	int i;

	if (!str_starts(type, name) || !comma || !str_ends(type, ">"))
		return false;
	type[strlen(type) - 1] = '\0';
	*comma = '\0';
	p->is_const = str_ends(type, " const");
	strip(type);
	strip(comma + 1);
	i = type_find(comma + 1 + strspn(comma + 1, " "));
	if (i < 0 || !types[i].is_integer || types[i].size < 4)
		return false;
	p->info = types[i].size;
	p->points_to = element_bytes(type + sizeof(name) - 1);
	p->size = (8 + 2 * (size_t)SIGNATURE_INFO_DIMS * p->info + 4 + 7) / 8 * 8;
	return true;
}

static bool measure(char *type, struct signature_param *p)
{
	int i;

	strip(type);
	*p = (struct signature_param){.size = sizeof(uint64_t)};
	if (str_ends(type, "*")) {
		type[strlen(type) - 1] = '\0';
		p->is_const = str_ends(type, " const");
		strip(type);
		i = type_find(type);
		p->points_to_dtype = i < 0 ? NULL : types[i].dtype;
		p->points_to = element_bytes(type);
		return true;
	}
	if (measure_info(type, p))
		return true;
	i = type_find(type);
	if (i < 0)
		return false;
	p->size = types[i].size;
	p->is_integer = types[i].is_integer;
	p->is_signed = types[i].is_signed;
	return true;
}

bool signature_param(const char *kernel, unsigned number, struct signature_param *p)
{
	const char *rest = params_of(kernel);
	char type[TYPE_MAX];
	size_t at = 0, align;

	for (unsigned i = 0; rest && next_type(rest, type, &rest) && measure(type, p); i++) {
		align = p->size < sizeof(uint64_t) ? p->size : sizeof(uint64_t);
		at = (at + align - 1) / align * align;
		p->offset = at;
		if (i == number)
			return true;
		at += p->size;
	}
	return false;
}

bool signature_pointer_at(const char *kernel, size_t offset, struct signature_param *p)
{
	for (unsigned i = 0; signature_param(kernel, i, p) && p->offset <= offset; i++)
		if (p->offset == offset)
			return p->points_to || p->info || p->is_const;
	return false;
}

bool signature_number_at(const char *kernel, size_t offset)
{
	struct signature_param p;

	for (unsigned i = 0; signature_param(kernel, i, &p) && p.offset <= offset; i++)
		if (offset - p.offset < p.size)
			return p.is_integer || (p.info && offset > p.offset);
	return false;
}

/* The bytes have no padding at the end (R580), so the last parameter is the last thing in them. */
static bool last_param(const char *kernel, size_t len, struct signature_param *p)
{
	const char *rest = params_of(kernel);
	char type[TYPE_MAX];

	while (rest && next_type(rest, type, &rest))
		if (!rest) {
			if (!measure(type, p) || p->info || len < p->size || len % p->size)
				return false;
			p->offset = len - p->size;
			return true;
		}
	return false;
}

bool signature_integer(const char *kernel, unsigned number, const void *bytes, size_t len, int64_t *value)
{
	struct signature_param p;
	uint64_t v = 0;

	if (!bytes || !(number == SIGNATURE_LAST ? last_param(kernel, len, &p) : signature_param(kernel, number, &p)) ||
	    !p.is_integer || p.offset + p.size > len)
		return false;
	memcpy(&v, (const char *)bytes + p.offset, p.size);	/* dumps are little-endian, as we are */
	if (p.is_signed && p.size < 8 && v >> (p.size * 8 - 1))
		v |= ~0ull << (p.size * 8);
	*value = (int64_t)v;
	return true;
}

/* "void at::native::(anonymous namespace)::fill<float>(float*)" -> "at::native::fill" */
const char *kernel_short_name(const char *name, struct pool *pool)
{
	char *copy = pool_strdup(pool, str_starts(name, "void ") ? name + 5 : name), *s;
	static const char anonymous[] = "(anonymous namespace)::";

	while ((s = strstr(copy, anonymous)) != NULL)
		memmove(s, s + strlen(anonymous), strlen(s + strlen(anonymous)) + 1);
	copy[strcspn(copy, "<(")] = '\0';
	return copy;
}
