/* SPDX-License-Identifier: Apache-2.0
 * What copies and fills share.
 */
#ifndef CUWHY_SIM_COPY_H
#define CUWHY_SIM_COPY_H

#include "sim/cuda/sim.h"

/* The size of a block of rows that are `pitch` bytes apart, from its first byte to its last. */
size_t sim_copy_span(size_t width, size_t height, size_t pitch);

/* Submits it to the stream; with `wait` it is done when this returns, unless the stream is capturing. */
int sim_copy_submit(struct sim_stream *s, struct sim_op *op, bool wait);

#endif
