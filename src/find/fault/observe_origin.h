/* SPDX-License-Identifier: Apache-2.0
 * Where the values behind an assertion came from.
 */
#ifndef CUWHY_OBSERVE_ORIGIN_H
#define CUWHY_OBSERVE_ORIGIN_H

struct casefile;
struct recalled;
struct trace;

/* The values, if they are known, come first. */
void observe_origin(struct casefile *c, const struct trace *t, const struct recalled *from);

#endif
