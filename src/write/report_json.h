/* SPDX-License-Identifier: Apache-2.0
 * The verdict as a JSON value, for writers that put it into something larger.
 */
#ifndef CUWHY_REPORT_JSON_H
#define CUWHY_REPORT_JSON_H

#include <stdint.h>

#include <jansson.h>

struct doctor_check;
struct casefile;
struct verdict;

json_t *verdict_json(const struct verdict *v);

/* What the doctor found, and what it is drawn from: known facts by name. */
json_t *checks_json(const struct doctor_check *list, size_t n);
json_t *facts_json(const struct casefile *f);

/* Parts of it. What is not known is null. */
struct fault;
struct line;
json_t *fault_json(const struct fault *f);
json_t *line_json(const struct line *l);
json_t *triple_json(const uint32_t v[3]);
json_t *number_json(double n);

#endif
