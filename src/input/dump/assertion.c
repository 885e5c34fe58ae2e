/* SPDX-License-Identifier: Apache-2.0
 * The words of a failed assertion (see assertion.h).
 *
 * The code before the call gives run-time addresses. A dump with memory has the bytes there. A light one has only the
 * module: its symbols say which object it is and how long, but no longer where in the section it began. Then it is
 * the string of that length, when only one string can be meant.
 */
#include "input/dump/assertion.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/dump/assert_args.h"
#include "input/dump/assert_text.h"
#include "formats/image.h"
#include "base/banned.h"

#define DATA		".nv.global.init"
#define TEXT_MAX	4096
#define SECTIONS_MAX	4096	/* of memory, in one dump */
#define LINE_MAX	10000000

/* ---- where the bytes are ---------------------------------------------------------------------------- */

/* A text at this place, whole and printable; NULL otherwise. */
static char *text_at(struct bytes b, uint64_t off)
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
	const uint32_t *sections;
	size_t i, n = dump_sections(d, DUMP_GLOBAL, &sections);
	char *text = NULL;

	for (i = 0; i < n && i < SECTIONS_MAX && !text; i++) {
		uint64_t start = dump_address(d, sections[i]);

		if (start && address >= start)
			text = text_at(dump_bytes(d, sections[i]), address - start);
	}
	return text;
}

struct search {
	uint64_t address;
	const char *name;		/* search by name instead */
	size_t name_len;
	struct image_object found;
	struct text_group *group;
};

static bool has_address(void *arg, const struct image_object *o)
{
	struct search *q = arg;

	if (o->value != q->address || !o->size || !o->name)
		return false;
	q->found = *o;
	return true;
}

static bool has_name(void *arg, const struct image_object *o)
{
	struct search *q = arg;

	if (!o->name || o->name_max <= q->name_len || memcmp(o->name, q->name, q->name_len + 1) != 0)
		return false;
	q->found = *o;
	return true;
}

static bool count_object(void *arg, const struct image_object *o)
{
	struct search *q = arg;

	if (o->size == q->found.size)
		text_group_symbol(q->group, o->name, o->name_max);
	return false;
}

/* The image as it was before relocation has offsets. */
static char *text_original(const struct assertion_source *s, const struct image_object *o)
{
	size_t len = strnlen(o->name, o->name_max < 256 ? o->name_max : 256);
	struct search q = {.name = o->name, .name_len = len};
	struct bytes data;

	if (!s->original.data || len == 0 || len >= o->name_max || len >= 256 ||
	    !image_section(s->original, DATA, &data))
		return NULL;
	image_objects(s->original, DATA, has_name, &q);
	return q.found.size == o->size ? text_at(data, q.found.value) : NULL;
}

_Static_assert(ASSERTION_CHOICES == TEXT_CHOICES, "as many as are chosen");

/* What is known of one argument: the text, or a few that it can be. */
struct finding {
	char *text;
	const char *choice[TEXT_CHOICES];
	size_t n;
};

/* The strings of this object's length that it can be. */
static void text_by_length(struct finding *f, const struct assertion_source *s, const struct image_object *o,
			   enum text_role role)
{
	struct text_group g = {.size = o->size, .role = role, .own_name = s->name};
	struct search q = {.found = *o, .group = &g};
	struct bytes data;

	if (o->size > TEXT_MAX || !image_section(s->image, DATA, &data))
		return;
	image_objects(s->image, DATA, count_object, &q);
	f->n = text_group_choose(&g, data, f->choice);
	if (f->n == 1)
		f->text = xstrdup(f->choice[0]);
}

static void text_find(struct finding *f, const struct assertion_source *s, uint64_t address, enum text_role role)
{
	struct search q = {.address = address};

	*f = (struct finding){.text = text_in_memory(s->dump, address)};
	if (f->text)
		return;
	image_objects(s->image, DATA, has_address, &q);
	if (!q.found.name)
		return;
	f->text = text_original(s, &q.found);
	if (!f->text)
		text_by_length(f, s, &q.found, role);
}

bool assertion_find(struct assertion *a, const struct assertion_source *s)
{
	static const enum text_role role[ASSERT_ARGS] = {
		[ASSERT_MESSAGE] = TEXT_MESSAGE, [ASSERT_FILE] = TEXT_FILE, [ASSERT_FUNCTION] = TEXT_FUNCTION,
	};
	char **out[ASSERT_ARGS] = {
		[ASSERT_MESSAGE] = &a->condition, [ASSERT_FILE] = &a->file, [ASSERT_FUNCTION] = &a->function,
	};
	struct assert_args args;
	struct finding f;
	size_t i, k;

	*a = (struct assertion){.line = 0};
	if (!assert_args_find(s->image, s->arch, s->back, &args))
		return false;
	for (i = 0; i < ASSERT_ARGS; i++) {
		if (!out[i] || !args.known[i])
			continue;
		text_find(&f, s, args.value[i], role[i]);
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
