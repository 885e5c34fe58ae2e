/* SPDX-License-Identifier: Apache-2.0
 * A mount namespace of its own for the program, in which it is who it was.
 */
#ifndef CUWHY_WRITES_NAMESPACE_H
#define CUWHY_WRITES_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* What it may do, before and after: the user namespace that lets an ordinary user mount gives all capabilities in it. */
struct rights {
	uint64_t effective, permitted, inheritable, bounding, ambient;
	uid_t uid;
	gid_t gid;
};

/* In a process with one thread. As root nothing but the mounts is new; otherwise `*user` is set, and the process is in a user namespace
 * in which it has the same uid and gid. `before`: for namespace_settle. -EPERM: this system allows neither; or another -errno. */
int namespace_enter(struct rights *before, bool *user, struct err *e);

/* Drops the privileges that it did not have before. */
int namespace_settle(const struct rights *before, struct err *e);

#endif
