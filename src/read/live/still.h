/* SPDX-License-Identifier: Apache-2.0
 * Reads the objects of a running Python program at a moment at which none of them changes.
 */
#ifndef CUWHY_STILL_H
#define CUWHY_STILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "read/live/pyproc.h"

struct still {
	uint64_t stop_ns;	/* the longest stop */
	unsigned stops;
};

/* Calls `look` while the thread that has the GIL is stopped: nobody else may change an object. A thread that sleeps is never stopped (see
 * stop.h); where nobody has the GIL, or who has it sleeps, it is called twice, and what both saw was so in between. `again`: it was called
 * before for the same moment. It must take milliseconds, and obeys the rules of while_stopped(). False: there was no such moment. */
bool while_still(struct pyproc *p, pid_t pid, void (*look)(void *arg, bool again), void *arg, struct still *s);

#endif
