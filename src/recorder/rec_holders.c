/* SPDX-License-Identifier: Apache-2.0
 * Asks `cuwhy run` which objects keep the program's tensors alive, when an out-of-memory error ends it.
 *
 * The objects are read from outside, and no code of the program runs. For that they must hold still: this thread, which has the GIL,
 * waits, not longer than a second, and then the program goes on ending.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "rec_python.h"
#include "rec_segment.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif
#define NAP_NS	500000

static bool ran_out;	/* with the GIL held */

void holders_consider(const char *type, const char *text)
{
	ran_out |= strcmp(type, "OutOfMemoryError") == 0 || strstr(text, "out of memory") != NULL;
}

/* Where Yama is on, only an ancestor may read a process's memory, unless that says who else. */
static void allow(pid_t reader)
{
	if (reader > 0)
		prctl(PR_SET_PTRACER, (unsigned long)reader, 0, 0, 0);
}

static bool is_done(struct cw_holders *h)
{
	return shared_get(&h->state) == CW_HOLDERS_DONE;
}

static void wait_for(struct cw_holders *h)
{
	while (!is_done(h) && rec_mono_ns() - h->asked_ns < CW_HOLDERS_WAIT_NS)
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	if (!is_done(h))
		shared_set(&h->state, CW_HOLDERS_TOO_LATE);
}

void holders_ask(const void *exception)
{
	static uint32_t generation;	/* a program may call the hook by itself, again and again */
	struct cw_holders *h;

	if (!ran_out || !rec.h || !shared_get(&rec.h->n_blocks) || generation == rec.generation + 1)
		return;
	generation = rec.generation + 1;
	h = chunk_new(CW_CHUNK_HOLDERS, sizeof(*h), 0);
	if (!h)
		return;
	h->exception = (uintptr_t)exception;
	h->asked_ns = rec_mono_ns();
	if (holders_wake(allow)) {
		wait_for(h);
		prctl(PR_SET_PTRACER, 0ul, 0, 0, 0);
	} else {
		shared_set(&h->state, CW_HOLDERS_TOO_LATE);
	}
}
