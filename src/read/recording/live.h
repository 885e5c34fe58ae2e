/* SPDX-License-Identifier: Apache-2.0
 * Recordings that are being made now: what every process under a `cuwhy run` of this user has recorded so far.
 *
 * The processes themselves are not touched or stopped: `cuwhy run` has the memory that they record into, and a copy of it is a
 * recording. It may be a moment apart in its parts; trace.h trusts none of it.
 */
#ifndef CUWHY_LIVE_H
#define CUWHY_LIVE_H

#include <stddef.h>
#include <sys/types.h>

struct trace;

struct live { pid_t pid; struct trace *trace; };

/* Owned by the caller. What cannot be read (another user's, another container's) is left out. */
size_t live_list(struct live **list);
void live_free(struct live *list, size_t n);

#endif
