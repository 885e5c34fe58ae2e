/* SPDX-License-Identifier: Apache-2.0
 * Locks that no thread can hold forever.
 *
 * The program's threads can leave our code without returning from it: a signal handler may jump out (siglongjmp), a
 * thread may be canceled. A lock that stayed behind would cost every later event a full wait. So a lock knows its
 * holder, and all locks are listed: a thread that jumps releases its own, and one whose holder has ended is taken over.
 * What a lock protects is readable at any moment, because the program may be killed at any moment.
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rec.h"

#define GIVE_UP 4096

extern struct spin *__start_cuwhy_locks[] __attribute__((visibility("hidden")));
extern struct spin *__stop_cuwhy_locks[] __attribute__((visibility("hidden")));

bool thread_is_gone(uint32_t tid)
{
	int saved = errno;
	bool gone = !sandbox_is_new() && syscall(SYS_tgkill, rec.pid, tid, 0) != 0 && errno == ESRCH;

	errno = saved;
	return gone;
}

bool spin_wait(struct spin *s, uint32_t me)
{
	uint32_t holder = 0;

	for (int i = 0; i < GIVE_UP; i++) {
		holder = 0;
		if (atomic_compare_exchange_strong_explicit(&s->holder, &holder, me, memory_order_acquire,
							    memory_order_relaxed))
			return true;
		if (holder == me && me != SPIN_STRANGER)	/* a signal handler interrupted the holder: it cannot go on */
			return false;
		if (i > 64)
			sched_yield();
	}
	return holder != SPIN_STRANGER && thread_is_gone(holder) &&
	       atomic_compare_exchange_strong_explicit(&s->holder, &holder, me, memory_order_acquire,
						       memory_order_relaxed);
}

void locks_release_mine(void)
{
	for (struct spin **s = __start_cuwhy_locks; s < __stop_cuwhy_locks; s++) {
		uint32_t holder = rec_self->tid;

		atomic_compare_exchange_strong(&(*s)->holder, &holder, 0);
	}
}

void locks_reset(void)
{
	for (struct spin **s = __start_cuwhy_locks; s < __stop_cuwhy_locks; s++)
		atomic_store(&(*s)->holder, 0);
}
