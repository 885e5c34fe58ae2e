/* SPDX-License-Identifier: Apache-2.0
 * The launch that is blamed for a fault, among those in a recording.
 */
#ifndef CUWHY_BLAMED_H
#define CUWHY_BLAMED_H

#include <stddef.h>
#include <stdint.h>

struct casefile;
struct cw_launch;
struct trace;

/* The newest of the first `n` launches that matches the fault by kernel, dimensions and line; SIZE_MAX = none. */
size_t blamed_among(struct trace *t, const struct casefile *c, const struct cw_launch *const *l, size_t n);

/* The newest of all; NULL = none. */
const struct cw_launch *blamed_launch(struct trace *t, const struct casefile *c);

/* When it was launched, in ticks, otherwise when the program noticed: until then memory could be freed. UINT64_MAX = not known. */
uint64_t blamed_moment(struct trace *t, const struct casefile *c, uint64_t noticed_ns);

#endif
