/* SPDX-License-Identifier: Apache-2.0
 * What modules are called, from their objects: classes, dictionaries of attributes, texts.
 *
 * This happens once for each module. The GIL may be another thread's, which may change what is read: so all of it is read with care, and a
 * dictionary that is in the middle of a change has no names.
 */
#include <string.h>

#include "rec_python_bytecode.h"

#define MANAGED_DICT	(1ull << 4)
#define INLINE_VALUES	(1ull << 2)
#define MRO_MAX		64u
#define ENTRIES_MAX	4096u
#define AT_ONCE		32u
#define TREE_MAX	512u	/* modules below one that are looked at */
#define NAME_MAX	160u
#define TEXT_MAX	64u

struct dict { const char *first, *values; uint64_t n; unsigned stride; };

struct heap { uint16_t keys, names; };

static struct heap heap_of(void)
{
	static const uint16_t where[][13] = {
#define HEAP(minor, ...) {minor, __VA_ARGS__},
#include "kb/python_layouts.def"
	};

	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++)
		if (where[i][0] == py.l.minor)
			return (struct heap){where[i][2], where[i][5]};
	return (struct heap){0, 0};
}

static bool word(const char *from, const char **to)
{
	return (uintptr_t)from >= 4096 && rec_read_memory(to, from, sizeof(*to));
}

static bool number(const char *from, uint64_t *to)
{
	return (uintptr_t)from >= 4096 && rec_read_memory(to, from, sizeof(*to));
}

bool code_is_method(const char *code)
{
	uint16_t at = heap_of().names;
	const char *names, *first;
	char text[16];
	int64_t n;

	if (!at || !code_locals(code))
		return false;
	memcpy(&names, code + at, sizeof(names));
	if (!names)
		return false;
	memcpy(&n, names + PY_COUNT, sizeof(n));
	if (n < 1)
		return false;
	memcpy(&first, names + PY_TUPLE_ITEMS, sizeof(first));
	return python_string(first, text, sizeof(text)) && strcmp(text, "self") == 0;
}

/* A C string; what is behind it may be no memory. */
static bool text_at(const char *from, char *to, size_t size)
{
	for (size_t n = 0; n + 1 < size; n++) {
		if (!rec_read_memory(&to[n], from + n, 1))
			return false;
		if (!to[n])
			return n > 0;
	}
	to[size - 1] = '\0';
	return true;
}

static enum torch_class class_named(const char *name, uint64_t flags)
{
	if (strcmp(name, "Module") == 0)
		return py.l.minor < 11 || flags & MANAGED_DICT ? TORCH_MODULE : TORCH_NONE;
	return strcmp(name, "Optimizer") == 0 ? TORCH_OPTIMIZER : strcmp(name, "Parameter") == 0 ? TORCH_PARAMETER : TORCH_NONE;
}

enum torch_class torch_class_of(const char *type)
{
	enum torch_class found = TORCH_NONE;
	const char *mro, *item[MRO_MAX], *name;
	uint64_t n, flags;
	char text[16];

	if (!word(type + PY_TYPE_MRO, &mro) || !number(mro + PY_COUNT, &n) || !number(type + PY_TYPE_FLAGS, &flags))
		return TORCH_UNREADABLE;
	n = n < MRO_MAX ? n : MRO_MAX;
	if (!rec_read_memory(item, mro + PY_TUPLE_ITEMS, n * sizeof(*item)))
		return TORCH_UNREADABLE;
	for (uint64_t i = 0; i < n && found == TORCH_NONE; i++)
		if (word(item[i] + PY_TYPE_NAME, &name) && text_at(name, text, sizeof(text)))
			found = class_named(text, flags);
	return found;
}

uint32_t module_class(const char *type)
{
	char text[TEXT_MAX];
	const char *name;

	return word(type + PY_TYPE_NAME, &name) && text_at(name, text, sizeof(text)) ? intern_string(text, strlen(text))
										     : 0;
}

