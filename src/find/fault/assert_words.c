/* SPDX-License-Identifier: Apache-2.0
 * The text of a failed assertion (see assert_words.h).
 *
 * The code before the call gives run-time addresses. A dump with memory has the bytes there. A light one has only the
 * module: its symbols say which object it is and how long, but not where in the section it began. Then it is
 * the string of that length, if only one string is possible.
 */
#include "find/fault/assert_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/image.h"
#include "find/fault/assert_args.h"

#define DATA		".nv.global.init"
#define TEXT_MAX	4096
#define LINE_MAX	10000000
#define SCAN_MAX	((size_t)16 << 20)	/* bytes of a section that are read */
#define STRINGS_MAX	4096

static bool text_is_char(uint8_t c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n';
}

static bool ends_with(const char *s, size_t n, const char *end)
{
	size_t len = strlen(end);

	return n > len && memcmp(s + n - len, end, len) == 0;
}

/* A path, or a name with the ending of a source file. */
static bool is_file(const char *s, size_t n)
{
	static const char *const ends[] = {".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c", ".inl", ".inc", ".py",
					   ".hip"};
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends_with(s, n, ends[i]))
			return !memchr(s, '(', n) && !memchr(s, '<', n) && !memchr(s, '>', n) && !memchr(s, '=', n);
	return false;
}

/* "name", "operator()", "~name" */
static bool is_identifier(const char *s, size_t n)
{
	size_t i = n && s[0] == '~' ? 1 : 0;

	if (n > 8 && memcmp(s, "operator", 8) == 0 && !isalnum((unsigned char)s[8]) && s[8] != '_')
		return true;
	if (i >= n || isdigit((unsigned char)s[i]))
		return false;
	for (; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '<' && s[i] != '>')
			return false;
	return true;
}

/* "void gather(float *, int) [with T = float]": has parameters, but no operator between operands. */
static bool is_signature(const char *s, size_t n)
{
	static const char *const operators[] = {" && ", " || ", " < ", " > ", " <= ", " >= ", " == ", " != ", " + ",
						" - ", "!"};
	size_t i;

	if (!memchr(s, '(', n) || !memchr(s, ' ', n) || (s[n - 1] != ')' && s[n - 1] != ']'))
		return false;
	for (i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (memmem(s, n, operators[i], strlen(operators[i])))
			return false;
	return isalpha((unsigned char)s[0]) || s[0] == '_';
}

/* What is known about the objects of one size. */
struct text_group {
	uint64_t size;			/* bytes, with the zero at the end */
	enum assert_arg role;		/* of the one looked for */
	const char *own_name;		/* of the kernel or function that asserted; may be NULL */
	size_t n_functions;		/* objects of this size that are names of functions */
};

static bool name_begins(const char *name, uint64_t max, const char *with)
{
	size_t n = strlen(with);

	return name && max >= n && memcmp(name, with, n) == 0;
}

/* Counts an object of this size when it is the name of a function, by how compilers name them. */
static void text_group_symbol(struct text_group *g, const char *name, uint64_t max)
{
	static const char *const names[] = {"__unnamed_", "__PRETTY_FUNCTION__", "__func__", "__FUNCTION__",
					    "assertFunc_"};
	bool function = false;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		function |= name_begins(name, max, names[i]);
	g->n_functions += function;
}

struct text_strings {
	const char *text[STRINGS_MAX];	/* borrowed, of the group's length */
	size_t n;
	bool more;
};

/* Strings of exactly this length: preceded by something that is not a character. */
static void strings_of_length(struct text_strings *s, struct bytes data, size_t len)
{
	size_t most = data.len < SCAN_MAX ? data.len : SCAN_MAX, from = 0, i;

	for (i = 0; i < most; i++) {
		if (text_is_char(data.data[i]))
			continue;
		if (data.data[i] == '\0' && i - from == len && s->n < STRINGS_MAX)
			s->text[s->n++] = (const char *)data.data + from;
		else if (data.data[i] == '\0' && i - from == len)
			s->more = true;
		from = i + 1;
	}
}

/* "at::native::gather<float>(float*)" and "gather": the same function? */
static bool is_own_name(const struct text_group *g, const char *s, size_t n)
{
	const char *at = g->own_name;

	while (at && (at = strstr(at, s)) != NULL) {
		bool begun = at == g->own_name || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

		if (begun && !isalnum((unsigned char)at[n]) && at[n] != '_')
			return true;
		at++;
	}
	return false;
}

static bool may_be(const struct text_group *g, const char *s, size_t n, size_t n_names)
{
	bool file = is_file(s, n), name = !file && (is_identifier(s, n) || is_signature(s, n));

	switch (g->role) {
	case ASSERT_FILE:
		return file;
	case ASSERT_FUNCTION:
		return name;
	default:
		/* a condition can look like a name, when there are more such strings than names of functions */
		return !file && (!name || n_names > g->n_functions);
	}
}

static bool choice_is_new(const char *const *choice, size_t n, const char *text)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(choice[i], text) == 0)
			return false;
	return true;
}

/* The candidate strings of the section, borrowed from it. Returns how many; 0 also when there are too many. */
static size_t text_group_choose(const struct text_group *g, struct bytes data, const char *choice[ASSERTION_CHOICES])
{
	size_t len = g->size ? (size_t)g->size - 1 : 0, i, n_names = 0, n = 0;
	struct text_strings *s = xcalloc(1, sizeof(*s));

	if (len && data.data)
		strings_of_length(s, data, len);
	for (i = 0; i < s->n; i++)
		n_names += !is_file(s->text[i], len) &&
			   (is_identifier(s->text[i], len) || is_signature(s->text[i], len));
	for (i = 0; i < s->n && n <= ASSERTION_CHOICES; i++) {
		if (!may_be(g, s->text[i], len, n_names))
			continue;
		/* of several names, prefer the asserting function's own */
		if (g->role == ASSERT_FUNCTION && is_own_name(g, s->text[i], len)) {
			choice[0] = s->text[i];
			n = 1;
			break;
		}
		if (!choice_is_new(choice, n < ASSERTION_CHOICES ? n : ASSERTION_CHOICES, s->text[i]))
			continue;
		if (n < ASSERTION_CHOICES)
			choice[n] = s->text[i];
		n++;
	}
	n = s->more || n > ASSERTION_CHOICES ? 0 : n;
	free(s);
	return n;
}

