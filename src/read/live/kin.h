/* SPDX-License-Identifier: Apache-2.0
 * Processes that a process started, and those that they started: does one of them work?
 */
#ifndef CUWHY_KIN_H
#define CUWHY_KIN_H

#include <sys/types.h>

/* A processor's share that makes a thread or a process one that is not idle. */
#define WORKS_CPU	0.2

/* `also` (0 = none) and all that descend from `pid`, as far as there is room; returns how many. */
size_t kin_list(pid_t pid, pid_t also, pid_t *to, size_t max);

/* The busiest of `also` (0 = none) and of all that descend from `pid`, if it works; 0 = none does. Takes a fifth of a second. */
pid_t kin_works(pid_t pid, pid_t also);

#endif