/* Only plain names: a key may be anybody's data. */
static bool key_text(const char *key, char *to, size_t size)
{
	char head[64];
	const char *type;
	uint32_t state;
	int64_t n;

	if (!rec_read_memory(head, key, py.l.ascii_data))
		return false;
	memcpy(&type, head + PY_TYPE, sizeof(type));
	memcpy(&n, head + PY_STRING_LENGTH, sizeof(n));
	memcpy(&state, head + PY_STRING_STATE, sizeof(state));
	if (type != py.f.unicode_type || (state & 96) != 96 || n < 1 || (uint64_t)n >= size ||
	    !rec_read_memory(to, key + py.l.ascii_data, (size_t)n))
		return false;
	to[n] = '\0';
	return true;
}

/* Keys and values lie side by side; the values of a dictionary that shares its keys are elsewhere. As pyheap.c reads it from outside. */
static bool entries_of(const char *keys, const char *values, struct dict *d)
{
	bool old = py.l.minor < 11;
	uint8_t sizes[3];
	uint64_t size;

	if ((uintptr_t)keys < 4096 || !rec_read_memory(sizes, keys + PY_KEYS_SIZES, sizeof(sizes)) ||
	    !number(keys + (old ? PY_KEYS_ENTRIES_OLD : PY_KEYS_ENTRIES), &d->n) || d->n > ENTRIES_MAX)
		return false;
	d->values = values;
	d->stride = old || !sizes[2] ? 24 : 16;
	if (!old) {
		d->first = keys + PY_KEYS_INDICES + (sizes[1] < 40 ? 1ull << sizes[1] : 0);
		return true;
	}
	if (!number(keys + PY_KEYS_SIZES, &size))
		return false;
	d->first = keys + PY_KEYS_INDICES_OLD + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
	return true;
}

static bool dict_at(const char *dict, struct dict *d)
{
	const char *keys, *values, *type;

	if (!word(dict + PY_TYPE, &type) || !word(dict + PY_DICT_KEYS, &keys) || !word(dict + PY_DICT_VALUES, &values))
		return false;
	return entries_of(keys, values && py.l.minor >= 13 ? values + PY_VALUES_FIRST : values, d);
}

static const char *dict_word(const char *object, const char *type)
{
	uint64_t at = 0;
	const char *dict;

	if (py.l.minor >= 11)
		return word(object - PY_DICT_BEFORE, &dict) ? dict : NULL;
	return number(type + PY_TYPE_DICT_AT, &at) && at >= 16 && at < 4096 && word(object + at, &dict) ? dict : NULL;
}

static bool attributes_of(const char *object, const char *type, struct dict *d)
{
	const char *dict = dict_word(object, type), *keys, *values = NULL;
	uint64_t flags, basic;

	if (dict && !((uintptr_t)dict & 1))
		return dict_at(dict, d);
	if (py.l.minor < 11 || !word(type + heap_of().keys, &keys) || !number(type + PY_TYPE_FLAGS, &flags))
		return false;
	if (py.l.minor == 11 && !word(object - PY_VALUES_BEFORE, &values))
		return false;
	if (py.l.minor == 12)
		values = dict ? dict + 1 : NULL;
	if (py.l.minor >= 13 && flags & INLINE_VALUES && number(type + PY_TYPE_BASIC, &basic) && basic < 4096)
		values = object + basic + PY_VALUES_FIRST;
	return values && entries_of(keys, values, d);
}

/* Entries, some of them read at once. */
struct entries {
	const struct dict *d;
	uint64_t next, from, to;	/* from, to: those in `both` */
	const char *both[AT_ONCE][2], *value[AT_ONCE];
};

static bool read_entries(struct entries *e)
{
	const struct dict *d = e->d;
	const char *raw[3 * AT_ONCE];
	uint64_t n = d->n - e->next < AT_ONCE ? d->n - e->next : AT_ONCE, words = d->stride / 8;

	if (!rec_read_memory(raw, d->first + e->next * d->stride, n * d->stride) ||
	    (d->values && !rec_read_memory(e->value, d->values + 8 * e->next, n * 8)))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		e->both[i][0] = raw[i * words + words - 2];
		e->both[i][1] = d->values ? e->value[i] : raw[i * words + words - 1];
	}
	e->from = e->next;
	e->to = e->next + n;
	return true;
}

