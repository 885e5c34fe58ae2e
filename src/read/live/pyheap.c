/* SPDX-License-Identifier: Apache-2.0
 * Objects and their references, read from outside (see pyheap.h).
 *
 * Two rules cover most of CPython's classes. An object's own words, as many as its class says, are references where they point to
 * objects; that holds for cells, methods, partial functions, exceptions, tracebacks, slots, caches of functions. What keeps its references
 * elsewhere is listed: dictionaries, lists, sets, deques, frames, managed attributes.
 */
#include "read/live/pyheap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/proc.h"

#define INLINE_VALUES	(1u << 2)
#define MANAGED_DICT	(1u << 4)
#define TRACKED		(1u << 14)	/* by the garbage collector: all that can refer to others are */
#define CLASS		(1u << 31)
/* Of a bounded cache of a function: the garbage collector does not know it, and its dictionary alone keeps it, not its neighbors. */
#define CACHE_ENTRY	"functools._lru_list_elem"
#define ARRAY		"numpy.ndarray"	/* likewise */
#define TYPES_MAX	(1u << 16)
#define BASES_MAX	32u
#define WORDS_MAX	64u	/* of an object that are looked at */
#define CHAIN_MAX	4096u	/* of tracebacks */
#define CHECK_EVERY	4096u	/* items between two looks at the clock */
#define CONTEXT_WORDS	64u	/* of a part of a context */
#define STATE_WORDS	128u	/* of a thread's state */

static const uint16_t layouts[][13] = {
#define HEAP(minor, ...) {minor, __VA_ARGS__},
#include "kb/python_layouts.def"
};

void pyheap_open(struct pyheap *h, struct pyproc *p, uint64_t until_ns)
{
	*h = (struct pyheap){.p = p, .until_ns = until_ns};
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const uint16_t *l = layouts[i];

		if (l[0] != p->l.minor)
			continue;
		h->modules = l[1];
		h->keys = l[2];
		h->generator = l[3];
		h->generator_state = l[4];
		h->names = l[5];
		h->cell_names = l[6];
		h->free_names = l[7];
		h->code = l[8];
		h->closure = l[9];
		h->traceback = l[10];
		h->frame = l[11];
		h->frame_locals = l[12];
	}
	if (p->modules)
		h->modules = p->modules;
}

void pyheap_close(struct pyheap *h)
{
	free(h->type);
	map_release(&h->types);
	pool_release(&h->pool);
	*h = (struct pyheap){0};
}

static bool word(struct pyheap *h, uint64_t at, uint64_t *to)
{
	return remote_word(h->p->r, at, to);
}

static bool is_address(uint64_t at)
{
	return at >= REMOTE_PAGE && at % 8 == 0 && at < 1ull << 48;
}

bool pyheap_in_time(struct pyheap *h, uint64_t step)
{
	if (step % CHECK_EVERY == 0 && proc_mono_ns() > h->until_ns)
		h->late = true;
	return !h->late;
}

static const struct { const char *name; enum py_kind kind; } kinds[] = {
	{"list", PY_LIST}, {"tuple", PY_TUPLE}, {"dict", PY_DICT}, {"set", PY_SET}, {"frozenset", PY_SET},
	{"collections.deque", PY_DEQUE}, {"type", PY_CLASS}, {"function", PY_FUNCTION}, {"frame", PY_FRAME},
	{"generator", PY_GENERATOR}, {"coroutine", PY_GENERATOR}, {"async_generator", PY_GENERATOR}, {"cell", PY_CELL},
	{"module", PY_MODULE}, {"traceback", PY_TRACEBACK}, {"BaseException", PY_EXCEPTION},
	{"torch._C.TensorBase", PY_TENSOR}, {"torch._C._TensorBase", PY_TENSOR}, {"_thread._local", PY_LOCAL},
	{"Context", PY_CONTEXT}, {"_contextvars.Context", PY_CONTEXT}, {"hamt_bitmap_node", PY_CONTEXT_PART},
	{"hamt_collision_node", PY_CONTEXT_PART}, {ARRAY, PY_ARRAY},
	/* what they refer to they do not keep */
	{"weakref", PY_NOTHING}, {"weakref.ReferenceType", PY_NOTHING}, {"weakproxy", PY_NOTHING},
	{"weakref.ProxyType", PY_NOTHING}, {"weakcallableproxy", PY_NOTHING}, {"weakref.CallableProxyType", PY_NOTHING},
};

