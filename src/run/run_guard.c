/* SPDX-License-Identifier: Apache-2.0
 * `--guard`: its words, and what it says at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/format.h"
#include "base/json.h"
#include "base/str.h"
#include "run/run.h"
#include "read/recording/trace.h"

#define SAMPLE_MOST 1000000u
#define VARIABLE_MAX 512u	/* the recorder reads no more */

static bool is_count(const char *text, size_t len, unsigned long least, unsigned long most)
{
	unsigned long v = 0;
	size_t i;

	for (i = 0; i < len && text[i] >= '0' && text[i] <= '9' && v <= most; i++)
		v = v * 10 + (unsigned long)(text[i] - '0');
	return len && i == len && v >= least && v <= most;
}

/* FILE, FILE:A or FILE:A-B */
static bool is_lines(const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len), *dash;

	if (!colon)
		return len > 0;
	len -= (size_t)(colon + 1 - text);
	dash = memchr(colon + 1, '-', len);
	if (colon == text)
		return false;
	if (!dash)
		return is_count(colon + 1, len, 1, 10000000);
	return is_count(colon + 1, (size_t)(dash - colon - 1), 1, 10000000) &&
	       is_count(dash + 1, len - (size_t)(dash - colon), 1, 10000000);
}

static bool is_budget(const char *text, size_t len)
{
	return len > 1 && strchr("GT", text[len - 1]) && is_count(text, len - 1, 1, 100000);
}

static bool word_is(const char *word, size_t len, const char *name, const char **rest, size_t *n)
{
	if (!str_starts(word, name) || len < strlen(name))
		return false;
	*rest = word + strlen(name);
	*n = len - strlen(name);
	return true;
}

static bool is_word(const char *word, size_t len)
{
	const char *rest;
	size_t n;

	if (word_is(word, len, "before", &rest, &n) || word_is(word, len, "values", &rest, &n))
		return n == 0;
	if (word_is(word, len, "align=", &rest, &n))
		return (n == 2 && str_starts(rest, "16")) || (n == 3 && str_starts(rest, "256"));
	if (word_is(word, len, "sample=1/", &rest, &n))
		return is_count(rest, n, 1, SAMPLE_MOST);
	if (word_is(word, len, "only=", &rest, &n))
		return is_lines(rest, n);
	return word_is(word, len, "budget=", &rest, &n) && is_budget(rest, n);
}

int guard_check(const char *list, struct err *e)
{
	size_t len;

	if (strlen(list) >= VARIABLE_MAX)
		return err_set(e, -EINVAL, "--guard takes at most %u characters", VARIABLE_MAX - 1);
	for (const char *p = list; *p; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		if (is_word(p, len))
			continue;
		err_set(e, -EINVAL, "--guard does not know '%.*s'", (int)len, p);
		return err_hint(
			e,
			"it takes before, values, align=16 or 256, only=FILE:A-B, sample=1/N, budget=16T, separated by commas");
	}
	return 0;
}

void guard_prepare(const char *list)
{
	if (list)
		setenv("CUWHY_GUARD", list, 1);
	else
		unsetenv("CUWHY_GUARD");
}

void guard_note(struct guard_sum *s, const struct trace *t)
{
	size_t len;
	const struct cw_guard *g = trace_chunk(t, CW_CHUNK_GUARD, &len);

	if (!g || len < sizeof(*g))
		return;
	s->any = true;
	s->made += g->made;
	s->reused += g->reused;
	s->checked += g->checked;
	s->torch |= trace_header(t)->torch_path[0] != 0;
	s->torch_guarded |= (g->flags & CW_GUARD_TORCH) != 0;
	for (size_t i = 0; i < CW_GUARD_SKIP_COUNT; i++)
		s->skipped[i] += g->skipped[i];
}

static const char *skip_text(size_t i)
{
	switch (i) {
#define X(number, name, text) case number: return text;
	CW_GUARD_SKIPS(X)
#undef X
	default: return "";
	}
}

static const char *skip_name(size_t i)
{
	static const char *const names[CW_GUARD_SKIP_COUNT] = {
		[CW_GUARD_SKIP_MEMORY] = "memory", [CW_GUARD_SKIP_ONLY] = "only",     [CW_GUARD_SKIP_SAMPLE] = "sample",
		[CW_GUARD_SKIP_POOL] = "pool",	   [CW_GUARD_SKIP_SHARED] = "shared", [CW_GUARD_SKIP_OTHER] = "other",
	};

	return names[i];
}

json_t *guard_json(const struct guard_sum *s)
{
	json_t *skipped = json_object();

	for (size_t i = 0; i < CW_GUARD_SKIP_COUNT; i++)
		if (s->skipped[i])
			json_object_set_new(skipped, skip_name(i), json_integer((json_int_t)s->skipped[i]));
	return JSON_OF(J_INT("guarded", s->made), J_VALUE("not_guarded", skipped), J_INT("compared", s->checked),
		       J_INT("addresses_reused", s->reused), J_BOOL("torch", s->torch_guarded || !s->torch));
}

/* "12,345 allocations guarded; 17 were not: there was no memory for a 2 MiB page each" */
void guard_tell(const struct guard_sum *s, FILE *out)
{
	char number[32];

	if (s->asked && !s->any)
		fputs("cuwhy: --guard: nothing was guarded: no process used CUDA, or none could be recorded\n", out);
	if (!s->any)
		return;
	fprintf(out, "cuwhy: --guard: %s allocation%s guarded",
		format_thousands(number, sizeof(number), (double)s->made), s->made == 1 ? "" : "s");
	for (size_t i = 0; i < CW_GUARD_SKIP_COUNT; i++)
		if (s->skipped[i])
			fprintf(out, "; %s %s not: %s", format_thousands(number, sizeof(number), (double)s->skipped[i]),
				s->skipped[i] == 1 ? "was" : "were", skip_text(i));
	if (s->torch && !s->torch_guarded)
		fputs("; PyTorch's allocator was not used", out);
	if (s->reused)
		fprintf(out, "; the budget of addresses was used up: %s allocation%s got one that was used before",
			format_thousands(number, sizeof(number), (double)s->reused), s->reused == 1 ? "" : "s");
	putc('\n', out);
}
