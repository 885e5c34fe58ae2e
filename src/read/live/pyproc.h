/* SPDX-License-Identifier: Apache-2.0
 * The Python stacks of another process: its interpreters, threads and frames, read from outside.
 */
#ifndef CUWHY_PYPROC_H
#define CUWHY_PYPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "cuwhy/python.h"
#include "read/live/remote.h"

struct target;

#define PY_FRAMES_MAX	256
#define PY_WORDS_MAX	512	/* variables and stack of a frame */

struct py_states {
	uint16_t minor, head;
	uint16_t next, threads, gil;
	uint16_t thread_next, thread_id, native;
	uint16_t gil_holder, gil_locked, gil_size;
};

struct pyproc {
	struct remote *r;
	bool found;
	char why[160];		/* not found: why, in words */
	struct py_layout l;
	struct py_states s;
	uint16_t locals, n_locals, stack, bytecode, stack_size, globals, names;
	uint16_t tuple_items;	/* of a tuple: the first */
	uint32_t modules;	/* of an interpreter, where it says so itself; 0 = it does not */
	uint64_t runtime, code_type;	/* code_type 0: not known */
	uint32_t version;	/* 0x030b07f0 */
	unsigned mixed;		/* objects in the number of pyproc_contents so far */
};

struct py_thread {
	uint64_t state, pthread;
	uint32_t tid;		/* 0 = not known (3.9 and 3.10) */
	uint64_t gil, gil_size;	/* the GIL of its interpreter; 0 = not known */
};

struct py_raw { uint64_t frame, code, instr; };

struct py_walked {
	struct py_raw raw[PY_FRAMES_MAX];	/* innermost first */
	size_t n;
	bool cut;		/* there are more */
};

struct py_frame {
	const char *file, *function;
	uint32_t line, first_line;
};

/* Finds CPython in the process. `found` false: `why` says why not. */
void pyproc_open(struct pyproc *p, struct target *t, struct remote *r);
/* The same for a known place; for tests. `version`: PY_VERSION_HEX. */
void pyproc_at(struct pyproc *p, struct remote *r, uint64_t runtime, uint64_t code_type, uint32_t version);

/* How many; 0 also when nothing can be read. `*whole`: these are all of them; false: there are more than `max`, or the chain changed while it was read. */
size_t pyproc_threads(struct pyproc *p, struct py_thread *list, size_t max, bool *whole);
/* The thread state that holds this GIL; 0 = nobody. */
uint64_t pyproc_gil_holder(struct pyproc *p, uint64_t gil);

/* False if the chain cannot be read: it is changing, or not one of frames. */
bool pyproc_walk(struct pyproc *p, uint64_t state, struct py_walked *w);
bool pyproc_frame(struct pyproc *p, const struct py_raw *raw, struct py_frame *out, struct pool *pool);

/* The objects that a frame holds: its variables, and what is on its stack or was there before. Returns how many. */
size_t pyproc_objects(struct pyproc *p, const struct py_raw *raw, uint64_t *list, size_t max);
/* A number that changes when one of the variables does, or what an object in them holds. */
uint64_t pyproc_contents(struct pyproc *p, const struct py_raw *raw);

/* "_thread.lock"; false if it is no object. */
bool pyproc_type(struct pyproc *p, uint64_t object, char *name, size_t size);
bool pyproc_text(struct pyproc *p, uint64_t unicode, char *to, size_t size);

#endif