static uint32_t small(struct pyheap *h, uint64_t at)
{
	uint64_t v = 0;

	return word(h, at, &v) && v < 1u << 20 ? (uint32_t)v : 0;
}

/* By the first of its bases that is known. */
static void find_kind(struct pyheap *h, struct py_type *t)
{
	uint64_t at = t->at, name_at;
	char name[64];

	t->kind = PY_PLAIN;
	t->own = 2 * sizeof(uint64_t);
	for (unsigned i = 0; i < BASES_MAX && is_address(at); i++) {
		if (!word(h, at + PY_TYPE_NAME, &name_at) || !remote_string(h->p->r, name_at, name, sizeof(name)))
			return;
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			if (strcmp(name, kinds[k].name) != 0)
				continue;
			t->kind = kinds[k].kind;
			if (t->kind >= PY_LIST && t->kind <= PY_GENERATOR)
				t->own = small(h, at + PY_TYPE_BASIC);
			return;
		}
		if (!word(h, at + PY_TYPE_BASE, &at))
			return;
	}
}

static void read_type(struct pyheap *h, struct py_type *t)
{
	uint64_t meta = 0, meta_flags = 0, name_at = 0;
	char name[96];

	if (!is_address(t->at) || !word(h, t->at + PY_TYPE, &meta) || !is_address(meta) ||
	    !word(h, meta + PY_TYPE_FLAGS, &meta_flags) || !(meta_flags & CLASS) ||
	    !word(h, t->at + PY_TYPE_FLAGS, &t->flags) || !word(h, t->at + PY_TYPE_NAME, &name_at) ||
	    !remote_string(h->p->r, name_at, name, sizeof(name)) || !name[0])
		return;
	t->basic = small(h, t->at + PY_TYPE_BASIC);
	if (t->basic < 2 * sizeof(uint64_t))
		return;
	t->name = pool_strdup(&h->pool, name);
	t->weak = small(h, t->at + PY_TYPE_WEAK);
	t->dict = small(h, t->at + PY_TYPE_DICT_AT);
	if (t->flags & TRACKED || !strcmp(name, CACHE_ENTRY) || !strcmp(name, ARRAY))
		find_kind(h, t);
	if (!strcmp(name, "ContextVar") || !strcmp(name, "_contextvars.ContextVar"))
		t->basic = PY_VARIABLE_CACHED;	/* the value that it saw last it does not keep */
}

static bool same_type(const void *list, uint32_t i, const void *key)
{
	return ((const struct py_type *)list)[i].at == *(const uint64_t *)key;
}

/* What is no class is kept, too: it is met again. */
const struct py_type *pyheap_type(struct pyheap *h, uint64_t object)
{
	uint64_t at;
	uint32_t i;

	if (!is_address(object) || !word(h, object + PY_TYPE, &at))
		return NULL;
	i = map_put(&h->types, map_hash(at), same_type, h->type, &at,
		    h->n_types < TYPES_MAX ? (uint32_t)h->n_types : MAP_NONE);
	if (i == MAP_NONE)
		return NULL;
	if (i == h->n_types) {
		h->type = xgrow(h->type, h->n_types, &h->cap_types, sizeof(*h->type));
		h->type[h->n_types++] = (struct py_type){.at = at};
		read_type(h, &h->type[i]);
	}
	return h->type[i].name ? &h->type[i] : NULL;
}

static enum py_kind kind_of(struct pyheap *h, uint64_t object)
{
	const struct py_type *t = pyheap_type(h, object);

