/* SPDX-License-Identifier: Apache-2.0
 * The way to an object in the words of the program (see holders_names.h).
 *
 * Dictionaries of attributes, cells and tuples of cells are CPython's own business and have no name. Items of a list are all "[*]": which one
 * it is does not matter to a reader, how many there are does.
 */
#include "find/memory/holders_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FEW		8u	/* items of a tuple or a dictionary that are told apart */
#define NODES_MAX	256u	/* from a root */

static bool text_of(struct search *s, uint64_t name, char *to, size_t size)
{
	const struct py_type *t = name ? pyheap_type(s->heap, name) : NULL;

	return t && !strcmp(t->name, "str") && pyproc_text(s->heap->p, name, to, size);
}

/* Anything else may be anybody's data: it is not shown. */
static bool is_identifier(const char *text)
{
	if (!(isalpha((unsigned char)*text) || *text == '_') || strlen(text) > 60)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

static const char *attribute(struct search *s, uint64_t name, struct pool *pool)
{
	char text[128];

	if (!text_of(s, name, text, sizeof(text)))
		return "[*]";
	if (is_identifier(text))
		return pool_printf(pool, ".%s", text);
	return is_number(text) ? "[*]" : "[\xe2\x80\xa6]";
}

static enum py_kind kind_at(struct search *s, uint32_t node)
{
	const struct py_type *t = node == NO_NODE ? NULL : pyheap_type(s->heap, s->node[node].object);

	return t ? t->kind : PY_NOTHING;
}

static const char *entry(struct search *s, const struct node *n, const struct node *parent, struct pool *pool)
{
	uint64_t length = 0;
	char text[128];

	if (kind_at(s, parent->parent) == PY_LOCAL)	/* of all threads: each has the variables by the same names */
		return "";
	if (!pyheap_length(s->heap, parent->object, &length) || length > FEW || !text_of(s, n->name, text, sizeof(text)))
		return "[*]";
	return is_identifier(text) ? pool_printf(pool, "['%s']", text) : "[*]";
}

static const char *item(struct search *s, const struct node *n, const struct node *parent, struct pool *pool)
{
	const struct py_type *t = pyheap_type(s->heap, parent->object);
	enum py_kind kind = t ? t->kind : PY_NOTHING;
	uint64_t length = 0;

	char name[96];

	if (kind == PY_TUPLE && pyheap_field(s->heap, parent->object, n->at, name, sizeof(name)) && is_identifier(name))
		return pool_printf(pool, ".%s", name);
	if (!pyheap_length(s->heap, parent->object, &length) || kind == PY_SET || length > (kind == PY_TUPLE ? FEW : 1))
		return "[*]";
	return pool_printf(pool, "[%u]", n->at);
}

static bool frame_of(struct search *s, const struct node *n, struct py_frame *to, struct pool *pool)
{
	struct py_raw raw;

	if (n->root == ROOT_VARIABLES)
		return pyproc_frame(s->heap->p, &s->raw[n->at].raw, to, pool);
	if (pyheap_frame(s->heap, n->object, &raw) || pyheap_generator(s->heap, n->object, &raw))
		return pyproc_frame(s->heap->p, &raw, to, pool);
	return false;
}

/* Of a generator, a coroutine; up to 3.10, its frame is an object of its own. */
static const char *generator(struct search *s, const struct node *n)
{
	const struct py_type *t = pyheap_type(s->heap, n->object);

	if (t && t->kind == PY_FRAME && n->parent != NO_NODE)
		t = pyheap_type(s->heap, s->node[n->parent].object);
	return t && t->kind == PY_GENERATOR ? t->name : NULL;
}

/* Of a frame that an object keeps, or of what a function uses from outside. */
static const char *variable(struct search *s, const struct node *n, const struct node *parent, struct pool *pool)
{
	struct py_frame f = {.function = "?"};
	const char *of = n->link == LINK_CLOSED ? "closure of" : generator(s, parent);
	char text[128];

	if (!text_of(s, n->name, text, sizeof(text)) || !is_identifier(text))
		return "";
	if (parent->root != ROOT_NONE)
		return pool_printf(pool, ".%s", text);
	if (n->link == LINK_CLOSED)
		pyheap_function(s->heap, parent->object, &f, pool);
	else
		frame_of(s, parent, &f, pool);
	return pool_printf(pool, " \xe2\x86\x92 %s %s(): %s", of ? of : "frame of", f.function, text);
}

/* Of its own words, only the result leads to anything but its task, its exception and its loop; asyncio's own class has no names for them. */
static bool is_result(struct search *s, const struct py_type *future, const struct node *n)
{
	uint32_t at = s->heap->p->l.minor < 10 ? PY_FUTURE_RESULT_OLD : PY_FUTURE_RESULT;

	return future && n->at == at &&
	       (!strcmp(future->name, "_asyncio.Task") || !strcmp(future->name, "_asyncio.Future"));
}

static const char *part(struct search *s, const struct node *n, const struct node *parent, struct pool *pool)
{
	const struct py_type *t = pyheap_type(s->heap, n->object), *of;
	char name[96];

	if (t && t->kind == PY_FRAME)
		return "";
	if (pyheap_member(s->heap, parent->object, n->at, name, sizeof(name)) && is_identifier(name))
		return strcmp(name, "tb_next") != 0 ? pool_printf(pool, ".%s", name) : "";
	if (t && t->kind == PY_TRACEBACK) {
		of = pyheap_type(s->heap, parent->object);
		return of && of->kind == PY_EXCEPTION ? ".__traceback__" : "";
	}
	of = pyheap_type(s->heap, parent->object);
	if (is_result(s, of, n))
		return ".result()";
	if (of && strstr(of->name, "lru_cache_wrapper") && t && t->kind == PY_DICT)
		return ".cache";
	if (of && of->kind == PY_FUNCTION && t && t->kind == PY_TUPLE)
		return ".__defaults__";
	if (of && !strcmp(of->name, "method"))
		return ".__self__";
	if (of && of->kind == PY_EXCEPTION && t && t->kind == PY_EXCEPTION)
		return ".__context__";
	return "";
}

/* The variables that one thread has in a threading.local. */
static bool is_local(struct search *s, const struct node *n)
{
	return n->parent != NO_NODE && kind_at(s, s->node[n->parent].parent) == PY_LOCAL;
}

static const char *of_context(struct search *s, const struct node *n, struct pool *pool)
{
	char text[128];

	return text_of(s, n->name, text, sizeof(text)) && is_identifier(text) ? pool_printf(pool, "[%s]", text) : "[*]";
}

static const char *step(struct search *s, const struct node *n, const struct node *parent, struct pool *pool)
{
	switch (n->link) {
	case LINK_ATTRIBUTE: return attribute(s, n->name, pool);
	case LINK_ENTRY: return is_local(s, parent) ? attribute(s, n->name, pool) : entry(s, n, parent, pool);
	case LINK_ITEM: return item(s, n, parent, pool);
	case LINK_VARIABLE:
	case LINK_CLOSED: return variable(s, n, parent, pool);
	case LINK_CONTEXT: return of_context(s, n, pool);
	case LINK_WORD: return part(s, n, parent, pool);
	default: return "";
	}
}

static bool add_step(struct name_way *to, const char *text, uint64_t object, uint64_t within)
{
	struct name_step *last = to->n ? &to->step[to->n - 1] : NULL;

	if (last && last->text[0] == '.' && !strcmp(last->text, text)) {	/* a linked list: "head.next" */
		last->object = object;
		return true;
	}
	if (to->n == STEPS_MAX)
		return false;
	to->step[to->n++] = (struct name_step){.text = text, .object = object, .within = within};
	return true;
}

static bool begin(struct search *s, const struct node *root, struct name_way *to, struct pool *pool)
{
	char name[96];

	if (root->root == ROOT_EXCEPTION)
		return add_step(to, "the exception", root->object, 0);
	if (root->root == ROOT_CONTEXT)
		return add_step(to, "context", root->object, 0);
	if (root->root != ROOT_MODULE || root->object == s->main_dict || !text_of(s, root->name, name, sizeof(name)))
		return true;
	return add_step(to, pool_strdup(pool, name), root->object, 0);
}

/* Where a way ends among the parameters of a module, all of these are one. Where it goes on, it goes through that module's parts. */
bool name_way(struct search *s, uint32_t node, struct name_way *to, struct pool *pool)
{
	uint32_t way[NODES_MAX];
	size_t n = 0, inside = SIZE_MAX;

	for (uint32_t i = node; i != NO_NODE; i = s->node[i].parent) {
		if (n == NODES_MAX)
			return false;
		way[n++] = i;
	}
	to->n = 0;
	to->root = way[n - 1];
	if (!begin(s, &s->node[to->root], to, pool))
		return false;
	for (size_t k = n - 1; k-- > 0;) {
		const struct node *it = &s->node[way[k]], *parent = &s->node[it->parent];
		bool of_part = it->parent != NO_NODE && search_is_module_part(s, it->parent);
		const char *text;

		if (search_is_module_part(s, way[k])) {
			if (inside == SIZE_MAX)
				inside = to->n;
			continue;
		}
		if (it->link == LINK_ATTRIBUTE && !of_part)
			inside = SIZE_MAX;
		text = of_part ? attribute(s, it->name, pool) : step(s, it, parent, pool);
		if (*text && !add_step(to, text, it->object, !strcmp(text, "[*]") ? parent->object : 0))
			return false;
	}
	if (inside != SIZE_MAX && inside < to->n) {
		to->n = inside;
		return add_step(to, "", 0, 0);
	}
	return true;
}

bool name_of_root(struct search *s, uint32_t root, struct py_frame *to, struct pool *pool)
{
	const struct node *n = &s->node[root];

	return (n->root == ROOT_FRAME || n->root == ROOT_VARIABLES) && frame_of(s, n, to, pool);
}
