/* SPDX-License-Identifier: Apache-2.0
 * A running process as text and as JSON.
 */
#ifndef CUWHY_REPORT_LIVE_H
#define CUWHY_REPORT_LIVE_H

#include <stdio.h>

#include <jansson.h>

struct live;
struct text_style;
struct wrap;

/* Its threads, next to a label. */
void live_wrap(struct wrap *w, const struct live *l);
/* A process that is not hung: the whole answer. */
void live_text_fine(FILE *out, const struct live *l, const struct text_style *style);
json_t *live_json(const struct live *l);

#endif
