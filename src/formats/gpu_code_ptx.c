/* SPDX-License-Identifier: Apache-2.0
 * Kernels and variables of PTX text. Registers are what the driver's compiler would choose: not known here.
 */
#include "formats/gpu_code.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMENSIONS_MAX 8
#define TOKEN_MAX      4200	/* names have up to 4,096 characters */

struct scanner {
	const char *at, *end;
	const char *token;	/* the current one */
	size_t len;		/* 0: the text is over */
	struct gpu_code *c;
	size_t kernels_room, variables_room, params_room;
	bool failed;
};

static bool is_word(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_' || ch == '$' || ch == '%' || ch == '.';
}

static const char *blank_end(const char *p, const char *end)
{
	while (p < end) {
		if (isspace((unsigned char)*p)) {
			p++;
		} else if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
			p = memchr(p, '\n', (size_t)(end - p));
			if (!p)
				return end;
		} else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
			p = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
			if (!p)
				return end;
			p += 2;
		} else {
			break;
		}
	}
	return p;
}

/* A word (with its dots), a string, or one other character. */
static bool next(struct scanner *s)
{
	const char *p = blank_end(s->at, s->end);

	s->token = p;
	if (p == s->end) {
		s->len = 0;
		return false;
	}
	if (is_word(*p)) {
		while (p < s->end && is_word(*p))
			p++;
	} else if (*p == '"') {
		p = memchr(p + 1, '"', (size_t)(s->end - p - 1));
		p = p ? p + 1 : s->end;
	} else {
		p++;
	}
	s->len = (size_t)(p - s->token);
	s->at = p;
	return true;
}

static bool token_is(const struct scanner *s, const char *text)
{
	return s->len == strlen(text) && memcmp(s->token, text, s->len) == 0;
}

static uint64_t token_number(const struct scanner *s)
{
	char text[24];
	size_t n = s->len < sizeof(text) - 1 ? s->len : sizeof(text) - 1;

	memcpy(text, s->token, n);
	text[n] = '\0';
	return strtoull(text, NULL, 0);
}

/* Up to the end of a body, a list or a statement; nested braces belong to it. */
static void skip_braces(struct scanner *s)
{
	size_t depth = 1;

	while (depth && next(s))
		depth += token_is(s, "{") ? 1 : token_is(s, "}") ? (size_t)-1 : 0;
}

static void skip_statement(struct scanner *s)
{
	while (s->len && !token_is(s, ";")) {
		if (token_is(s, "{"))
			skip_braces(s);
		next(s);
	}
}

struct declared {
	char *name;		/* owned; NULL: there was none */
	uint64_t size, align;
};

