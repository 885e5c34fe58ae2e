/* SPDX-License-Identifier: Apache-2.0
 * What each thread of a process waits for, who has it, and whether the process is hung.
 */
#ifndef CUWHY_WAITS_H
#define CUWHY_WAITS_H

#include "base/pool.h"
#include "case/live.h"

struct process_look;
struct seen;

/* All of it; texts are the pool's. */
void live_tell(struct live *out, struct process_look *l, struct pool *pool);
/* Its threads only; `native`: with their native stacks. */
void live_threads(struct live *out, struct process_look *l, bool native, struct pool *pool);
/* Can only another thread of the same process end the wait? */
bool waits_inside(const struct live_thread *t);

/* waits.c: one thread. Its frames, native and Python, are filled already. */
void thread_waits(struct live_thread *t, struct process_look *l, struct seen *s, struct pool *pool);

/* Of those that were told; NULL = none. */
struct live_thread *told_thread(const struct live *out, uint32_t tid);
/* circle.c: do threads wait for each other's locks, and what may end that? */
void find_circle(struct live *out, struct process_look *l, struct pool *pool);

/* locks.c: who has the lock that a thread waits for at this address; fills `holder`. */
void thread_holder(struct live_thread *t, struct process_look *l, const struct seen *s);

#endif
