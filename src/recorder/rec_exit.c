/* SPDX-License-Identifier: Apache-2.0
 * How the process ended, for processes whose parent is not `cuwhy run`: otherwise their status would be lost.
 * And a last check for a kernel that failed after the driver had reported success.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/guard/rec_guard.h"

#define LATE_FAULT 1	/* the status Python would have exited with */

/* Not in a child that never used CUDA: there, the recording is its parent's. After fork the state page is wiped;
 * after vfork the child still shares it, and only its pid differs. */
static bool is_ours(void)
{
	return !rec_asleep() && (uint32_t)getpid() == rec.pid;
}

/* Only the simulated GPU has such a function. */
static void note_peaks(void)
{
	bool (*memory)(int, size_t *, size_t *, size_t *) = NULL;
	size_t total, used, peak;
	struct elf_object o;

	if (elf_find_object("libcuda.so", &o))
		*(void **)&memory = elf_symbol(&o, "cuwhy_sim_memory");
	for (int i = 0; memory && i < CW_MAX_DEVICES && memory(i, &total, &used, &peak); i++)
		rec.h->sim_used_peak[i] = peak;
}

static void ended(int status)
{
	if (rec.h->sim)
		note_peaks();
	rec.h->exit_status = (uint32_t)status & 0xff;
	rec.h->exit_mono_ns = rec_mono_ns();
	rec_clock_mark();
	shared_set(&rec.h->exit_known, 1);
}

static void leave_at_once(int status)
{
	ended(status);
	fflush(NULL);
	for (;;)
		syscall(SYS_exit_group, status);
}

static void on_exit_handler(int status, void *data)
{
	(void)data;
	if (!is_ours())
		return;
	guard_at_exit();
	if (dump_at_exit(true))
		leave_at_once(status ? status : LATE_FAULT);
	ended(status);
}

static void after_fault(int status, void *data)
{
	(void)data;
	if (is_ours())
		leave_at_once(dump_at_exit(true) && !status ? LATE_FAULT : status);
}

void exit_start(void)
{
	static bool registered;

	if (!registered)	/* a forked child has its parent's handlers */
		registered = on_exit(on_exit_handler, NULL) == 0;
}

/* The library that writes dumps is loaded with the first dump. Its exit handler joins its own thread, which may find
 * its memory already freed (abort or SIGSEGV in 5 of 60 programs when ten fault at once; R580, H200), or which waits
 * forever after it abandoned a dump. A handler registered now runs before that one, exits at once, and so skips it and
 * all handlers registered earlier. */
void exit_at_once_after_fault(void)
{
	on_exit(after_fault, NULL);
}

/* Before any exit handler: the one of the library that is writing a dump may crash. */
void exit_is_near(void)
{
	if (!is_ours())
		return;
	guard_at_exit();
	dump_at_exit(true);
}

/* Python's os._exit, and how multiprocessing children end: exit handlers do not run. A signal handler may call it, while
 * the driver holds its locks. */
EXPORT void _exit(int status) __attribute__((noreturn));
void _exit(int status)
{
	if (is_ours()) {
		if (dump_at_exit(false) && !status)
			status = LATE_FAULT;
		ended(status);
	}
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status) __attribute__((noreturn, alias("_exit")));