	return t ? t->kind : PY_NOTHING;
}

static void add(struct pyheap *h, struct py_edges *to, uint64_t object, enum py_link link, uint64_t name, uint32_t at)
{
	const struct py_type *t = pyheap_type(h, object);

	if (!t || t->kind == PY_NOTHING || (link == LINK_WORD && !strcmp(t->name, CACHE_ENTRY)))
		return;
	to->full |= to->n == PY_EDGES_MAX;
	if (to->full)
		return;
	to->list = xgrow(to->list, to->n, &to->cap, sizeof(*to->list));
	to->list[to->n++] = (struct py_edge){.to = object, .name = name, .at = at, .link = link};
}

static void add_items(struct pyheap *h, struct py_edges *to, uint64_t items, uint64_t n, uint64_t first)
{
	for (uint64_t i = 0, item; i < n && pyheap_in_time(h, i); i++) {
		if (!word(h, items + i * 8, &item))
			return;
		add(h, to, item, LINK_ITEM, 0, (uint32_t)(first + i));
	}
}

static void add_tuple(struct pyheap *h, struct py_edges *to, uint64_t tuple)
{
	uint64_t n = 0;

	if (word(h, tuple + PY_COUNT, &n))
		add_items(h, to, tuple + h->p->tuple_items, n, 0);
}

static void add_list(struct pyheap *h, struct py_edges *to, uint64_t list)
{
	uint64_t n = 0, items = 0;

	if (word(h, list + PY_COUNT, &n) && word(h, list + PY_LIST_ITEMS, &items))
		add_items(h, to, items, n, 0);
}

/* Keys and values lie side by side. The values of a dictionary that shares its keys are `values`, else 0. */
struct entries {
	uint64_t first, values, n;
	unsigned stride, key, value;
};

static bool find_entries(struct pyheap *h, uint64_t keys, uint64_t values, struct entries *e)
{
	bool old = h->p->l.minor < 11;
	uint8_t sizes[3];
	uint64_t size = 0;

	if (!is_address(keys) || !remote_read(h->p->r, keys + PY_KEYS_SIZES, sizes, sizeof(sizes)) ||
	    !word(h, keys + (old ? PY_KEYS_ENTRIES_OLD : PY_KEYS_ENTRIES), &e->n))
		return false;
	e->values = values;
	e->stride = old || !sizes[2] ? 24 : 16;	/* keys that are not all texts have a hash beside them */
	e->key = e->stride - 16;
	e->value = e->stride - 8;
	if (!old) {
		e->first = keys + PY_KEYS_INDICES + (sizes[1] < 40 ? 1ull << sizes[1] : 0);
		return true;
	}
	if (!word(h, keys + PY_KEYS_SIZES, &size))
		return false;
	e->first = keys + PY_KEYS_INDICES_OLD + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= UINT32_MAX ? 4 : 8);
	return true;
}

static bool dict_entries(struct pyheap *h, uint64_t dict, struct entries *e)
{
	uint64_t keys = 0, values = 0;

	if (!word(h, dict + PY_DICT_KEYS, &keys) || !word(h, dict + PY_DICT_VALUES, &values))
		return false;
	return find_entries(h, keys, values && h->p->l.minor >= 13 ? values + PY_VALUES_FIRST : values, e);
}

static bool read_entry(struct pyheap *h, const struct entries *e, uint64_t i, uint64_t *key, uint64_t *value)
{
	uint64_t at = e->first + i * e->stride;

	return word(h, at + e->key, key) && word(h, e->values ? e->values + i * 8 : at + e->value, value);
}

static void add_entries(struct pyheap *h, struct py_edges *to, const struct entries *e, enum py_link link)
{
	for (uint64_t i = 0, key, value; i < e->n && pyheap_in_time(h, i); i++) {
		if (!read_entry(h, e, i, &key, &value))
			return;
		if (!value)
			continue;
		add(h, to, value, link, key, (uint32_t)i);
		if (link == LINK_ENTRY)		/* a key may be a tuple, or a tensor */
			add(h, to, key, link, 0, (uint32_t)i);
	}
}

