/* SPDX-License-Identifier: Apache-2.0
 * Would a request have fit with another setting of PyTorch's allocator? Played back (replay.h), from the newest events that the
 * recording has.
 */
#ifndef CUWHY_ROOM_PLAYED_H
#define CUWHY_ROOM_PLAYED_H

#include <stdbool.h>
#include <stdint.h>

struct replay;
struct trace;

/* NULL: the recording does not have them. Free it with replay_free. */
struct replay *room_open(struct trace *t, int device);

/* `words` as in PYTORCH_CUDA_ALLOC_CONF. Bytes to spare beside the request, negative: that many too few. False: not known, or the
 * setting is in use already. */
bool room_played(const struct replay *r, const char *words, int64_t *spare);

#endif
