/* SPDX-License-Identifier: Apache-2.0
 * From a program's names to all of its objects (see holders_search.h).
 *
 * Roots are taken one after the other, each with all that it leads to: an object has the name that its author would give it, the
 * main program's rather than that of an inner function, which is nearer but only passes it on.
 */
#include "find/memory/holders_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "case/line.h"

#define NODES_MAX	(4u << 20)
#define MANY		10000u	/* items: others may be found sooner */
#define THREADS_MAX	256u
#define WALKS		10
#define TRACEBACK_MAX	512u
#define MODULES_MAX	16384u
#define IMPORT_KEYS	16u	/* the import puts its own names into a module first */

static bool same_object(const void *list, uint32_t i, const void *key)
{
	return ((const struct node *)list)[i].object == *(const uint64_t *)key;
}

static bool same_number(const void *list, uint32_t i, const void *key)
{
	return ((const uint64_t *)list)[i] == *(const uint64_t *)key;
}

static bool is_module_dict(const struct search *s, uint64_t dict)
{
	return map_find(&s->dicts, map_hash(dict), same_number, s->dict, &dict) != MAP_NONE;
}

/* False: it was known before, or there are too many. */
static bool put_node(struct search *s, struct node n)
{
	uint32_t room = s->n < NODES_MAX ? (uint32_t)s->n : MAP_NONE;

	s->full |= room == MAP_NONE;
	if (room == MAP_NONE || map_put(&s->seen, map_hash(n.object), same_object, s->node, &n.object, room) != room)
		return false;
	s->node = xgrow(s->node, s->n, &s->cap, sizeof(*s->node));
	s->node[s->n++] = n;
	return true;
}

bool search_is_module_part(struct search *s, uint32_t i)
{
	const struct node *n = &s->node[i];
	char name[32];

	return n->link == LINK_ATTRIBUTE && n->name && pyproc_text(s->heap->p, n->name, name, sizeof(name)) &&
	       (!strcmp(name, "_modules") || !strcmp(name, "_parameters") || !strcmp(name, "_buffers"));
}

static bool leads_through(const struct search *s, uint32_t from, uint32_t node)
{
	while (from != NO_NODE && from != node)
		from = s->node[from].parent;
	return from == node;
}

/* A parameter is its module's, although an optimizer's list of them may be nearer. */
static void claim(struct search *s, uint32_t parent, const struct py_edge *e)
{
	uint32_t i = map_find(&s->seen, map_hash(e->to), same_object, s->node, &e->to);

	if (i == MAP_NONE || s->node[i].parent == NO_NODE || s->node[i].parent == parent ||
	    !search_is_module_part(s, parent) || search_is_module_part(s, s->node[i].parent) ||
	    leads_through(s, parent, i))
		return;
	s->node[i].parent = parent;
	s->node[i].name = e->name;
	s->node[i].at = e->at;
	s->node[i].link = (uint8_t)e->link;
}

static void put_edge(struct search *s, uint32_t parent, const struct py_edge *e)
{
	const struct py_type *t = pyheap_type(s->heap, e->to);
	enum py_kind kind = t ? t->kind : PY_NOTHING;

	if ((kind == PY_DICT && is_module_dict(s, e->to)) ||
	    (kind == PY_MODULE && is_module_dict(s, pyheap_module_dict(s->heap, e->to))))
		return;
	if (!put_node(s,
		      (struct node){
			      .object = e->to, .name = e->name, .parent = parent, .at = e->at, .link = (uint8_t)e->link})) {
		if (kind == PY_TENSOR)
			claim(s, parent, e);
		return;
	}
	if (kind == PY_TENSOR) {
		s->tensor = xgrow(s->tensor, s->n_tensors, &s->cap_tensors, sizeof(*s->tensor));
		s->tensor[s->n_tensors++] = (uint32_t)(s->n - 1);
	}
}

static bool is_namespace(const struct node *n)
{
	return n->root == ROOT_MODULE || n->link == LINK_DICT;
}

static void edges_of(struct search *s, const struct node *n)
{
	s->edges.n = 0;
	s->edges.full = false;
	if (n->root == ROOT_VARIABLES)
		pyheap_variables(s->heap, &s->raw[n->at].raw, &s->edges);
	else
		pyheap_edges(s->heap, n->object, &s->edges);
	for (size_t i = 0; is_namespace(n) && i < s->edges.n; i++)
		if (s->edges.list[i].link == LINK_ENTRY && s->edges.list[i].name)
			s->edges.list[i].link = LINK_ATTRIBUTE;
}