static void add_set(struct pyheap *h, struct py_edges *to, uint64_t set)
{
	uint64_t mask = 0, table = 0;

	if (!word(h, set + PY_SET_MASK, &mask) || !word(h, set + PY_SET_TABLE, &table))
		return;
	for (uint64_t i = 0, key; i <= mask && pyheap_in_time(h, i); i++) {
		if (!word(h, table + i * 16, &key))
			return;
		if (key)
			add(h, to, key, LINK_ITEM, 0, (uint32_t)i);
	}
}

static void add_deque(struct pyheap *h, struct py_edges *to, uint64_t deque)
{
	uint64_t n = 0, block = 0, index = 0, done = 0;

	if (!word(h, deque + PY_COUNT, &n) || !word(h, deque + PY_DEQUE_FIRST, &block) ||
	    !word(h, deque + PY_DEQUE_INDEX, &index) || index >= PY_DEQUE_BLOCK)
		return;
	while (done < n && pyheap_in_time(h, 0)) {
		uint64_t more = PY_DEQUE_BLOCK - index < n - done ? PY_DEQUE_BLOCK - index : n - done;

		add_items(h, to, block + 8 + index * 8, more, done);
		done += more;
		index = 0;
		if (!word(h, block + 8 + PY_DEQUE_BLOCK * 8, &block))
			return;
	}
}

/* Of objects, and without gaps. */
static void add_array(struct pyheap *h, struct py_edges *to, uint64_t array)
{
	uint64_t descriptor = 0, dims = 0, items = 0, base = 0, n = 1, dim;
	int32_t rank = 0, flags = 0;
	char kind = 0;

	if (word(h, array + PY_ARRAY_BASE, &base) && base)
		add(h, to, base, LINK_WORD, 0, PY_ARRAY_BASE);
	if (!word(h, array + PY_ARRAY_DESCRIPTOR, &descriptor) || !word(h, array + PY_ARRAY_DIMS, &dims) ||
	    !word(h, array + PY_ARRAY_ITEMS, &items) ||
	    !remote_read(h->p->r, array + PY_ARRAY_RANK, &rank, sizeof(rank)) ||
	    !remote_read(h->p->r, array + PY_ARRAY_FLAGS, &flags, sizeof(flags)) ||
	    !remote_read(h->p->r, descriptor + PY_ARRAY_KIND, &kind, 1) || kind != 'O' || !(flags & 3) || rank < 0 ||
	    rank > 64)
		return;
	for (int32_t i = 0; i < rank; i++)
		if (!word(h, dims + (uint64_t)i * 8, &dim) || __builtin_mul_overflow(n, dim, &n))
			return;
	add_items(h, to, items, n, 0);
}

static void add_context_part(struct pyheap *h, struct py_edges *to, uint64_t part)
{
	uint64_t n = 0, pair[2], name;

	if (!word(h, part + PY_COUNT, &n) || n > CONTEXT_WORDS)
		return;
	for (uint64_t i = 0; i + 2 <= n; i += 2) {
		if (!remote_read(h->p->r, part + PY_CONTEXT_PAIRS + i * 8, pair, sizeof(pair)))
			return;
		name = 0;
		if (pair[0])
			word(h, pair[0] + PY_VARIABLE_NAME, &name);
		add(h, to, pair[1], pair[0] ? LINK_CONTEXT : LINK_WORD, name, (uint32_t)i);
	}
}

static uint64_t tuple_item(struct pyheap *h, uint64_t tuple, uint64_t i)
{
	uint64_t n = 0, item = 0;

	if (!is_address(tuple) || !word(h, tuple + PY_COUNT, &n) || i >= n ||
	    !word(h, tuple + h->p->tuple_items + i * 8, &item))
		return 0;
	return item;
}

