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
	uint32_t tid;
	bool seized, stopped;
	uint64_t since_ns;
	uint64_t sp, pc;
	uint64_t reg[16];	/* in the order of DWARF; 0 on other processors than x86-64 */
};

/* False: it does not stop, or may not be stopped (errno). Ends with stop_end in any case. */
bool stop_begin(struct stopped *s, uint32_t tid);
/* Lets it go on. Returns for how long it was stopped, in nanoseconds, from when the kernel told us so. */
uint64_t stop_end(struct stopped *s);

#endif
