/* SPDX-License-Identifier: Apache-2.0
 * Which threads wait for the GPU, and the pipe through which `cuwhy run` requests a core dump of the running GPU.
 *
 * Only with --hang-after. The mark is set before the call, since a call that hangs never returns: the clock, the
 * call and the Python stack are stored in the head of the thread's ring, where `cuwhy run` reads them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "rec.h"

#define NOT_READY	600
#define HOLD_NS		20000000000u	/* longer than `cuwhy run` takes to end the program */
#define HOLD_STEP_NS	20000000

void hang_forget(void)
{
	rec.waits = rec_getenv("CUWHY_HANG") != NULL;
}

void hang_start(void)
{
	const char *folder = rec_getenv("CUWHY_HANG");
	char path[sizeof(rec.h->pipe_path)];
	size_t n;

	if (rec.h->pipe_path[0] || rec.h->pipe_reason)
		return;
	if (!folder) {
		rec.h->pipe_reason = CW_REASON_NOT_ASKED;
		return;
	}
	n = strnlen(folder, sizeof(path) - 32);
	memcpy(path, folder, n);
	memcpy(path + n, "/pipe-", 6);
	n += 6 + rec_put_number(path + n + 6, 24, (long)rec.pid);
	rec.h->pipe_reason = dump_arm_trigger(folder, path);
	if (!rec.h->pipe_reason)
		text_copy(rec.h->pipe_path, sizeof(rec.h->pipe_path), path, n);
}

static void set_mark(struct cw_ring *r, enum api api, uint32_t stack)
{
	r->wait.api = api;
	r->wait.stack = stack;
	r->polls = 0;
	shared_set(&r->wait.since_ns, rec_mono_ns());
}

void wait_mark(enum api api)
{
	struct rec_thread *t = rec_self;
	int saved = errno;

	t->entry_stack = stack_here();
	if (t->calls)
		set_mark(t->calls, api, t->entry_stack);
	errno = saved;
}

/* The dump has ended the kernel, and `cuwhy run` is about to end the program: keep it from reporting this error. */
static void hold(void)
{
	const struct timespec pause = {.tv_nsec = HOLD_STEP_NS};
	uint64_t until = rec_mono_ns() + HOLD_NS;

	while (rec_mono_ns() < until)
		nanosleep(&pause, NULL);
}

void wait_unmark(CUresult result)
{
	struct cw_ring *r = rec_self->calls;
	int saved = errno;

	if (r)
		shared_set(&r->wait.since_ns, 0);
	if (unlikely(result) && code_is_sticky(result) && (shared_get(&rec.h->hang.flags) & CW_HANG_END))
		hold();
	errno = saved;
}

void wait_left(void)
{
	if (rec.waits && rec_self->calls)
		shared_set(&rec_self->calls->wait.since_ns, 0);
}

/* Polling is waiting, too, as long as the answer is always "not ready". */
void wait_poll(enum api api, CUresult result)
{
	struct cw_ring *r = rec_self->calls;

	if (!rec.waits || !r)
		return;
	if (result != NOT_READY) {
		wait_unmark(result);
		return;
	}
	if (!r->wait.since_ns)
		set_mark(r, api, stack_here());
	shared_set(&r->polls, r->polls + 1 ? r->polls + 1 : 1);
}
