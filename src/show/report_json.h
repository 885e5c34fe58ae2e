/* SPDX-License-Identifier: Apache-2.0
 * The verdict as a JSON value, for writers that put it into something larger.
 */
#ifndef CUWHY_REPORT_JSON_H
#define CUWHY_REPORT_JSON_H

#include <jansson.h>

struct doctor_check;
struct casefile;
struct line;
struct verdict;

json_t *verdict_json(const struct verdict *v);

json_t *line_json(const struct line *l);		/* null when it is not known */
json_t *lines_json(const struct line *l, size_t n);

json_t *holders_json(const struct casefile *c);
json_t *unheld_json(const struct casefile *c);

/* What the doctor found, and what it is drawn from: known facts by name. */
json_t *checks_json(const struct doctor_check *list, size_t n);
json_t *known_facts_json(const struct casefile *c);

#endif