static uint64_t tuple_length(struct pyheap *h, uint64_t tuple)
{
	uint64_t n = 0;

	return is_address(tuple) && word(h, tuple + PY_COUNT, &n) && n < PY_WORDS_MAX ? n : 0;
}

static uint64_t tuple_at(struct pyheap *h, uint64_t code, uint16_t field)
{
	uint64_t tuple = 0;

	return field && word(h, code + field, &tuple) ? tuple : 0;
}

/* What a cell holds, if it is one: a variable that inner functions use. */
static uint64_t behind_cell(struct pyheap *h, uint64_t object)
{
	uint64_t of = 0;

	return kind_of(h, object) == PY_CELL && word(h, object + PY_CELL_OF, &of) ? of : object;
}

/* The i-th variable's name. Up to 3.10 those of cells and those from outside are in tuples of their own. */
static uint64_t variable_name(struct pyheap *h, uint64_t code, uint64_t i)
{
	const uint16_t field[] = {h->names, h->cell_names, h->free_names};

	for (size_t k = 0; k < sizeof(field) / sizeof(field[0]); k++) {
		uint64_t tuple = tuple_at(h, code, field[k]), n = tuple_length(h, tuple);

		if (i < n)
			return tuple_item(h, tuple, i);
		i -= n;
	}
	return 0;
}

static uint64_t n_variables(struct pyheap *h, uint64_t code)
{
	uint64_t n = 0;

	n += tuple_length(h, tuple_at(h, code, h->names));
	n += tuple_length(h, tuple_at(h, code, h->cell_names));
	n += tuple_length(h, tuple_at(h, code, h->free_names));
	return n < PY_WORDS_MAX ? n : PY_WORDS_MAX;
}

void pyheap_variables(struct pyheap *h, const struct py_raw *raw, struct py_edges *to)
{
	uint64_t n = n_variables(h, raw->code), v = 0, dict = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (!word(h, raw->frame + h->p->locals + i * 8, &v))
			return;
		add(h, to, behind_cell(h, v & ~(uint64_t)3), LINK_VARIABLE, variable_name(h, raw->code, i), (uint32_t)i);
	}
	if (word(h, raw->frame + h->frame_locals, &dict))	/* of a module's or a class's code */
		add(h, to, dict, LINK_DICT, 0, 0);
	if (word(h, raw->frame + h->p->globals, &dict))
		add(h, to, dict, LINK_DICT, 0, 0);
}

static bool frame_at(struct pyheap *h, uint64_t frame, struct py_raw *raw)
{
	char name[8];

	raw->frame = frame;
	raw->instr = 0;
	if (!is_address(frame) || !word(h, frame + h->p->l.code, &raw->code))
		return false;
	raw->code &= ~(uint64_t)3;
	if (!pyproc_type(h->p, raw->code, name, sizeof(name)) || strcmp(name, "code") != 0)
		return false;
	if (h->p->l.instr_kind == INSTR_POINTER)
		return word(h, frame + h->p->l.instr, &raw->instr);
	return remote_read(h->p->r, frame + h->p->l.instr, &raw->instr, sizeof(uint32_t));
}

bool pyheap_frame(struct pyheap *h, uint64_t frame_object, struct py_raw *raw)
{
	uint64_t frame = frame_object;

	return kind_of(h, frame_object) == PY_FRAME && (!h->frame || word(h, frame_object + h->frame, &frame)) &&
	       frame_at(h, frame, raw);
}

static void add_frame(struct pyheap *h, struct py_edges *to, uint64_t object)
{
	struct py_raw raw;
	uint64_t back = 0;

	if (pyheap_frame(h, object, &raw))
		pyheap_variables(h, &raw, to);
	if (word(h, object + (h->frame ? PY_FRAME_BACK : PY_FRAME_BACK_OLD), &back))
		add(h, to, back, LINK_CALLER, 0, 0);
}

