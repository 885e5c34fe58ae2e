/* SPDX-License-Identifier: Apache-2.0
 * How the process ended, for processes whose parent is not `cuwhy run`: their status would be lost.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rec.h"

static void ended(int status)
{
	/* not in a child that never used CUDA: this is its parent's recording. After fork the page that
	 * says so is wiped; a child of vfork still shares it, and differs in its number only. */
	if (rec_asleep() || (uint32_t)getpid() != rec.pid)
		return;
	rec.h->exit_status = (uint32_t)status & 0xff;
	rec.h->exit_mono_ns = rec_mono_ns();
	rec_clock_mark();
	shared_set(&rec.h->exit_known, 1);
}

static void on_exit_handler(int status, void *data)
{
	(void)data;
	ended(status);
}

void exit_start(void)
{
	static bool registered;

	if (!registered)	/* a forked child has its parent's handlers */
		registered = on_exit(on_exit_handler, NULL) == 0;
}

/* os._exit of Python, and what multiprocessing children end with: exit handlers do not run. */
EXPORT void _exit(int status) __attribute__((noreturn));
void _exit(int status)
{
	ended(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status) __attribute__((noreturn, alias("_exit")));
