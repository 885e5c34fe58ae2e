/* SPDX-License-Identifier: Apache-2.0
 * Which thread holds what another one waits for.
 *
 * A lock of Python's is a semaphore, and a thread that waits for it sleeps at the semaphore's address. The object with that address is on
 * the stack of the frame that wants it. An RLock says whose it is. A plain Lock does not: CPython does not record it. But `with lock:`
 * keeps the lock's __exit__ on the stack of its frame until the block ends, so another thread with that on its stack most likely is
 * inside such a block.
 *
 * In later Pythons (3.13.5, not 3.13.0) a plain Lock is one byte, and a thread that waits for it sleeps at an address on its own
 * stack. Then it is the lock that another thread holds and that is waited for, if there is only one such on the stack of the
 * frame.
 */
#include <string.h>
#include <sys/syscall.h>

#include "read/live/look.h"
#include "find/hang/waits.h"

#define LOCK_SEMAPHORE	16	/* lockobject and rlockobject: the lock; RLock: its owner, how often */
#define RLOCK_OWNER	24
#define METHOD_DEF	16	/* PyCFunctionObject: its definition, its object */
#define METHOD_SELF	24
#define FRAMES_LOOKED_AT 6
#define LOCK_WAITED_FOR	3	/* the byte: it is held, and a thread waits */
#define STACK_NEAR	65536u	/* from where the system call was made to the function that waits */

enum lock_kind { LOCK_NONE, LOCK_PLAIN, LOCK_RECURSIVE };

static enum lock_kind lock_at(struct pyproc *p, uint64_t object, uint64_t semaphore)
{
	uint64_t at = 0;
	char type[32];

	if (!pyproc_type(p, object, type, sizeof(type)) || !remote_word(p->r, object + LOCK_SEMAPHORE, &at) ||
	    at != semaphore)
		return LOCK_NONE;
	return !strcmp(type, "_thread.lock") ? LOCK_PLAIN : !strcmp(type, "_thread.RLock") ? LOCK_RECURSIVE : LOCK_NONE;
}

/* The object itself, or the one whose method this is. `exits`: it is the method that leaves a `with` block. */
static uint64_t owner_of_method(struct pyproc *p, uint64_t object, bool *exits)
{
	uint64_t self = 0, definition = 0, name = 0;
	char text[32];

	*exits = false;
	if (!pyproc_type(p, object, text, sizeof(text)) || strcmp(text, "builtin_function_or_method") != 0 ||
	    !remote_word(p->r, object + METHOD_SELF, &self) || !remote_word(p->r, object + METHOD_DEF, &definition) ||
	    !remote_word(p->r, definition, &name) || !remote_string(p->r, name, text, sizeof(text)))
		return object;
	*exits = !strcmp(text, "__exit__");
	return self;
}

/* It sleeps at an address on its own stack. */
static bool is_parked(const struct seen *s)
{
	return s->task.sp && s->task.arg[0] - s->task.sp < STACK_NEAR;
}

static bool is_waited_for(struct pyproc *p, uint64_t object)
{
	uint64_t state = 0;
	char type[32];

	return pyproc_type(p, object, type, sizeof(type)) && !strcmp(type, "_thread.lock") &&
	       remote_word(p->r, object + LOCK_SEMAPHORE, &state) && state == LOCK_WAITED_FOR;
}

static bool is_inside_with(struct process_look *l, const struct seen *s, uint64_t lock)
{
	uint64_t list[PY_WORDS_MAX];
	bool exits;

	for (size_t i = 0; i < s->n_last; i++) {
		size_t n = pyproc_objects(&l->py, &s->last[i].raw, list, PY_WORDS_MAX);

		for (size_t k = 0; k < n; k++)
			if (owner_of_method(&l->py, list[k], &exits) == lock && exits)
				return true;
	}
	return false;
}

/* The only lock in this frame that is waited for, and that the thread does not hold itself; 0 = none, or several. */
static uint64_t only_waited_for(struct process_look *l, const struct seen *s, const uint64_t *list, size_t n)
{
	uint64_t found = 0;
	bool exits;

	for (size_t k = 0; k < n; k++) {
		uint64_t object = owner_of_method(&l->py, list[k], &exits);

		if (object == found || !is_waited_for(&l->py, object) || is_inside_with(l, s, object))
			continue;
		if (found)
			return 0;
		found = object;
	}
	return found;
}

/* The lock object that the thread waits for; 0 = it is not on its stack. */
static uint64_t find_lock(struct process_look *l, const struct seen *s, uint64_t semaphore, enum lock_kind *kind)
{
	uint64_t list[PY_WORDS_MAX];
	bool exits;

	for (size_t i = 0; i < s->n_last && i < FRAMES_LOOKED_AT; i++) {
		size_t n = pyproc_objects(&l->py, &s->last[i].raw, list, PY_WORDS_MAX);
		uint64_t parked = is_parked(s) ? only_waited_for(l, s, list, n) : 0;

		if (parked) {
			*kind = LOCK_PLAIN;
			return parked;
		}
		for (size_t k = 0; k < n; k++) {
			uint64_t object = owner_of_method(&l->py, list[k], &exits);

			*kind = lock_at(&l->py, object, semaphore);
			if (*kind != LOCK_NONE)
				return object;
		}
	}
	return 0;
}

static bool waits_at(const struct seen *s, uint64_t semaphore)
{
	return s->task.in_call && s->task.call == SYS_futex && s->task.arg[0] == semaphore;
}

static void holder_of_plain(struct live_thread *t, struct process_look *l, const struct seen *s, uint64_t lock,
			    uint64_t semaphore)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct seen *other = &l->thread[i];

		if (other == s || other->gone || waits_at(other, semaphore) || !is_inside_with(l, other, lock))
			continue;
		t->holder = other->task.tid;
		return;
	}
}

void thread_holder(struct live_thread *t, struct process_look *l, const struct seen *s)
{
	uint64_t semaphore = s->task.arg[0], owner = 0, lock;
	enum lock_kind kind = LOCK_NONE;
	const struct seen *holder;

	if (!s->py.state)
		return;
	remote_forget(&l->remote);
	if (t->waits == LIVE_GIL) {
		holder = look_state(l, pyproc_gil_holder(&l->py, s->py.gil));
		t->holder = holder && holder != s ? holder->task.tid : 0;
		t->holder_sure = t->holder != 0;
		return;
	}
	if (t->waits != LIVE_LOCK || !s->task.in_call || s->task.call != SYS_futex)
		return;
	lock = find_lock(l, s, semaphore, &kind);
	if (kind == LOCK_RECURSIVE && remote_word(&l->remote, lock + RLOCK_OWNER, &owner)) {
		holder = look_pthread(l, owner);
		t->what = "an RLock";
		t->holder = holder ? holder->task.tid : 0;
		t->holder_sure = holder != NULL;
	} else if (kind == LOCK_PLAIN) {
		t->what = "a Lock";
		holder_of_plain(t, l, s, lock, semaphore);
	}
}
