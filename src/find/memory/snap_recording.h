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

/* As it was when memory last ran out on this device, else at the end; the recording's only device is number 0. NULL: the segments of
 * that moment are not known. The caller frees it. */
struct trace *snap_recording(const struct snapshot *s, const struct snap_device *d);

#endif
