/* SPDX-License-Identifier: Apache-2.0
 * The launch that a verdict blames, among those in a recording.
 */
#ifndef CUWHY_BLAMED_H
#define CUWHY_BLAMED_H

#include <stddef.h>

struct cw_launch;
struct trace;
struct verdict;

/* The newest of the first `n` launches that matches the fault by kernel, dimensions and line; SIZE_MAX = none. */
size_t blamed_among(struct trace *t, const struct verdict *v, const struct cw_launch *const *l, size_t n);

/* The newest of all; NULL = none. */
const struct cw_launch *blamed_launch(struct trace *t, const struct verdict *v);

#endif