static void follow(struct search *s, uint32_t i)
{
	struct node n = s->node[i];

	edges_of(s, &n);
	s->full |= s->edges.full;
	for (size_t k = 0; k < s->edges.n && pyheap_in_time(s->heap, k); k++)
		put_edge(s, i, &s->edges.list[k]);
}

static bool has_many(struct search *s, uint64_t object)
{
	uint64_t n = 0;

	return pyheap_length(s->heap, object, &n) && n > MANY;
}

/* Nearest first; large containers wait for search_large(). */
static void follow_all(struct search *s)
{
	for (; s->next < s->n && !s->heap->late; s->next++) {
		if (!has_many(s, s->node[s->next].object)) {
			follow(s, (uint32_t)s->next);
			continue;
		}
		s->later = xgrow(s->later, s->n_later, &s->cap_later, sizeof(*s->later));
		s->later[s->n_later++] = (uint32_t)s->next;
	}
}

static void follow_root(struct search *s, struct node root)
{
	root.parent = NO_NODE;
	root.link = LINK_WORD;
	if (root.object && put_node(s, root))
		follow_all(s);
}

/* Not one that came with Python or was installed. */
static bool is_users_file(const struct search *s, const char *path)
{
	return frame_owner(path, s->torch_path) == OWNER_USER;
}

static bool is_users(struct search *s, uint64_t dict)
{
	uint64_t file = pyheap_lookup(s->heap, dict, "__file__", IMPORT_KEYS);
	char path[1024];

	return file && pyproc_text(s->heap->p, file, path, sizeof(path)) && is_users_file(s, path);
}

static bool is_users_code(struct search *s, uint64_t code)
{
	uint64_t file = 0;
	char path[1024];

	return remote_word(s->heap->p->r, code + s->heap->p->l.filename, &file) && file &&
	       pyproc_text(s->heap->p, file, path, sizeof(path)) && is_users_file(s, path);
}

static size_t list_modules(struct search *s, struct module_dict *list)
{
	uint64_t modules = pyheap_modules(s->heap);
	char name[16];
	size_t n = 0;

	s->edges.n = 0;
	if (modules)
		pyheap_edges(s->heap, modules, &s->edges);
	for (size_t i = 0; i < s->edges.n && n < MODULES_MAX; i++) {
		const struct py_edge e = s->edges.list[i];
		uint64_t dict = pyheap_module_dict(s->heap, e.to);

		if (!dict ||
		    map_put(&s->dicts, map_hash(dict), same_number, s->dict, &dict, (uint32_t)s->n_dicts) != s->n_dicts)
			continue;
		s->dict = xgrow(s->dict, s->n_dicts, &s->cap_dicts, sizeof(*s->dict));
		s->dict[s->n_dicts++] = dict;
		if (e.name && pyproc_text(s->heap->p, e.name, name, sizeof(name)) && !strcmp(name, "__main__"))
			s->main_dict = dict;
		list[n++] = (struct module_dict){.name = e.name, .dict = dict, .user = is_users(s, dict)};
	}
	return n;
}

static void search_modules(struct search *s, bool users)
{
	const struct module_dict *list = s->module;

	for (size_t i = 0; i < s->n_modules; i++)
		if (list[i].user == users && list[i].dict != s->main_dict)
			follow_root(s, (struct node){.object = list[i].dict, .name = list[i].name, .root = ROOT_MODULE});
}

static void search_traceback(struct search *s, const uint64_t *frame, size_t n, bool users)
{
	struct py_raw raw;

	for (size_t i = 0; i < n; i++)
		if (pyheap_frame(s->heap, frame[i], &raw) && is_users_code(s, raw.code) == users)
			follow_root(s, (struct node){.object = frame[i], .root = ROOT_FRAME});
}

static void search_thread(struct search *s, const struct py_walked *w, uint64_t state, bool users)
{
	for (size_t k = w->n; k-- > 0;) {
		if (is_users_code(s, w->raw[k].code) != users)
			continue;
		s->raw = xgrow(s->raw, s->n_raw, &s->cap_raw, sizeof(*s->raw));
		s->raw[s->n_raw] = (struct root_frame){w->raw[k], state};
		follow_root(s, (struct node){.object = w->raw[k].frame, .at = (uint32_t)s->n_raw++, .root = ROOT_VARIABLES});
	}
}