/* Since 3.11 its frame is a part of it. */
bool pyheap_generator(struct pyheap *h, uint64_t generator, struct py_raw *raw)
{
	int8_t state = 0;

	return kind_of(h, generator) == PY_GENERATOR && h->generator_state &&
	       remote_read(h->p->r, generator + h->generator_state, &state, 1) && state <= 0 &&
	       frame_at(h, generator + h->generator, raw);
}

static void add_generator(struct pyheap *h, struct py_edges *to, uint64_t object)
{
	uint64_t frame = 0;
	struct py_raw raw;

	if (pyheap_generator(h, object, &raw))
		pyheap_variables(h, &raw, to);
	else if (!h->generator_state && word(h, object + h->generator, &frame))
		add(h, to, frame, LINK_WORD, 0, h->generator);
}

/* What it uses from outside, by name; those are the last names of its code. */
static void add_closure(struct pyheap *h, struct py_edges *to, uint64_t function)
{
	uint64_t code = 0, closure = 0, cell = 0, n, all;

	if (!word(h, function + h->code, &code) || !word(h, function + h->closure, &closure) || !closure)
		return;
	n = tuple_length(h, closure);
	all = n_variables(h, code);
	for (uint64_t i = 0; i < n; i++) {
		cell = tuple_item(h, closure, i);
		if (cell)
			add(h, to, behind_cell(h, cell), LINK_CLOSED,
			    all >= n ? variable_name(h, code, all - n + i) : 0, (uint32_t)i);
	}
}

/* Its texts and its code refer to nothing, and there are very many of them. */
static void add_function(struct pyheap *h, struct py_edges *to, uint64_t function, const struct py_type *t)
{
	const uint32_t globals = h->code == PY_FUNCTION_CODE_OLD ? PY_FUNCTION_GLOBALS_OLD : PY_FUNCTION_GLOBALS;
	const uint32_t words[] = {globals, h->closure - 16u, h->closure - 8u, t->dict};	/* defaults are before the closure */
	uint64_t v;

	add_closure(h, to, function);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] && word(h, function + words[i], &v) && v)
			add(h, to, v, words[i] == t->dict ? LINK_DICT : LINK_WORD, 0, words[i]);
}

/* Attributes: an array of values, or a dictionary. 3.11 has a place for each, 3.12 one for either (an odd number leads to values), 3.13 has
 * the values behind the object. */
static void add_managed(struct pyheap *h, struct py_edges *to, uint64_t object, const struct py_type *t)
{
	uint64_t values = 0, dict = 0, keys = 0;
	struct entries e;
	uint8_t valid = 1;

	if (!word(h, object - PY_DICT_BEFORE, &dict))
		return;
	if (h->p->l.minor <= 11) {
		word(h, object - PY_VALUES_BEFORE, &values);
	} else if (h->p->l.minor == 12 && dict & 1) {
		values = dict + 1;
		dict = 0;
	} else if (t->flags & INLINE_VALUES) {
		values = object + t->basic + PY_VALUES_FIRST;
		remote_read(h->p->r, object + t->basic + PY_VALUES_VALID, &valid, 1);
	}
	if (dict)
		add(h, to, dict, LINK_DICT, 0, 0);
	if (values && valid && !dict && word(h, t->at + h->keys, &keys) && find_entries(h, keys, values, &e) &&
	    e.n < PY_WORDS_MAX)
		add_entries(h, to, &e, LINK_ATTRIBUTE);
}

/* From `own` on: slots, or all that a class of C has. */
static void add_words(struct pyheap *h, struct py_edges *to, uint64_t object, const struct py_type *t)
{
	uint32_t from = t->own, end = t->basic < WORDS_MAX * 8 ? t->basic : WORDS_MAX * 8, weak = t->weak, dict = t->dict;
	uint64_t v;

	for (uint32_t at = (from + 7) & ~7u; at + 8 <= end; at += 8)
		if (at != weak && word(h, object + at, &v) && v)
			add(h, to, v, at == dict ? LINK_DICT : LINK_WORD, 0, at);
}

