/* SPDX-License-Identifier: Apache-2.0
 * Processes that we started, and the only functions that send a signal to another process.
 *
 * A pid is a number that anybody may have next: 0 and -1 mean a group and everybody, one that has been reaped may be a
 * stranger's by now, and one that another process told us is what that process says. So a signal goes to a child of ours, which
 * keeps its number until we reap it, or through a descriptor, which means one process for ever. tools/check_source.py
 * (`signals`) knows that there is no other way.
 */
#ifndef CUWHY_CHILDREN_H
#define CUWHY_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Whoever starts us may ignore SIGCHLD: then the kernel reaps our children, their pids are free at once, and how they ended
 * is lost. At the start of main(); undone in a child that is about to become another program. */
void children_begin(void);
void children_inherit(void);

/* To a child that has not been reaped; a zombie counts. False: there is none, and nothing was sent. */
bool child_signal(pid_t pid, int sig);

/* To the process that this pidfd means, whoever started it. False: it is gone. */
bool pidfd_signal(int pidfd, int sig);

#endif
