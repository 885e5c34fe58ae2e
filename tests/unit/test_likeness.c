/* SPDX-License-Identifier: Apache-2.0
 * Failures that a text tells in sentences, and which causes its words speak for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "find/words/complaint.h"
#include "find/words/likeness.h"
#include "find/words/log.h"
#include "verdict/text.h"
#include "verdict/verdict.h"
#include "knowledge/kb.h"
#include "verdict/rules/rules.h"

static void complaint__is_a_sentence_about_a_gpu_that_fails(void **state)
{
	static const struct { const char *line; bool complains; } cases[] = {
		{"GPU memory grows with each epoch until it runs out", true},
		{"After the update my GPU is not found any more.", true},
		{"DataParallel hangs; with one GPU everything is fine", true},
		{"Hello. The first card gets lost under load, see the CUDA log", true},
		{"The web server fails when two people log in at once", false},	/* no GPU */
		{"Which GPU do I need for this model?", false},
		{"If the GPU runs out of memory, reduce the batch size", false},
		{"self test of this machine: no CUDA errors found", false},
		{"the run on the GPU ended without any error at all", false},
		{"train.py: error: argument --gpus has an invalid value", false},
		{"    torch.cuda.set_device(0)", false},
		{"GPU error 0x3f 0x40 0x41", false},	/* no sentence */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (complaint_in(cases[i].line) != cases[i].complains)
			fail_msg("%s", cases[i].line);
}

static struct text_log *read_text(const char *text)
{
	struct text_log *l = log_new();

	log_read_text(l, "log.txt", text, strlen(text));
	log_finish(l);
	return l;
}

static void expect(const char *text, const char *cause, size_t candidates)
{
	struct text_log *l = read_text(text);
	struct verdict *v = verdict_of_text(l);

	if (strncmp(verdict_cause(v), cause, strlen(cause)) != 0 || v->n_candidates < candidates ||
	    v->sure == SURE_CERTAIN)
		fail_msg("%s: %s, %zu candidates, %s", text, verdict_cause(v), v->n_candidates, certainty_word(v->sure));
	verdict_free(v);
	log_free(l);
}

static void told__a_failure_in_sentences_has_candidates(void **state)
{
	(void)state;
	expect("GPU memory grows in every validation and then it crashes.\nI call model.eval(), do I need torch.no_grad(), too?\n",
	       "oom-", 2);	/* which one is up to what was learned */
	expect("RuntimeError: the frobnicator of this GPU is out of tune\n", "unknown", 0);
}

