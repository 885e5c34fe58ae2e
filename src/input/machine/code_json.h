/* SPDX-License-Identifier: Apache-2.0
 * GPU code of a library in a bundle: targets as words, "sm_90 sm_90a compute_120@8.7 lto_90".
 */
#ifndef CUWHY_CODE_JSON_H
#define CUWHY_CODE_JSON_H

#include <jansson.h>

#include "base/pool.h"
#include "formats/fatbin.h"

struct err;

/* [{"count": 12, "targets": "sm_75 sm_80"}, ...], each entry fat binaries that have the same targets. */
json_t *code_sets_to_json(const struct fatbin *f);

/* From such a list, or from one line of words (all fat binaries alike). PTX without a version gets `ptx` (87 = 8.7; 0 = not
 * known). NULL with `e` filled when a word is no target. The pool owns it. */
struct fatbin *code_from_json(struct pool *pool, const json_t *sets, const char *words, int ptx, struct err *e);

#endif
