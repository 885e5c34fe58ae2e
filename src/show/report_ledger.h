/* SPDX-License-Identifier: Apache-2.0
 * The ledger as a table, as JSON, and memory over time as a small chart.
 */
#ifndef CUWHY_REPORT_LEDGER_H
#define CUWHY_REPORT_LEDGER_H

#include <jansson.h>

#include "case/ledger.h"
#include "show/report_wrap.h"

struct cw_sample;

enum ledger_by { BY_LINE, BY_FUNCTION, BY_KIND, BY_LIBRARY, BY_MODULE };

/* What a line is called: "train.py:32 in step", a library, a process. And what it is grouped under. */
char *ledger_line_name(const struct ledger_line *l, struct pool *pool);
const char *ledger_group_name(const struct ledger_line *l, enum ledger_by by, struct pool *pool);

/* Parts, kinds and the `lines` biggest lines, under a label of a report. */
void ledger_wrap(struct wrap *w, const struct ledger *l, size_t lines);

/* The same as tables over the whole width. */
void ledger_print(FILE *out, const struct ledger *l, enum ledger_by by, size_t lines, int width);

/* Segments of PyTorch that are mostly empty, as a map. */
void ledger_print_segments(FILE *out, const struct ledger *l, size_t most);

json_t *ledger_json(const struct ledger *l);

/* What memory was for over time, in columns; JSON null when there are none. */
struct over_time;
struct trace;
json_t *over_time_json(const struct over_time *o, const struct trace *t);

/* Memory over time, `width` columns. The span is that of the samples, in seconds after the start of the program. */
struct seconds_span { double from, to; };
void timeline_print(FILE *out, const struct cw_sample *s, size_t n, struct seconds_span span, uint64_t total, int width);

#endif
