/* SPDX-License-Identifier: Apache-2.0
 * For tests: judges a built recording and checks the answer through its JSON.
 */
#ifndef CUWHY_TEST_JUDGE_H
#define CUWHY_TEST_JUDGE_H

#include <jansson.h>

#include "judge/verdict.h"
#include "write/report.h"
#include "trace_builder.h"

#define USER "train.py:32:step", "train.py:40:<module>"
#define TORCH "/venv/lib/python3.12/site-packages/torch/"

/* The recording is freed before the verdict is read: a verdict owns its words. */
static inline struct verdict *judge_end(struct tb *b, int exit, int signal)
{
	struct trace *t = tb_trace(b);
	struct process_end end = {
		.pid = 100, .status_known = exit >= 0 || signal, .exit = exit, .signal = signal};
	struct verdict *v = verdict_of_process(t, &end);

	trace_free(t);
	return v;
}

static inline json_t *verdict_object(const struct verdict *v)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *j;

	if (!out || report_json(out, v, false) || fclose(out))
		abort();
	j = json_loads(text, 0, NULL);
	free(text);
	if (!j)
		abort();
	return j;
}

/* The JSON of the verdict on a program that ended with `exit`. */
static inline json_t *judge(struct tb *b, int exit)
{
	struct verdict *v = judge_end(b, exit, 0);
	json_t *j = verdict_object(v);

	verdict_free(v);
	return j;
}

static inline const char *field(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text ? text : "";
}

/* Some element of the array contains the text. */
static inline bool mentions(const json_t *j, const char *key, const char *text)
{
	char *all = json_dumps(json_object_get(j, key), JSON_ENCODE_ANY);
	bool found = all && strstr(all, text);

	free(all);
	return found;
}

#endif
