/* SPDX-License-Identifier: Apache-2.0
 * The culprit of a GPU core dump, as text and as JSON.
 */
#ifndef CUWHY_DUMP_PRINT_H
#define CUWHY_DUMP_PRINT_H

#include <jansson.h>

struct buf;
struct culprit;

void culprit_text(const struct culprit *c, struct buf *out);
json_t *culprit_json(const struct culprit *c);		/* a new reference */

#endif
