/* SPDX-License-Identifier: Apache-2.0
 * Is a loop of the program's source over the layers of a model? Then all its turns are one pass, wherever it is called from.
 */
#ifndef CUWHY_LAYERS_H
#define CUWHY_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#include "find/code/statements.h"

struct trace;

/* The loop that begins at this line; false also where the source is not known. */
bool loop_is_over_layers(struct trace *t, const char *file, uint32_t line);

/* The same, of a statement. */
bool code_runs_layers(const struct code *c, int loop, struct pool *pool);

#endif
