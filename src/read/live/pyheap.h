/* SPDX-License-Identifier: Apache-2.0
 * The objects of a Python program in another process: what each of them is, and which others it refers to.
 *
 * Nothing of the program runs for this, and nothing that is read is trusted: an object counts only if its class is one.
 */
#ifndef CUWHY_PYHEAP_H
#define CUWHY_PYHEAP_H

#include "base/map.h"
#include "base/pool.h"
#include "read/live/pyproc.h"

enum py_kind {
	PY_NOTHING,	/* not an object, or one that refers to none: a number, a text, a weak reference */
	PY_PLAIN,	/* its own words and attributes are all that it has */
	PY_LIST,
	PY_TUPLE,
	PY_DICT,
	PY_SET,
	PY_DEQUE,
	PY_CLASS,
	PY_FUNCTION,
	PY_FRAME,
	PY_GENERATOR,
	PY_CELL,
	PY_MODULE,
	PY_TRACEBACK,
	PY_EXCEPTION,
	PY_TENSOR,
	PY_ARRAY,	/* of NumPy's: it may be of objects */
	PY_LOCAL,	/* threading.local: the variables of each thread */
	PY_CONTEXT,	/* of contextvars */
	PY_CONTEXT_PART	/* of a context: pairs of a variable and its value, or of nothing and another part */
};

struct py_type {
	uint64_t at;
	enum py_kind kind;
	uint64_t flags;
	uint32_t basic, own;	/* bytes of an object; from where on they belong to a class derived from what `kind` says */
	uint32_t weak, dict;	/* where it has its list of weak references and its dictionary; 0 = nowhere */
	const char *name;
};

/* How one object refers to another. */
enum py_link {
	LINK_DICT,	/* its dictionary of attributes or variables */
	LINK_ENTRY,	/* of a dictionary */
	LINK_ATTRIBUTE,
	LINK_ITEM,
	LINK_VARIABLE,	/* of a frame */
	LINK_CLOSED,	/* a variable from outside of a function */
	LINK_WORD,	/* somewhere in it */
	LINK_CALLER,	/* of a frame */
	LINK_CONTEXT	/* a variable of a context */
};

#define PY_EDGES_MAX	(4u << 20)	/* of one object: 128 MiB */

struct py_edge {
	uint64_t to;
	uint64_t name;		/* a Python object: the key of an entry, a text; 0 = none */
	uint32_t at;		/* which item; where in the object */
	enum py_link link;
};

struct py_edges {
	struct py_edge *list;
	size_t n, cap;
	bool full;		/* there are more */
};

struct pyheap {
	struct pyproc *p;
	uint16_t modules, keys, generator, generator_state, names, cell_names, free_names, code, closure, traceback,
		frame, frame_locals;
	uint64_t until_ns;	/* CLOCK_MONOTONIC: reading ends then */
	bool late;		/* it did */
	struct pool pool;
	struct py_type *type;
	size_t n_types, cap_types;
	struct map types;
};

void pyheap_open(struct pyheap *h, struct pyproc *p, uint64_t until_ns);
void pyheap_close(struct pyheap *h);

/* Asked before each of many steps: false when the time is over. */
bool pyheap_in_time(struct pyheap *h, uint64_t step);

/* NULL: it is no object, as far as can be seen. Valid until the next call. */
const struct py_type *pyheap_type(struct pyheap *h, uint64_t object);

/* Adds what it refers to; objects that refer to nothing are left out. */
void pyheap_edges(struct pyheap *h, uint64_t object, struct py_edges *to);

/* Is this reference of the object still where it was found? Cheap; false also where its place may have moved. */
bool pyheap_at_place(struct pyheap *h, uint64_t object, const struct py_edge *e);

/* Of a list, a tuple, a set, a deque or a dictionary: how many items; false if it is none, or that cannot be read. */
bool pyheap_length(struct pyheap *h, uint64_t object, uint64_t *n);

/* The dictionary of all modules of the first interpreter, and that of a module; 0 = not known. */
uint64_t pyheap_modules(struct pyheap *h);
uint64_t pyheap_module_dict(struct pyheap *h, uint64_t module);

/* The value of a text key that is among the `first` ones of a dictionary; 0 = none. */
uint64_t pyheap_lookup(struct pyheap *h, uint64_t dict, const char *key, uint64_t first);

/* The variables of a frame of a thread, and the frame of a frame object as such. */
void pyheap_variables(struct pyheap *h, const struct py_raw *raw, struct py_edges *to);
bool pyheap_frame(struct pyheap *h, uint64_t frame_object, struct py_raw *raw);
bool pyheap_generator(struct pyheap *h, uint64_t generator, struct py_raw *raw);	/* one that has not ended */

/* The frame objects of an exception's traceback, outermost first; returns how many. */
size_t pyheap_traceback(struct pyheap *h, uint64_t exception, uint64_t *frame, size_t max);

/* The name of the member that is at this place of an object: of a slot; false if there is none. */
bool pyheap_member(struct pyheap *h, uint64_t object, uint32_t at, char *name, size_t size);

/* The name of the field at this place of a named tuple; false if it has none. */
bool pyheap_field(struct pyheap *h, uint64_t tuple, uint32_t at, char *name, size_t size);

/* The context in which a thread runs; 0 = it has none. `state`: of the thread. */
uint64_t pyheap_context(struct pyheap *h, uint64_t state);

/* The function's code as a place: file, name, first line. */
bool pyheap_function(struct pyheap *h, uint64_t function, struct py_frame *to, struct pool *pool);

#endif