static void told__what_a_program_says_is_not_told_by_a_person(void **state)
{
	static const char *const texts[] = {
		"epoch 1 loss 0.5\nepoch 2 loss 0.4\nthe GPU cache is not used here and fails to warm up\nepoch 3 loss 0.3\n",
		"2025-03-04 11:12:13 INFO main: the GPU cache is not used because it fails to warm up\n",
		"Could not find a GPU on your machine, training on the CPU\nepoch 1 loss 0.5\nepoch 2 loss 0.4\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect(texts[i], "none", 0);
}

/* The exception says what failed; the sentence before it may be wrong. */
static void told__an_exception_counts_instead(void **state)
{
	(void)state;
	expect("My training on the GPU fails:\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    open(\"x\")\n"
	       "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n",
	       "none", 0);
}

#define FRAMES "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    run(x)\n"

static void unknown__is_compared_with_reports(void **state)
{
	(void)state;
	expect("node1:92:115 [3] NCCL INFO transport/net.cc:592 -> 2\n"
	       "node1:92:115 [3] proxy.cc:14 NCCL WARN Error encountered in the handshake of operation Connect, res=2\n"
	       "node1:92:114 [3] misc/socket.cc:49 NCCL WARN socketAdvance: the remote peer node<53735> went away\n",
	       "nccl-network", 2);
	expect(FRAMES "RuntimeError: Expected the attention bias dtype to equal that of the query, but got bias dtype: float and "
		      "query dtype: c10::Half instead.\n",
	       "dtype-mismatch", 2);
}

/* What Python raises itself says what it is about; what went on was not stopped; a quotation is not a failure. */
static void unknown__of_something_else_is_none(void **state)
{
	static const char *const texts[] = {
		FRAMES "FileNotFoundError: [Errno 2] No such file or directory: 'dtype mismatch, expected Half but got Float.json'\n",
		FRAMES "KeyError: 'dtype mismatch: expected Half but got Float'\n",
		FRAMES "RuntimeError: the list of customers is empty\n",
		FRAMES "RuntimeError: MPS backend out of memory (MPS allocated: 18.04 GiB, max allowed: 20.13 GiB)\n",
		"The manual says: \"an illegal memory access was encountered\" means that a kernel left its memory.\n" FRAMES
		"FileNotFoundError: [Errno 2] No such file or directory: 'gpu.json'\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect(texts[i], "none", 0);
}

#define BUSY(device)                                                                                                                       \
	"Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    x = torch.zeros(8, device=\"cuda:" device               \
	"\")\nRuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n"
#define ROW(gpu, mode)                                                                                                                     \
	"|   " gpu "  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0   Off |                    0 |\n"                                \
	"| N/A   34C    P0              52W / 400W |    4812MiB / 40960MiB  |      0%   " mode " |\n"

static void mode__is_that_of_the_gpu_that_failed(void **state)
{
	static const struct { const char *text; enum certainty sure; } cases[] = {
		{BUSY("0") ROW("0", "E. Process") ROW("1", "   Default"), SURE_LIKELY},
		{BUSY("1") ROW("0", "E. Process") ROW("1", "   Default"), SURE_POSSIBLE},
		{BUSY("1") ROW("0", "   Default") ROW("1", "E. Process"), SURE_LIKELY},
		{BUSY("1"), SURE_LIKELY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text_log *l = read_text(cases[i].text);
		struct verdict *v = verdict_of_text(l);

		assert_string_equal(verdict_cause(v), "compute-mode-exclusive");
		if (v->sure != cases[i].sure)
			fail_msg("%zu: %s", i, certainty_word(v->sure));
		verdict_free(v);
		log_free(l);
	}
}

static size_t rank(const char *text, struct likeness *list, struct pool *pool)
{
	struct text_words w = {0};
	size_t n;

	text_words_line(&w, pool, text);
	n = likeness_rank(&w, list, LIKENESS_MAX, pool);
	text_words_release(&w);
	return n;
}

static void words__are_ranked_with_the_most_telling_ones(void **state)
{
	struct pool pool = {0};
	struct likeness list[LIKENESS_MAX];
	size_t n =
		rank("pin_memory=True: error in the Pin memory thread, Pinned host buffers, PINNED again, cudaHostAlloc",
		     list, &pool);

	(void)state;
	assert_true(n > 0);
	assert_string_equal(list[0].cause, "oom-pinned-host");
	assert_non_null(strstr(list[0].words, "pinned"));
	for (size_t i = 1; i < n; i++)
		assert_true(list[i - 1].weight >= list[i].weight);
	assert_int_equal(rank("qqzzq 17 0x3 __ 3_ \xff\xfe", list, &pool), 0);
	assert_int_equal(rank("", list, &pool), 0);
	pool_release(&pool);
}

static void words__are_limited_in_number(void **state)
{
	struct text_words w = {0};
	struct pool pool = {0};
	char word[16];

	(void)state;
	for (int i = 0; i < 2 * LIKENESS_WORDS_MAX; i++) {
		snprintf(word, sizeof(word), "w%d", i);
		text_words_line(&w, &pool, word);
	}
	assert_int_equal(w.n, LIKENESS_WORDS_MAX);
	text_words_release(&w);
	pool_release(&pool);
}

static void count_advice(void *arg, const char *text, const char *command)
{
	(void)text;
	(void)command;
	++*(size_t *)arg;
}

/* Words may lead to any cause, whatever else is known. */
static void advice__of_every_cause_needs_no_facts(void **state)
{
	struct pool pool = {0};
	struct casefile c;
	size_t missing = 0;

	(void)state;
	case_init(&c, &pool);
	fact_set_flag(&c, FACT_text_is, true);
	fact_set_flag(&c, FACT_text_cut, false);
	fact_set_number(&c, FACT_error_code, 0);
	fact_set_text(&c, FACT_error_text, "");
	for (const struct cause *k = AT(kb_get()->first); k; k = AT(k->next)) {
		size_t n = 0;

		advice_each(AT(k->fix), &c, &pool, count_advice, &n);
		if (!n && strcmp(AT(k->id), "none"))
			print_error("%s has no advice\n", AT(k->id)), missing++;
	}
	pool_release(&pool);
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complaint__is_a_sentence_about_a_gpu_that_fails),
		cmocka_unit_test(told__a_failure_in_sentences_has_candidates),
		cmocka_unit_test(told__what_a_program_says_is_not_told_by_a_person),
		cmocka_unit_test(told__an_exception_counts_instead),
		cmocka_unit_test(unknown__is_compared_with_reports),
		cmocka_unit_test(unknown__of_something_else_is_none),
		cmocka_unit_test(mode__is_that_of_the_gpu_that_failed),
		cmocka_unit_test(words__are_ranked_with_the_most_telling_ones),
		cmocka_unit_test(words__are_limited_in_number),
		cmocka_unit_test(advice__of_every_cause_needs_no_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
