/* SPDX-License-Identifier: Apache-2.0
 * For tests: judges a built recording and checks the answer through its JSON.
 */
#ifndef CUWHY_TEST_JUDGE_H
#define CUWHY_TEST_JUDGE_H

#include <jansson.h>

#include "verdict/verdict.h"
#include "show/report.h"
#include "trace_builder.h"

#define USER "train.py:32:step", "train.py:40:<module>"
#define TORCH "/venv/lib/python3.12/site-packages/torch/"

/* A Python program that ends with 1 ended with an exception: unless the test has one, one from the line of the last failure that says no more than
 * PyTorch did. */
static inline void end_with_exception(struct tb *b)
{
	const struct cw_failure *last = b->n_failures ? &b->failure[b->n_failures - 1] : NULL;

	for (uint32_t i = 0; i < b->n_failures; i++)
		if (b->failure[i].source == CW_SRC_PYTHON)
			return;
	if (last && last->stack && b->h->py_version)
		tb_fail_text(b, CW_SRC_PYTHON, last->stack, "RuntimeError",
			     last->source == CW_SRC_TORCH_CHECK ? last->text : "");
}

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

/* The text with single spaces, however it was wrapped. */
static inline char *verdict_words(const struct verdict *v)
{
	char *text = NULL, *to;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	report_text(out, v, &(struct text_style){.verbose = true});
	if (fclose(out))
		abort();
	to = text;
	for (const char *s = text; *s; s++)
		if ((*s != ' ' && *s != '\n') || (to > text && to[-1] != ' '))
			*to++ = *s == '\n' ? ' ' : *s;
	*to = '\0';
	return text;
}

static inline int times_in(const char *text, const char *words)
{
	int n = 0;

	for (; (text = strstr(text, words)) != NULL; text++)
		n++;
	return n;
}

/* No answer contradicts itself; asked of all that are judged in these tests. */
static inline void check_agrees(const struct verdict *v)
{
	char *text = verdict_words(v);
	int enough = times_in(text, "would have fit with") - times_in(text, "would have fit with expandable_segments");

	if (strstr(text, "CONFIDENCE certain") && strstr(text, "it could also be")) {
		fprintf(stderr, "certain, and could also be something else: %s\n", text);
		abort();
	}
	if (strstr(text, "nothing else would have been enough") && enough > 1) {
		fprintf(stderr, "nothing else would have been enough, and %d would: %s\n", enough, text);
		abort();
	}
	free(text);
}

static inline json_t *verdict_object(const struct verdict *v)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *j;

	check_agrees(v);
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
	struct verdict *v;
	json_t *j;

	if (exit == 1)
		end_with_exception(b);
	v = judge_end(b, exit, 0);
	j = verdict_object(v);

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
