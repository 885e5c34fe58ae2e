/* SPDX-License-Identifier: Apache-2.0
 * The verdict as a JSON value, for writers that put it into something larger.
 */
#ifndef CUWHY_REPORT_JSON_H
#define CUWHY_REPORT_JSON_H

#include <jansson.h>

struct verdict;

json_t *verdict_json(const struct verdict *v);

#endif
