/* SPDX-License-Identifier: Apache-2.0
 * What a snapshot's program asked PyTorch for, as a recording has it (replay_steps.h), up to when memory last ran out.
 *
 * What the driver did meanwhile, and the size of the card, are missing: turns of loops are found in it, but nothing can be played back.
 */
#ifndef CUWHY_SNAP_STEPS_H
#define CUWHY_SNAP_STEPS_H

#include "find/memory/snap_recording.h"

struct replay;

/* `made`: of snap_recording. Free it with replay_free. */
struct replay *snap_steps(const struct snap_device *d, struct trace *t, const struct snap_made *made);

#endif