void pyheap_edges(struct pyheap *h, uint64_t object, struct py_edges *to)
{
	const struct py_type *found = pyheap_type(h, object);
	struct py_type t;
	struct entries e;
	uint64_t dict = 0;

	if (!found || found->kind == PY_NOTHING)
		return;
	t = *found;		/* looking at others may move it */
	switch (t.kind) {
	case PY_LIST: add_list(h, to, object); break;
	case PY_TUPLE: add_tuple(h, to, object); break;
	case PY_SET: add_set(h, to, object); break;
	case PY_DEQUE: add_deque(h, to, object); break;
	case PY_FRAME: add_frame(h, to, object); return;
	case PY_GENERATOR: add_generator(h, to, object); return;
	case PY_DICT:
		if (dict_entries(h, object, &e))
			add_entries(h, to, &e, LINK_ENTRY);
		break;
	case PY_CONTEXT_PART: add_context_part(h, to, object); return;
	case PY_ARRAY: add_array(h, to, object); return;
	case PY_CLASS:
		if (word(h, object + PY_TYPE_DICT, &dict))
			add(h, to, dict, LINK_DICT, 0, 0);
		return;
	case PY_FUNCTION: add_function(h, to, object, &t); return;
	default: break;
	}
	if (t.flags & MANAGED_DICT && h->p->l.minor >= 11)
		add_managed(h, to, object, &t);
	if (t.kind != PY_TUPLE)
		add_words(h, to, object, &t);
}

static bool is_item(struct pyheap *h, uint64_t items, uint64_t n, const struct py_edge *e)
{
	uint64_t item = 0;

	return e->at < n && word(h, items + e->at * 8ull, &item) && item == e->to;
}

static bool is_entry(struct pyheap *h, uint64_t dict, const struct py_edge *of)
{
	uint64_t key, value;
	struct entries e;

	return dict_entries(h, dict, &e) && of->at < e.n && read_entry(h, &e, of->at, &key, &value) && value &&
	       (value == of->to || key == of->to);
}

bool pyheap_at_place(struct pyheap *h, uint64_t object, const struct py_edge *e)
{
	uint64_t n = 0, items = 0;

	if (e->link != LINK_ITEM && e->link != LINK_ENTRY && e->link != LINK_ATTRIBUTE)
		return false;
	switch (kind_of(h, object)) {
	case PY_LIST:
		return word(h, object + PY_COUNT, &n) && word(h, object + PY_LIST_ITEMS, &items) &&
		       is_item(h, items, n, e);
	case PY_TUPLE: return word(h, object + PY_COUNT, &n) && is_item(h, object + h->p->tuple_items, n, e);
	case PY_DICT: return is_entry(h, object, e);
	default: return false;
	}
}

bool pyheap_length(struct pyheap *h, uint64_t object, uint64_t *n)
{
	switch (kind_of(h, object)) {
	case PY_LIST: case PY_TUPLE: case PY_DEQUE: return word(h, object + PY_COUNT, n);
	case PY_DICT: return word(h, object + PY_DICT_USED, n);
	case PY_SET: return word(h, object + PY_SET_USED, n);
	default: return false;
	}
}

uint64_t pyheap_modules(struct pyheap *h)
{
	uint64_t interpreter = 0, dict = 0;

	if (!h->modules || !word(h, h->p->runtime + h->p->s.head, &interpreter) ||
	    !word(h, interpreter + h->modules, &dict) || kind_of(h, dict) != PY_DICT)
		return 0;
	return dict;
}

uint64_t pyheap_module_dict(struct pyheap *h, uint64_t module)
{
	const struct py_type *t = pyheap_type(h, module);
	uint64_t dict = 0;

	return t && t->kind == PY_MODULE && t->dict && word(h, module + t->dict, &dict) ? dict : 0;
}

