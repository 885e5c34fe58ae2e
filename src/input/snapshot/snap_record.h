/* SPDX-License-Identifier: Apache-2.0
 * Private to the builder: dictionaries that become records of the snapshot.
 */
#ifndef CUWHY_SNAP_RECORD_H
#define CUWHY_SNAP_RECORD_H

#include "input/snapshot/snap_build.h"

enum dict_role { D_EMPTY, D_OTHER, D_TOP, D_SEGMENT, D_BLOCK, D_EVENT, D_FRAME, D_HISTORY, D_SETTINGS };

/* Fills record `id`, or a new one when it is SNAP_NONE, from `n` keys and values. Its number; SNAP_NONE when there
 * are too many. */
uint32_t record_set(struct snap_build *b, enum dict_role role, uint32_t id, const struct pickle_value *v, size_t n);

uint32_t build_stack_of(const struct snap_build *b, const struct pickle_value *v);	/* 0 = none */
uint32_t build_history_of(const struct snap_build *b, const struct pickle_value *v);	/* a block; SNAP_NONE */
struct snap_range build_blocks_of(struct snap_build *b, const struct pickle_value *v);

#endif
