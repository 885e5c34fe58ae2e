/* SPDX-License-Identifier: Apache-2.0
 * A snapshot as a recording of one moment: the same blocks, segments, lines and loops, so that what is found in recordings is
 * found in snapshots, by the same code.
 *
 * What a snapshot does not have is derived from what it has, or is missing: turns of loops (snap_turns.h), autograd nodes, the
 * size of the card. Nothing that rests on it is exact.
 */
#ifndef CUWHY_SNAP_RECORDING_H
#define CUWHY_SNAP_RECORDING_H

#include "find/memory/snap_analyze.h"

struct trace;

/* What became of the snapshot's parts in the recording. */
struct snap_made {
	uint32_t *stack;		/* by its numbers of stacks: where the Python frames are; 0: no block that counts has it */
	size_t end;			/* the event with which memory ran out, else the number of events */
};
void snap_made_release(struct snap_made *made);

/* As it was when memory last ran out on this device, else at the end; the recording's only device is number 0. NULL: the segments of
 * that moment are not known. The caller frees it, and `made`, which may be NULL. */
struct trace *snap_recording(const struct snapshot *s, const struct snap_device *d, struct snap_made *made);

#endif
