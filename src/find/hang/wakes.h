/* SPDX-License-Identifier: Apache-2.0
 * A thread that waits is not hung for good if something goes on by itself that may do what it waits for: a thread or a process that sleeps with
 * a time limit, a signal handler. Nothing tells whether it will.
 */
#ifndef CUWHY_WAKES_H
#define CUWHY_WAKES_H

#include <stdbool.h>

#include "base/pool.h"
#include "case/live.h"

struct process_look;

/* Does it run one of the functions of kb/python_helpers.def? */
bool only_helps(const struct live_thread *t);

/* A sentence about what may wake `t`, a thread of `of`; NULL = nothing is known to. */
const char *what_wakes(const struct live *of, const struct live_thread *t, struct process_look *l, struct pool *pool);

/* A sentence about what may end the waits of those that wait for each other's locks, NULL = nothing is known to. `itself`: it
 * does so without help from outside, and exists for that: a time limit, the signal of a timer, a handler and a thread or child
 * that goes on and may send the signal. */
const char *what_ends_circle(const struct live *of, struct process_look *l, struct pool *pool, bool *itself);

#endif
