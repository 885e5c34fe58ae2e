/* SPDX-License-Identifier: Apache-2.0
 * Holds a program back from changing files, by the kernel's own means and without namespaces: for machines where a dry run cannot have
 * a layer of mounts. What the program may change is below `scratch`; the preloaded library (src/redirect) makes it see its changes.
 *
 * Contents and names are Landlock's: no system call of any program in the tree gets past it, static or 32-bit ones included.
 * Modes, owners, times, attributes and all that Landlock does not know are a filter's on system calls (fence_filter.c): they fail with
 * EPERM, unless they carry the pass that the library has. It makes such calls on files in the scratch only. That keeps out every accident,
 * but not a program that looks for the pass in order to get around it.
 *
 * What changes for the program: set-user-id programs (sudo, ping) get no privileges; it cannot make user or mount namespaces, mount,
 * or use io_uring; clone3 does not exist for it (libc uses clone instead). Descriptors that were open before stay as they are.
 */
#ifndef CUWHY_WRITES_FENCE_H
#define CUWHY_WRITES_FENCE_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Is this process behind one already? */
bool fence_inside(void);

/* Can this kernel do it, in this container? 0, or -errno with the reason. It is tried, in a child. */
int fence_possible(struct err *e);

/* In the child, right before exec (after fork, with one thread): from here on nothing can be changed outside of `scratch`, the folders in
 * `real` (NULL at the end; each must exist), /dev/shm, /proc, /sys and the devices in /dev. Makes what belongs into `scratch`,
 * which must exist. 0, or -errno with the reason: then part of it may hold already, and the child should end. */
int fence_enter(const char *scratch, const char *const *real, struct err *e);

/* The half of the fence that is a filter on system calls; see fence.h. */

/* The calls of fence_calls.def, for this thread and what it starts. With `truncates`, also opening that would empty a file
 * without having it open for writing, which Landlock does not see before Linux 6.2. */
int fence_filter(uint64_t pass, bool truncates, struct err *e);

#endif