static bool type_size(const struct scanner *s, uint64_t *size)
{
	static const struct {
		const char *name;
		uint64_t size;
	} types[] = {{".b8", 1},     {".u8", 1},	 {".s8", 1},	 {".b16", 2}, {".u16", 2}, {".s16", 2},
		     {".f16", 2},    {".bf16", 2},	 {".f16x2", 4},	 {".b32", 4}, {".u32", 4}, {".s32", 4},
		     {".f32", 4},    {".b64", 8},	 {".u64", 8},	 {".s64", 8}, {".f64", 8}, {".b128", 16},
		     {".texref", 8}, {".samplerref", 8}, {".surfref", 8}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (token_is(s, types[i].name)) {
			*size = types[i].size;
			return true;
		}
	return false;
}

static char *token_copy(struct scanner *s)
{
	char *text = s->len < TOKEN_MAX ? strndup(s->token, s->len) : NULL;

	s->failed |= !text;
	return text;
}

/* ".align 8 .b8 NAME[24]", ".u64 .ptr .global .align 16 NAME", ".v4 .f32 NAME": from the token after the space to the one after
 * the declaration. */
static struct declared declaration(struct scanner *s)
{
	struct declared d = {.size = 4};
	uint64_t type = 0, align = 0, vector = 1;

	for (; s->len && *s->token == '.'; next(s)) {
		if (token_is(s, ".align")) {
			if (next(s) && !type)		/* behind the type: of what a pointer points to */
				align = token_number(s);
		} else if (token_is(s, ".v2") || token_is(s, ".v4")) {
			vector = s->token[2] == '2' ? 2 : 4;
		} else if (!type) {
			type_size(s, &type);
		}
	}
	if (!s->len || !is_word(*s->token))
		return d;
	d.name = token_copy(s);
	d.size = (type ? type : 4) * vector;
	d.align = align ? align : d.size;
	next(s);
	for (int i = 0; i < DIMENSIONS_MAX && token_is(s, "["); i++) {
		uint64_t n = next(s) && !token_is(s, "]") ? token_number(s) : 0;

		d.size = n && d.size > UINT32_MAX / n ? UINT32_MAX : d.size * n;
		if (!token_is(s, "]"))
			next(s);
		next(s);
	}
	return d;
}

static void *room_for(void *list, size_t n, size_t *room, size_t size, bool *failed)
{
	size_t more = *room ? *room * 2 : 16;
	void *grown;

	if (n < *room)
		return list;
	grown = realloc(list, more * size);
	if (!grown) {
		*failed = true;
		return list;
	}
	*room = more;
	return grown;
}

static void variable_add(struct scanner *s, struct declared d, bool constant, bool managed)
{
	struct gpu_code *c = s->c;

	c->variable = room_for(c->variable, c->variables, &s->variables_room, sizeof(*c->variable), &s->failed);
	if (s->failed || !d.name || !d.size) {
		free(d.name);
		return;
	}
	c->variable[c->variables++] = (struct gpu_variable){d.name, d.size, constant, managed, {NULL, 0}};
}

static void param_add(struct scanner *s, struct gpu_kernel *k)
{
	struct declared d = declaration(s);
	struct gpu_code *c = s->c;
	uint64_t align = d.align && !(d.align & (d.align - 1)) && d.align <= 4096 ? d.align : 1;
	uint64_t offset = (k->param_bytes + align - 1) & ~(align - 1);

	free(d.name);
	c->param = room_for(c->param, c->params, &s->params_room, sizeof(*c->param), &s->failed);
	if (s->failed || offset > UINT16_MAX || d.size > UINT16_MAX)
		return;
	c->param[c->params++] = (struct gpu_param){(uint16_t)offset, (uint16_t)d.size};
	k->n_params++;
	k->param_bytes = (unsigned)(offset + d.size);
}

static void params_read(struct scanner *s, struct gpu_kernel *k)
{
	while (s->len && !token_is(s, ")") && !token_is(s, "{")) {
		if (token_is(s, ".param") && next(s))
			param_add(s, k);
		else
			next(s);
	}
}

/* "256, 1, 1" behind a directive: the product, or with `each` the numbers. */
static unsigned numbers(struct scanner *s, unsigned *each)
{
	uint64_t product = 1;

	for (int i = 0; i < 3; i++) {
		uint64_t n;

		if (!next(s) || !isdigit((unsigned char)*s->token))
			break;
		n = token_number(s);
		if (each)
			each[i] = n > UINT16_MAX ? 0 : (unsigned)n;
		product = n > UINT16_MAX ? 0 : product * n;
		if (!next(s) || !token_is(s, ","))
			break;
	}
	return product > UINT16_MAX ? 0 : (unsigned)product;
}

static void body_read(struct scanner *s, struct gpu_kernel *k)
{
	size_t depth = 1;

	while (depth && next(s)) {
		if (token_is(s, "{")) {
			depth++;
		} else if (token_is(s, "}")) {
			depth--;
		} else if (token_is(s, ".shared") && next(s)) {
			struct declared d = declaration(s);

			if (d.name && d.size < UINT32_MAX - k->shared)
				k->shared += (unsigned)d.size;
			free(d.name);
		}
	}
}

static void directives_read(struct scanner *s, struct gpu_kernel *k)
{
	while (s->len && !token_is(s, "{") && !token_is(s, ";")) {
		if (token_is(s, ".maxntid") || token_is(s, ".reqntid")) {
			k->bounds = numbers(s, NULL);
		} else if (token_is(s, ".reqnctapercluster")) {
			for (int i = 0; i < 3; i++)
				k->cluster[i] = 1;
			numbers(s, k->cluster);
		} else {
			next(s);
		}
	}
}

/* From the token after ".entry" to the end of its body. */
static void kernel_read(struct scanner *s, bool here)
{
	struct gpu_code *c = s->c;
	struct gpu_kernel k = {.param = c->params};
	char *name = s->len && is_word(*s->token) ? token_copy(s) : NULL;

	if (!name)
		return;
	k.name = name;
	if (next(s) && token_is(s, "(")) {
		params_read(s, &k);
		next(s);
	}
	directives_read(s, &k);
	if (token_is(s, "{"))
		body_read(s, &k);
	else
		here = false;	/* only declared */
	c->kernel = room_for(c->kernel, c->kernels, &s->kernels_room, sizeof(*c->kernel), &s->failed);
	if (here && !s->failed)
		c->kernel[c->kernels++] = k;
	else
		free(name);
}

static void module_read(struct scanner *s)
{
	bool external = false, managed = false;

	while (!s->failed && next(s)) {
		if (token_is(s, ".extern")) {
			external = true;
			continue;
		}
		if (token_is(s, ".entry") && next(s)) {
			kernel_read(s, !external);
		} else if (token_is(s, ".func")) {
			while (next(s) && !token_is(s, "{") && !token_is(s, ";"))
				;
			if (token_is(s, "{"))
				skip_braces(s);
		} else if (token_is(s, ".global") || token_is(s, ".const")) {
			bool constant = s->token[1] == 'c';

			managed = false;
			while (next(s) && (token_is(s, ".attribute") || token_is(s, "(") || token_is(s, ".managed") ||
					   token_is(s, ")")))
				managed |= token_is(s, ".managed");
			variable_add(s, external ? (struct declared){0} : declaration(s), constant, managed);
			skip_statement(s);
		} else if (token_is(s, ".section")) {
			while (next(s) && !token_is(s, "{"))
				;
			skip_braces(s);
		} else if (token_is(s, ".visible") || token_is(s, ".weak") || token_is(s, ".common")) {
			continue;
		}
		external = false;
	}
}

/* Texts were allocated one by one while their number was not known: they move into one block. */
static int names_move(struct gpu_code *c)
{
	size_t bytes = 1;
	char *to;

	for (size_t i = 0; i < c->kernels; i++)
		bytes += strlen(c->kernel[i].name) + 1;
	for (size_t i = 0; i < c->variables; i++)
		bytes += strlen(c->variable[i].name) + 1;
	to = c->names = malloc(bytes);
	for (size_t i = 0; i < c->kernels + c->variables; i++) {
		const char **name = i < c->kernels ? &c->kernel[i].name : &c->variable[i - c->kernels].name;
		char *old = (char *)(uintptr_t)*name;
		size_t n = strlen(old) + 1;

		if (to)
			memcpy(to, old, n);
		free(old);
		*name = to;
		to = to ? to + n : NULL;
	}
	return c->names ? 0 : -ENOMEM;
}

int gpu_code_from_ptx(struct gpu_code *c, struct bytes text)
{
	struct scanner s = {.at = (const char *)text.data, .end = (const char *)text.data + text.len, .c = c};
	struct gpu_target t;
	int code;

	*c = (struct gpu_code){0};
	if (!gpu_ptx_target(text, &t))
		return -EINVAL;
	module_read(&s);
	code = names_move(c);
	if (code || s.failed) {
		gpu_code_release(c);
		return code ? code : -EINVAL;
	}
	gpu_code_sort(c);
	return 0;
}

/* ".version 8.7", ".target sm_90a, debug". */
bool gpu_ptx_target(struct bytes text, struct gpu_target *t)
{
	struct scanner s = {.at = (const char *)text.data, .end = (const char *)text.data + text.len};
	int major = 0, minor = 0, used = 0;
	char word[32];

	*t = (struct gpu_target){0};
	if (!text.data || !next(&s) || !token_is(&s, ".version") || !next(&s) || s.len >= sizeof(word))
		return false;
	snprintf(word, sizeof(word), "%.*s", (int)s.len, s.token);
	if (sscanf(word, "%2d.%1d", &major, &minor) != 2)
		return false;
	t->ptx = major * 10 + minor;
	if (!next(&s) || !token_is(&s, ".target") || !next(&s) || s.len >= sizeof(word))
		return false;
	snprintf(word, sizeof(word), "%.*s", (int)s.len, s.token);
	if (sscanf(word, "sm_%4d%n", &t->arch, &used) != 1)
		return false;
	t->suffix = word[used] == 'a' || word[used] == 'f' ? word[used] : '\0';
	return true;
}
