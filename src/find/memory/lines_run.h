/* SPDX-License-Identifier: Apache-2.0
 * The lines of code whose autograd nodes backward has run, as far as nodes are known.
 */
#ifndef CUWHY_LINES_RUN_H
#define CUWHY_LINES_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

struct lines_run { uint64_t *lines; size_t n; };	/* lines_hash, sorted */

void lines_run_find(struct lines_run *l, struct trace *t);
void lines_run_release(struct lines_run *l);
bool lines_were_run(const struct lines_run *l, uint64_t lines);

#endif