/* The stack of a thread that runs may change while it is read. */
static bool walk(struct search *s, uint64_t state, struct py_walked *w)
{
	for (int i = 0; i < WALKS; i++) {
		if (pyproc_walk(s->heap->p, state, w))
			return true;
		remote_forget(s->heap->p->r);
	}
	return false;
}

static void search_threads(struct search *s, bool users)
{
	static struct py_walked w;
	struct py_thread thread[THREADS_MAX];
	bool whole;
	size_t n = pyproc_threads(s->heap->p, thread, THREADS_MAX, &whole);

	for (size_t i = 0; i < n; i++)
		if (walk(s, thread[i].state, &w))
			search_thread(s, &w, thread[i].state, users);
}

/* What the program set in contextvars: that is in no variable of its own. */
static void search_contexts(struct search *s)
{
	struct py_thread thread[THREADS_MAX];
	bool whole;
	size_t n = pyproc_threads(s->heap->p, thread, THREADS_MAX, &whole);

	while (n-- > 0)		/* the main thread is the last one */
		follow_root(s, (struct node){.object = pyheap_context(s->heap, thread[n].state),
					     .name = thread[n].state,
					     .root = ROOT_CONTEXT});
}

void search_names(struct search *s, struct pyheap *heap, uint64_t exception, const char *torch_path)
{
	uint64_t frame[TRACEBACK_MAX];
	size_t n;

	*s = (struct search){.heap = heap, .torch_path = torch_path};
	s->module = xcalloc(MODULES_MAX, sizeof(*s->module));
	s->n_modules = list_modules(s, s->module);
	follow_root(s, (struct node){.object = s->main_dict, .root = ROOT_MODULE});
	n = exception ? pyheap_traceback(heap, exception, frame, TRACEBACK_MAX) : 0;
	for (int users = 1; users >= 0; users--) {
		search_traceback(s, frame, n, users);
		search_threads(s, users);
		if (users) {
			search_modules(s, true);
			search_contexts(s);
		}
	}
	follow_root(s, (struct node){.object = exception, .root = ROOT_EXCEPTION});
}

void search_large(struct search *s)
{
	for (; s->done < s->n_later && !s->heap->late; s->done++) {
		follow(s, s->later[s->done]);
		follow_all(s);
	}
}

void search_rest(struct search *s)
{
	search_modules(s, false);
	search_large(s);
}

void search_release(struct search *s)
{
	free(s->module);
	free(s->node);
	free(s->tensor);
	free(s->raw);
	free(s->dict);
	free(s->later);
	free(s->edges.list);
	map_release(&s->seen);
	map_release(&s->dicts);
	*s = (struct search){0};
}

bool search_holds(struct search *s, uint32_t i)
{
	const struct node *n = &s->node[i], *parent;
	struct py_edge e = {.to = n->object, .name = n->name, .at = n->at, .link = n->link};

	if (n->parent == NO_NODE)
		return true;
	parent = &s->node[n->parent];
	if (parent->root != ROOT_VARIABLES && pyheap_at_place(s->heap, parent->object, &e))
		return true;
	edges_of(s, parent);
	for (size_t k = 0; k < s->edges.n; k++)
		if (s->edges.list[k].to == n->object)
			return true;
	return false;
}

static bool is_loaded(struct search *s, uint64_t dict)
{
	uint64_t modules = pyheap_modules(s->heap);

	s->edges.n = 0;
	if (modules)
		pyheap_edges(s->heap, modules, &s->edges);
	for (size_t i = 0; i < s->edges.n; i++)
		if (pyheap_module_dict(s->heap, s->edges.list[i].to) == dict)
			return true;
	return false;
}

static bool still_runs(struct search *s, const struct root_frame *f)
{
	static struct py_walked w;

	if (!pyproc_walk(s->heap->p, f->thread, &w))
		return false;
	for (size_t i = 0; i < w.n; i++)
		if (w.raw[i].frame == f->raw.frame && w.raw[i].code == f->raw.code)
			return true;
	return false;
}

bool search_stands(struct search *s, uint32_t i)
{
	const struct node *n = &s->node[i];

	switch (n->root) {
	case ROOT_MODULE: return is_loaded(s, n->object);
	case ROOT_VARIABLES: return still_runs(s, &s->raw[n->at]);
	case ROOT_CONTEXT: return pyheap_context(s->heap, n->name) == n->object;
	default: return false;
	}
}
