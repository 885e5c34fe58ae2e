/* SPDX-License-Identifier: Apache-2.0
 * The question that tells causes apart (src/verdict/rules/question.h, kb/questions.def).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/rules/kb.h"
#include "verdict/rules/question.h"

static const struct question rows[] = {
#define QUESTION(text, command, facts, ...) {text, command, facts, {__VA_ARGS__}},
#include "kb/questions.def"
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct question *between(const char *a, const char *b, const struct casefile *f)
{
	const struct cause *causes[2] = {kb_find(kb_get(), a), b ? kb_find(kb_get(), b) : NULL};

	assert_non_null(causes[0]);
	return question_for(kb_get(), causes, b ? 2 : 1, f);
}

static bool names_something(const char *name, size_t n)
{
	if (n > 6 && !strncmp(name, "signs/", 6)) {
		for (const struct kb_sign *s = kb_get()->signs; s; s = s->next)
			if (!strncmp(s->file + strlen("kb/"), name, n) && s->file[strlen("kb/") + n] == '.')
				return true;
		return false;
	}
	for (int i = 0; i < FACT_COUNT; i++)
		if (!strncmp(fact_name((enum fact_id)i), name, n) &&
		    (name[n - 1] == '.' || !fact_name((enum fact_id)i)[n]))
			return true;
	return false;
}

static void questions__name_facts_that_exist(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_ROWS; i++)
		for (const char *s = rows[i].facts; *s; s += strspn(s, " ")) {
			size_t n = strcspn(s, " ");

			if (!names_something(s, n))
				fail_msg("\"%s\" names %.*s, and there is no such fact", rows[i].text, (int)n, s);
			s += n;
		}
}

/* Where the order of the cause files says something, both can fit at once. */
static void question__separates_every_pair_that_overlaps(void **state)
{
	size_t pairs = 0, kinds = 0;
	bool used[N_ROWS] = {0};

	(void)state;
	for (const struct cause *c = kb_get()->first; c; c = c->next)
		for (int k = 0; k < 2; k++)
			for (const struct over *o = k ? c->explains : c->place.over; o; o = o->next) {
				char other[80];
				const struct question *q;

				snprintf(other, sizeof(other), "%.*s", (int)strcspn(o->name, "/"), o->name);
				q = between(c->id, other, NULL);
				if (!q)
					fail_msg("nothing tells %s from %s", c->id, other);
				for (size_t i = 0; i < N_ROWS; i++)
					used[i] |= !strcmp(rows[i].text, q->text);
				pairs++;
			}
	for (size_t i = 0; i < N_ROWS; i++)
		kinds += used[i];
	assert_true(pairs > 50);
	assert_true(kinds > 10);	/* it is no constant */
}

static void question__is_about_what_the_causes_differ_in(void **state)
{
	static const struct {
		const char *a, *b, *command;
	} list[] = {
		{"oom-capacity", "oom-other-process", "nvidia-smi"},
		{"arch-not-in-wheel", "extension-arch-missing", "get_arch_list"},
		{"shm-too-small-nccl", "nccl-network", "/dev/shm"},
		{"launch-config-grid-limit", "launch-config-bad-shape", "cuwhy run"},
		{"nan-in-loss-assert", "input-out-of-range", "CUDA_LAUNCH_BLOCKING"},
		{"compute-mode-exclusive", NULL, "COMPUTE"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		const struct question *q = between(list[i].a, list[i].b, NULL);

		assert_non_null(q);
		if (!strstr(q->command, list[i].command))
			fail_msg("%s or %s: %s", list[i].a, list[i].b ? list[i].b : "-", q->command);
	}
}

static void question__does_not_ask_what_is_known(void **state)
{
	struct pool pool = {0};
	struct casefile f;
	const char *first, *second;

	(void)state;
	case_init(&f, &pool);
	first = between("shm-too-small-nccl", "nccl-network", &f)->command;
	fact_set_number(&f, FACT_shm_size, 67108864);
	fact_set_number(&f, FACT_shm_free, 1);
	fact_set_flag(&f, FACT_shm_writable, true);
	second = between("shm-too-small-nccl", "nccl-network", &f)->command;
	assert_string_not_equal(first, second);
	pool_release(&pool);
}

static void question__does_not_ask_for_what_the_text_shows(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_ROWS; i++) {
		struct pool pool = {0};
		struct casefile f;

		case_init(&f, &pool);
		f.hits = &(struct text_hit){.count = 1, .text = "", .words = rows[i].shown[0]};
		f.n_hits = rows[i].shown[0] != NULL;
		for (const struct cause *c = kb_get()->first; rows[i].shown[0] && c; c = c->next) {
			const struct question *q = question_for(kb_get(), &c, 1, &f);

			for (int k = 0; q && k < FACT_COUNT; k++)
				if (!strcmp(fact_name((enum fact_id)k), rows[i].shown[0]))
					q = NULL;	/* known by a fact, not by words */
			if (q && !strcmp(q->text, rows[i].text))
				fail_msg("%s: asks \"%s\", and the text shows it", c->id, q->text);
		}
		pool_release(&pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions__name_facts_that_exist),
		cmocka_unit_test(question__separates_every_pair_that_overlaps),
		cmocka_unit_test(question__is_about_what_the_causes_differ_in),
		cmocka_unit_test(question__does_not_ask_what_is_known),
		cmocka_unit_test(question__does_not_ask_for_what_the_text_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
