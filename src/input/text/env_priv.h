/* SPDX-License-Identifier: Apache-2.0
 * Inside of env.h: parts of the reader of one line.
 */
#ifndef CUWHY_ENV_PRIV_H
#define CUWHY_ENV_PRIV_H

#include "input/text/env.h"

const char *env_after(const char *s, const char *what);	/* behind these words, whatever their case; NULL: they are not there */
void env_gpu(struct text_env *e, const char *s);	/* names, how many, what they can do */
void env_tensors(struct text_env *e, const char *s);	/* shapes, sizes, collectives */
void env_memory(struct text_env *e, const char *s, uint64_t number);	/* nvidia-smi's tables, figures that rise */
uint32_t env_shape(const char *s, const char *end);	/* hash of the letters */

#endif
