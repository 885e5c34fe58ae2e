/* SPDX-License-Identifier: Apache-2.0
 * How the process ended, for processes whose parent is not `cuwhy run`: their status would be lost. And
 * a last look for a kernel that has failed after the program was told that all is well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rec.h"

#define LATE_FAULT 1	/* what Python would have ended with */

/* Not in a child that never used CUDA: this is its parent's recording. After fork the page that says so is
 * wiped; a child of vfork still shares it, and differs in its number only. */
static bool is_ours(void)
{
	return !rec_asleep() && (uint32_t)getpid() == rec.pid;
}

static void ended(int status)
{
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
	if (dump_at_exit())
		leave_at_once(status ? status : LATE_FAULT);
	ended(status);
}

static void after_fault(int status, void *data)
{
	(void)data;
	if (is_ours())
		leave_at_once(dump_at_exit() && !status ? LATE_FAULT : status);
}

void exit_start(void)
{
	static bool registered;

	if (!registered)	/* a forked child has its parent's handlers */
		registered = on_exit(on_exit_handler, NULL) == 0;
}

/* The library that writes dumps comes with the first one. Its exit handler joins its own thread, which may find
 * its memory gone already (abort or SIGSEGV in 5 of 60 programs when ten fault at once; R580, H200), or waits for ever
 * when it has given up a dump. A handler registered now runs before it, and before those of all that came
 * earlier: they are not run. */
void exit_at_once_after_fault(void)
{
	on_exit(after_fault, NULL);
}

/* Before any exit handler: that of the library which writes a dump just now may crash. */
void exit_is_near(void)
{
	if (is_ours())
		dump_at_exit();
}

/* os._exit of Python, and what multiprocessing children end with: exit handlers do not run. */
EXPORT void _exit(int status) __attribute__((noreturn));
void _exit(int status)
{
	if (is_ours()) {
		if (dump_at_exit() && !status)
			status = LATE_FAULT;
		ended(status);
	}
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status) __attribute__((noreturn, alias("_exit")));
