/* SPDX-License-Identifier: Apache-2.0
 * Messages of open packages (kb/messages.def): every row, and how templates match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case/known_message.h"
#include "find/words/log.h"
#include "verdict/verdict.h"
#include "knowledge/kb.h"

static bool fits(const char *template, const char *text)
{
	size_t words;

	return template_matches(template, text, NULL, &words);
}

/* What hole number `i` stands for; the caller frees it. */
static char *hole(const char *template, const char *text, size_t i)
{
	struct known_holes holes;
	size_t words;

	if (!template_matches(template, text, &holes, &words) || i >= holes.n)
		return NULL;
	return strndup(holes.list[i].at, holes.list[i].len);
}

static void assert_hole(const char *template, const char *text, size_t i, const char *expected)
{
	char *got = hole(template, text, i);

	if (!got)
		fail_msg("'%s' does not match '%s'", template, text);
	assert_string_equal(got, expected);
	free(got);
}

static void templates__begin_where_the_message_begins(void **state)
{
	(void)state;
	assert_true(fits("No CUDA GPUs are available", "No CUDA GPUs are available"));
	assert_true(fits("No CUDA GPUs are available", "no cuda GPUs are\n  available. Try again"));
	assert_false(fits("No CUDA GPUs are available", "I read that No CUDA GPUs are available"));
	assert_true(fits("{text}No CUDA GPUs are available", "I read that No CUDA GPUs are available"));
	assert_false(fits("No CUDA GPUs are available", "No CUDA GPUs are"));
	assert_false(fits("cannot find CUDA", "cannot find CUDAToolkit"));
}

static void templates__have_typed_holes(void **state)
{
	(void)state;
	assert_hole("Tried to allocate {bytes}.", "Tried to allocate 2.00 GiB. GPU 0", 0, "2.00 GiB");
	assert_hole("needs {bytes} of", "needs 512 of it", 0, "512");
	assert_hole("got {shape} and {shape}", "got torch.Size([2, 3]) and [4, [5]]", 0, "torch.Size([2, 3])");
	assert_hole("got {shape} and {shape}", "got 10x10 and (4, 5).", 1, "(4, 5)");
	assert_hole("on {device}, not", "on cuda:0, not", 0, "cuda:0");
	assert_hole("type {dtype} and", "type torch.float16 and", 0, "torch.float16");
	assert_hole("found version {version})", "found version 12020)", 0, "12020");
	assert_hole("in {path}: {text}", "in /a/b.so: no", 0, "/a/b.so");
	assert_hole("index {index} is", "index -7 is", 0, "-7");
	assert_hole("{n} tokens", "4,398,046 tokens", 0, "4,398,046");
	assert_false(fits("index {index} is", "index x is"));
	assert_false(fits("Tried {bytes}.", "Tried some bytes."));
}

static void templates__text_takes_as_little_as_possible(void **state)
{
	(void)state;
	assert_hole("a {text} b {n} c", "a x b y b 7 c", 0, "x b y");
	assert_hole("a {text} b {text} c", "a 1 b 2 c 3 c", 1, "2");
	assert_false(fits("a {text} b {n} c", "a x b y c"));
	assert_hole("because of {text}", "because of x and y\nand z", 0, "x and y");
}

static void templates__take_time_that_grows_with_the_text_only(void **state)
{
	char *text = malloc(1u << 20);

	(void)state;
	memset(text, 'a', 1u << 20);
	text[(1u << 20) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		assert_false(fits("{text}a{text}a{text}a{text}a{text}a{text}ab", text));
	free(text);
}

static void templates__with_flaws_are_named(void **state)
{
	(void)state;
	assert_null(template_flaw("CUDA is {text} here"));
	assert_non_null(template_flaw("CUDA is {test} here"));
	assert_non_null(template_flaw("CUDA is here {n}{n}"));
	assert_non_null(template_flaw("CUDA is } here"));
	assert_non_null(template_flaw("{text} a {n} b {n}"));
	assert_null(template_flaw("a brace {{ is no hole"));
}

static void rows__have_good_templates_and_known_causes(void **state)
{
	size_t n;
	const struct known_message *rows = known_messages(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		char *next = strdup(rows[i].causes), *all = next, *id;

		if (template_flaw(rows[i].template))
			fail_msg("'%s': %s", rows[i].template, template_flaw(rows[i].template));
		assert_true(rows[i].package[0] && rows[i].version[0] && rows[i].file[0]);
		while ((id = strsep(&next, ",")) != NULL) {
			id += *id == ' ';
			if (!kb_find(kb_get(), id) || !strcmp(id, "unknown") || !strcmp(id, "none"))
				fail_msg("'%s' names no cause: '%s'", rows[i].template, id);
			if (next && strstr(next, id))	/* ids that begin with another one are no repetition */
				assert_true(strstr(next, id)[strlen(id)] == '-' || strstr(next, id)[-1] != ' ');
		}
		free(all);
		for (size_t k = 0; k < i; k++)
			if (!strcasecmp(rows[i].template, rows[k].template))
				fail_msg("'%s' is there twice", rows[i].template);
	}
}

/* A text that the template matches: every hole with something of its kind. */
static const char *example(struct pool *pool, const char *template)
{
	static const struct { const char *kind, *text; } values[] = {
		{"{n", "7"}, {"{index", "7"}, {"{bytes", "2.00 GiB"}, {"{shape", "[2, 3]"}, {"{device", "cuda:1"},
		{"{dtype", "torch.float16"}, {"{name", "name"}, {"{path", "/a/b"}, {"{version", "12.1"}, {"{text", "some words "},
	};
	const char *out = pool_strdup(pool, "");

	while (*template) {
		size_t skip = 1;
		const char *add = pool_copy(pool, template, 1);

		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			size_t len = strlen(values[i].kind);

			if (strncmp(template, values[i].kind, len) || !strchr(":}", template[len]))
				continue;
			add = values[i].text;
			skip = strcspn(template, "}") + 1;
		}
		if (*template == '{' && template[1] == '{')
			skip = 2;
		out = pool_printf(pool, "%s%s", out, add);
		template += skip;
	}
	return out;
}