static bool next_entry(struct entries *e, const char **key, const char **value)
{
	for (; e->next < e->d->n; e->next++) {
		if (e->next >= e->to && !read_entries(e))
			return false;
		*key = e->both[e->next - e->from][0];
		*value = e->both[e->next - e->from][1];
		if (*key && *value)
			return e->next++, true;
	}
	return false;
}

/* An attribute of a module; NULL = none. Keys are compared as texts only until PyTorch's own text for it is known. */
struct attribute { const char *name; const char *_Atomic key; };
static struct attribute modules_name = {.name = "_modules"}, parameters_name = {.name = "_parameters"};

static const char *attribute_of(const char *module, struct attribute *a)
{
	const char *type, *key, *value, *known = a->key;
	struct dict own;
	char text[16];

	if (!word(module + PY_TYPE, &type) || !attributes_of(module, type, &own))
		return NULL;
	for (struct entries e = {.d = &own}; next_entry(&e, &key, &value);) {
		if (known ? key != known : !key_text(key, text, sizeof(text)) || strcmp(text, a->name) != 0)
			continue;
		a->key = key;
		return value;
	}
	return NULL;
}

static bool modules_of(const char *module, struct dict *d)
{
	const char *dict = attribute_of(module, &modules_name);

	return dict && dict_at(dict, d);
}

struct module_birth module_birth(const char *module)
{
	struct module_birth b = {.dict = py.l.minor <= 12 ? attribute_of(module, &modules_name) : NULL};

	if (b.dict && !number(b.dict + PY_DICT_VERSION, &b.version))
		b.version = 0;
	return b;
}

bool module_is_born(const char *module, const struct module_birth *so)
{
	struct module_birth b = so->version ? module_birth(module) : (struct module_birth){0};

	return b.version && b.dict == so->dict && b.version == so->version;
}

void module_parameters(const char *module, parameter_seen *each, void *with)
{
	const char *dict = attribute_of(module, &parameters_name), *key, *value;
	struct dict d;

	if (!dict || !dict_at(dict, &d))
		return;
	for (struct entries e = {.d = &d}; next_entry(&e, &key, &value);)
		if (value != py.none && !each(value, dict, with))
			return;
}

struct tree {
	uint32_t n;
	struct { const char *object, *key; uint32_t of; } at[TREE_MAX];	/* `of` the one that has it; number 0 is the first */
};

static uint32_t path_to(const struct tree *t, uint32_t i)
{
	char path[NAME_MAX], text[TEXT_MAX];
	size_t at = sizeof(path) - 1, n;

	path[at] = '\0';
	for (; i; i = t->at[i].of) {
		if (!key_text(t->at[i].key, text, sizeof(text)))
			return 0;
		n = strlen(text);
		if (at < n + 1)
			return 0;
		at -= n;
		memcpy(path + at, text, n);
		path[--at] = '.';
	}
	return path[at] ? intern_string(path + at + 1, sizeof(path) - at - 2) : 0;
}

/* Nearest first: containers, which are not called themselves, are between the two. */
uint32_t module_name(const char *in, const char *module)
{
	static struct tree t;		/* under the lock of rec_modules.c */
	const char *key, *value;
	struct dict d;

	t.n = 1;
	t.at[0].object = in;
	for (uint32_t of = 0; of < t.n; of++) {
		if (!modules_of(t.at[of].object, &d))
			continue;
		for (struct entries e = {.d = &d}; t.n < TREE_MAX && next_entry(&e, &key, &value);) {
			if (value == py.none)
				continue;
			t.at[t.n].object = value;
			t.at[t.n].key = key;
			t.at[t.n].of = of;
			if (value == module)
				return path_to(&t, t.n);
			t.n++;
		}
	}
	return 0;
}
