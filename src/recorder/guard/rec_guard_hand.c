/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: a thread of ours that does what the driver takes long for.
 *
 * Mapping and unmapping take some 60 us for each tensor, and a training step has a thousand of them. Launches of other threads are
 * not slowed down by it (H200, R580: 4.2 us before, 4.4 beside a thread that maps all the time). Where there can be no thread, and
 * from the end of the program on, the program's own threads do it, as they need it.
 *
 * It must not call the driver while that is taken down: at exit it is stopped before.
 */
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder/guard/rec_guard_own.h"

#define LOOK_AGAIN_NS	200000		/* for events that have not happened: a step is longer */
#define STOP_MOST	40000		/* waits of 50 us: a dump that is being written may hold the driver */

enum { DOZING = 1, ASLEEP };		/* it will wake by itself; it will not */
enum { RELAXED = 2 };			/* a capture in another thread must not end for what this one does */

static struct {
	_Atomic bool started, works, stop;
	_Atomic bool at_work;		/* may be in the driver */
	_Atomic uint32_t bell, asleep;
	_Atomic int pid;		/* whose it is: a forked child has none */
} hand;

void hand_reset(void)
{
	atomic_store(&hand.started, false);
	atomic_store(&hand.works, false);
	atomic_store(&hand.stop, false);
	atomic_store(&hand.at_work, false);
	atomic_store(&hand.pid, 0);
}

bool hand_works(void)
{
	return atomic_load_explicit(&hand.works, memory_order_acquire);
}

/* One piece of work. False: there is none. */
static bool work(void)
{
	bool did = false;

	atomic_store(&hand.at_work, true);
	if (!atomic_load(&hand.stop) && !failed_before() && !atomic_load(&rec.captures)) {
		for (int i = 0; i < CW_MAX_DEVICES; i++)
			if (device_known(i))
				did |= free_old(i) | free_one(i);
		while (!atomic_load(&hand.stop) && !atomic_load(&rec.captures) && pages_prepare())
			did = true;
	}
	atomic_store(&hand.at_work, false);
	return did;
}

static void rest(uint32_t heard)
{
	struct timespec soon = {.tv_nsec = LOOK_AGAIN_NS};
	bool waits;

	atomic_store(&hand.asleep, ASLEEP);
	waits = free_waits();
	if (waits)
		atomic_store(&hand.asleep, DOZING);
	syscall(SYS_futex, &hand.bell, FUTEX_WAIT_PRIVATE, heard, waits ? &soon : NULL, NULL, 0);
	atomic_store(&hand.asleep, 0);
}

static void *hand_main(void *unused)
{
	uint32_t heard;
	int mode = RELAXED;

	(void)unused;
	if (!rec_enter())
		return NULL;
	rec_nesting = 2;
	if (drv.cuThreadExchangeStreamCaptureMode)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
	atomic_store_explicit(&hand.works, !atomic_load(&hand.stop), memory_order_release);
	while (!atomic_load(&hand.stop)) {
		heard = atomic_load(&hand.bell);
		if (!work())
			rest(heard);
	}
	return NULL;
}

typedef int create_fn(unsigned long *, const void *, void *(*)(void *), void *);
typedef int detach_fn(unsigned long);

static bool thread_new(void *(*code)(void *), void *with)
{
	create_fn *create = elf_symbol_anywhere("pthread_create");
	detach_fn *detach = elf_symbol_anywhere("pthread_detach");
	struct signals signals;
	unsigned long thread;
	bool made;

	if (!create || !detach || sandbox_is_new())
		return false;
	signals = signals_block();
	made = create(&thread, NULL, code, with) == 0;
	if (made)
		detach(thread);
	signals_unblock(&signals);
	return made;
}

static struct {
	CUresult (*call)(void);
	void *context;
	_Atomic CUresult result;
	_Atomic bool ended;
} errand;

static void *errand_main(void *unused)
{
	CUresult (*set)(void *) = door(ENTRY_cuCtxSetCurrent);

	(void)unused;
	rec_nesting = 2;	/* nothing of it is recorded */
	atomic_store(&errand.result, set && set(errand.context) == 0 ? errand.call() : CU_NO_DRIVER);
	atomic_store(&errand.ended, true);
	return NULL;
}

bool hand_waits(CUresult (*call)(void))
{
	struct timespec moment = {.tv_nsec = 50000};
	uint64_t began = rec_mono_ns();

	errand.call = call;
	atomic_store(&errand.ended, false);
	if (!drv.cuCtxGetCurrent || drv.cuCtxGetCurrent(&errand.context) != 0 || !thread_new(errand_main, NULL))
		return call() == 0;
	while (!atomic_load(&errand.ended)) {
		if (rec_mono_ns() - began > GUARD_WAIT_NS)
			return false;
		nanosleep(&moment, NULL);
	}
	return atomic_load(&errand.result) == 0;
}

static void at_exit(int status, void *unused)
{
	(void)status;
	(void)unused;
	hand_stop();
}

/* With the first memory on a device. What the driver does at exit it has registered by then, so that our handler runs before. */
void hand_start(void)
{
	if (atomic_exchange(&hand.started, true))
		return;
	atomic_store(&hand.pid, getpid());
	on_exit(at_exit, NULL);
	thread_new(hand_main, NULL);
}

void hand_ring(void)
{
	atomic_fetch_add(&hand.bell, 1);
	if (hand_works() && atomic_load(&hand.asleep))
		syscall(SYS_futex, &hand.bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void hand_nudge(void)
{
	atomic_fetch_add(&hand.bell, 1);
	if (hand_works() && atomic_load(&hand.asleep) == ASLEEP)
		syscall(SYS_futex, &hand.bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void hand_stop(void)
{
	struct timespec moment = {.tv_nsec = 50000};

	if (atomic_load(&hand.pid) != getpid())
		return;
	atomic_store(&hand.stop, true);
	atomic_store(&hand.works, false);
	atomic_fetch_add(&hand.bell, 1);
	syscall(SYS_futex, &hand.bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	for (uint32_t i = 0; i < STOP_MOST && atomic_load(&hand.at_work); i++)
		nanosleep(&moment, NULL);
}