/* A complete, printable text at this address; NULL otherwise. */
static char *text_at_offset(struct bytes b, uint64_t off)
{
	size_t n = 0, most;

	if (!b.data || off >= b.len)
		return NULL;
	most = b.len - off < TEXT_MAX ? (size_t)(b.len - off) : TEXT_MAX;
	while (n < most && text_is_char(b.data[off + n]))
		n++;
	return n && n < most && b.data[off + n] == '\0' ? xstrdup((const char *)b.data + off) : NULL;
}

static char *text_in_memory(struct dump *d, uint64_t address)
{
	uint8_t bytes[TEXT_MAX];
	size_t n = 0, step;

	/* at the end of an allocation one by one */
	while (n < sizeof(bytes) && !memchr(bytes, '\0', n)) {
		step = sizeof(bytes) - n < 64 ? sizeof(bytes) - n : 64;
		while (step && !dump_memory(d, address + n, bytes + n, step))
			step = step > 1 ? 1 : 0;
		if (!step)
			break;
		n += step;
	}
	return text_at_offset((struct bytes){bytes, n}, 0);
}

struct object_search {
	uint64_t address;
	const char *name;		/* search by name instead */
	size_t name_len;
	struct image_object found;
	struct text_group *group;
};

static bool object_has_address(void *arg, const struct image_object *o)
{
	struct object_search *q = arg;

	if (o->value != q->address || !o->size || !o->name)
		return false;
	q->found = *o;
	return true;
}

static bool object_has_name(void *arg, const struct image_object *o)
{
	struct object_search *q = arg;

	if (!o->name || o->name_max <= q->name_len || memcmp(o->name, q->name, q->name_len + 1) != 0)
		return false;
	q->found = *o;
	return true;
}

static bool count_object(void *arg, const struct image_object *o)
{
	struct object_search *q = arg;

	if (o->size == q->found.size)
		text_group_symbol(q->group, o->name, o->name_max);
	return false;
}

/* The image as it was before relocation has offsets. */
static char *text_original(const struct assertion_source *s, const struct image_object *o)
{
	size_t len = strnlen(o->name, o->name_max < 256 ? o->name_max : 256);
	struct object_search q = {.name = o->name, .name_len = len};
	struct bytes data;

	if (!s->original.data || len == 0 || len >= o->name_max || len >= 256 ||
	    !image_section(s->original, DATA, &data))
		return NULL;
	image_objects(s->original, DATA, object_has_name, &q);
	return q.found.size == o->size ? text_at_offset(data, q.found.value) : NULL;
}

/* What is known about one argument: the text, or a few candidates. */
struct text_finding {
	char *text;
	const char *choice[ASSERTION_CHOICES];
	size_t n;
};

/* The candidate strings of this object's length. */
static void text_by_length(struct text_finding *f, const struct assertion_source *s, const struct image_object *o,
			   enum assert_arg role)
{
	struct text_group g = {.size = o->size, .role = role, .own_name = s->name};
	struct object_search q = {.found = *o, .group = &g};
	struct bytes data;

	if (o->size > TEXT_MAX || !image_section(s->image, DATA, &data))
		return;
	image_objects(s->image, DATA, count_object, &q);
	f->n = text_group_choose(&g, data, f->choice);
	if (f->n == 1)
		f->text = xstrdup(f->choice[0]);
}

static void text_find(struct text_finding *f, const struct assertion_source *s, uint64_t address, enum assert_arg role)
{
	struct object_search q = {.address = address};

	*f = (struct text_finding){.text = text_in_memory(s->dump, address)};
	if (f->text)
		return;
	image_objects(s->image, DATA, object_has_address, &q);
	if (!q.found.name)
		return;
	f->text = text_original(s, &q.found);
	if (!f->text)
		text_by_length(f, s, &q.found, role);
}

bool assertion_find(struct assertion *a, const struct assertion_source *s)
{
	char **out[ASSERT_ARGS] = {
		[ASSERT_MESSAGE] = &a->condition, [ASSERT_FILE] = &a->file, [ASSERT_FUNCTION] = &a->function,
	};
	struct assert_args args;
	struct text_finding f;
	size_t i, k;

	*a = (struct assertion){.line = 0};
	if (!assert_args_find(s->image, s->arch, s->back, &args))
		return false;
	for (i = 0; i < ASSERT_ARGS; i++) {
		if (!out[i] || !args.known[i])
			continue;
		text_find(&f, s, args.value[i], (enum assert_arg)i);
		*out[i] = f.text;
		for (k = 0; i == ASSERT_MESSAGE && !f.text && k < f.n; k++)
			a->one_of[a->n_one_of++] = xstrdup(f.choice[k]);
	}
	if (args.known[ASSERT_LINE] && args.value[ASSERT_LINE] < LINE_MAX)
		a->line = (uint32_t)args.value[ASSERT_LINE];
	return true;
}

void assertion_free(struct assertion *a)
{
	size_t i;

	free(a->condition);
	free(a->file);
	free(a->function);
	for (i = 0; i < a->n_one_of; i++)
		free(a->one_of[i]);
}