uint64_t pyheap_lookup(struct pyheap *h, uint64_t dict, const char *key, uint64_t first)
{
	struct entries e;
	char name[64];

	if (kind_of(h, dict) != PY_DICT || !dict_entries(h, dict, &e))
		return 0;
	for (uint64_t i = 0, at, value; i < e.n && i < first; i++)
		if (read_entry(h, &e, i, &at, &value) && value && at && pyproc_text(h->p, at, name, sizeof(name)) &&
		    !strcmp(name, key))
			return value;
	return 0;
}

size_t pyheap_traceback(struct pyheap *h, uint64_t exception, uint64_t *frame, size_t max)
{
	uint64_t at = 0;
	size_t n = 0;

	if (!word(h, exception + h->traceback, &at))
		return 0;
	for (unsigned i = 0; i < CHAIN_MAX && kind_of(h, at) == PY_TRACEBACK; i++) {
		if (n == max)	/* the innermost ones are nearer to what failed, but the outermost have the names */
			break;
		if (!word(h, at + PY_TRACEBACK_FRAME, &frame[n++]) || !word(h, at + PY_TRACEBACK_NEXT, &at))
			return n;
	}
	return n;
}

/* Where it is differs with every version, but a context is known by its class. */
uint64_t pyheap_context(struct pyheap *h, uint64_t state)
{
	for (uint64_t i = 0, at; i < STATE_WORDS && word(h, state + i * 8, &at); i++)
		if (kind_of(h, at) == PY_CONTEXT)
			return at;
	return 0;
}

/* In the class's dictionary, by a descriptor that says which item it gets. */
bool pyheap_field(struct pyheap *h, uint64_t tuple, uint32_t at, char *name, size_t size)
{
	uint64_t type = 0, dict = 0, index = 0;
	struct entries e;
	char kind[32];

	if (!word(h, tuple + PY_TYPE, &type) || !word(h, type + PY_TYPE_DICT, &dict) || kind_of(h, dict) != PY_DICT ||
	    !dict_entries(h, dict, &e))
		return false;
	for (uint64_t i = 0, key, value; i < e.n && i < CHECK_EVERY; i++)
		if (read_entry(h, &e, i, &key, &value) && value && pyproc_type(h->p, value, kind, sizeof(kind)) &&
		    strstr(kind, "_tuplegetter") && word(h, value + PY_FIELD_INDEX, &index) && index == at)
			return pyproc_text(h->p, key, name, size);
	return false;
}

static bool member_in(struct pyheap *h, uint64_t type, uint32_t at, char *name, size_t size)
{
	uint64_t dict = 0, member = 0;
	struct entries e;
	char kind[24];

	if (!word(h, type + PY_TYPE_DICT, &dict) || kind_of(h, dict) != PY_DICT || !dict_entries(h, dict, &e))
		return false;
	for (uint64_t i = 0, key, value; i < e.n && i < CHECK_EVERY; i++)
		if (read_entry(h, &e, i, &key, &value) && value && pyproc_type(h->p, value, kind, sizeof(kind)) &&
		    !strcmp(kind, "member_descriptor") && word(h, value + PY_DESCRIPTOR_MEMBER, &member) &&
		    small(h, member + PY_MEMBER_PLACE) == at)
			return pyproc_text(h->p, key, name, size);
	return false;
}

bool pyheap_member(struct pyheap *h, uint64_t object, uint32_t at, char *name, size_t size)
{
	uint64_t type = 0;

	if (!word(h, object + PY_TYPE, &type))
		return false;
	for (unsigned i = 0; i < BASES_MAX && is_address(type); i++)
		if (member_in(h, type, at, name, size))
			return true;
		else if (!word(h, type + PY_TYPE_BASE, &type))
			return false;
	return false;
}

bool pyheap_function(struct pyheap *h, uint64_t function, struct py_frame *to, struct pool *pool)
{
	struct py_raw raw = {0};

	if (kind_of(h, function) != PY_FUNCTION || !word(h, function + h->code, &raw.code))
		return false;
	if (!pyproc_frame(h->p, &raw, to, pool))
		return false;
	to->line = to->first_line;
	return true;
}