static void rows__recognize_their_own_messages(void **state)
{
	size_t n;
	const struct known_message *rows = known_messages(&n);
	struct pool pool = {0};

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const char *text = example(&pool, rows[i].template);
		const struct known_message *found = known_message(text, NULL);

		if (!found)
			fail_msg("'%s' is not recognized: '%s'", rows[i].template, text);
		if (found != &rows[i] && strcmp(found->causes, rows[i].causes))
			fail_msg("'%s' is taken for '%s', which stands for other causes", text, found->template);
	}
	pool_release(&pool);
}

static void rows__in_a_wrapper_count(void **state)
{
	struct known_holes holes;
	const struct known_message *m = known_message("Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0", &holes);

	(void)state;
	assert_non_null(m);
	assert_non_null(strstr(m->causes, "oom-capacity"));
	assert_memory_equal(holes.list[0].at, "2.00 GiB", 8);
	assert_null(known_message("Capture cuda graph failed: the printer is on fire", NULL));
}

static struct verdict *explain(const char *text)
{
	struct text_log *l = log_new();
	struct verdict *v;

	log_read_text(l, "log", text, strlen(text));
	log_finish(l);
	v = verdict_of_text(l);
	log_free(l);
	return v;
}

static void answers__have_the_causes_of_a_message_that_no_rule_knows(void **state)
{
	struct verdict *v = explain("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n"
				    "RuntimeError: CUDA kernel launch blocks must be positive, but got N=0\n");

	(void)state;
	assert_string_equal(verdict_cause(v), "launch-config-empty-input");
	assert_int_equal(v->sure, SURE_LIKELY);
	assert_string_equal(fact_text(&v->c, FACT_message_package), "torch");
	assert_string_equal(fact_text(&v->c, FACT_message_values), "blocks = 0");
	verdict_free(v);
}

static void answers__come_from_logged_errors_too(void **state)
{
	struct verdict *v = explain("2025-03-02 10:11:13 TP0] Decode batch\n"
		"Decode out of memory. Try to lower your batch size. Try to allocate 48 tokens. Available tokens: 11\n");

	(void)state;
	assert_string_equal(verdict_cause(v), "oom-capacity");
	assert_int_equal(v->sure, SURE_POSSIBLE);	/* it stands for two causes */
	assert_string_equal(fact_text(&v->c, FACT_message_values), "tokens = 48");
	verdict_free(v);
}

static void answers__keep_what_rules_say_before_what_a_message_stands_for(void **state)
{
	struct verdict *v =
		explain("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n"
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 GiB. GPU 0 has a total "
			"capacity of 23.69 GiB of which 20.00 GiB is free.\n");

	(void)state;
	assert_string_equal(verdict_cause(v), "oom-request-too-large");
	assert_true(v->n_candidates >= 1 && v->candidates[0].when);
	verdict_free(v);
}

static void answers__do_not_come_from_words_in_the_middle(void **state)
{
	struct verdict *v = explain("see the chapter \"CUDA kernel launch blocks must be positive, but got N=0\"\n");

	(void)state;
	assert_string_equal(verdict_cause(v), "none");
	verdict_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates__begin_where_the_message_begins),
		cmocka_unit_test(templates__have_typed_holes),
		cmocka_unit_test(templates__text_takes_as_little_as_possible),
		cmocka_unit_test(templates__take_time_that_grows_with_the_text_only),
		cmocka_unit_test(templates__with_flaws_are_named),
		cmocka_unit_test(rows__have_good_templates_and_known_causes),
		cmocka_unit_test(rows__recognize_their_own_messages),
		cmocka_unit_test(rows__in_a_wrapper_count),
		cmocka_unit_test(answers__have_the_causes_of_a_message_that_no_rule_knows),
		cmocka_unit_test(answers__come_from_logged_errors_too),
		cmocka_unit_test(answers__keep_what_rules_say_before_what_a_message_stands_for),
		cmocka_unit_test(answers__do_not_come_from_words_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
