/* SPDX-License-Identifier: Apache-2.0
 * Stops one thread of another process for a moment.
 *
 * Only threads that run are ever stopped. One that sleeps in a system call stays where it is while we read, and stopping it would
 * make some calls return early (EINTR: epoll_wait, sockets with a timeout), which not every program expects.
 */
#ifndef CUWHY_STOP_H
#define CUWHY_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stopped {
	uint64_t sp, pc;
	uint64_t reg[16];	/* in the order of DWARF */
};

/* Calls `look` while the thread is stopped, in memory that is ours, but as another process: it must open nothing and print nothing. Then the
 * thread goes on as if nothing had been: signals that came meanwhile are delivered, calls that were interrupted are made again.
 * 0, or -errno: it was not stopped in time, has ended, or may not be stopped. `ns`: for how long it was, from when the kernel told us so. */
int while_stopped(uint32_t tid, void (*look)(const struct stopped *s, void *arg), void *arg, uint64_t *ns);

#endif
