/* SPDX-License-Identifier: Apache-2.0
 * The log reader: searching for many words at once, lines at the ends of its buffer, prefixes, tracebacks, assertions,
 * the numbers of an OOM, codes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "find/words/contradiction.h"
#include "find/words/observe.h"
#include "show/code.h"
#include "verdict/verdict.h"
#include "show/report.h"
#include "knowledge/compile/compile.h"
#include "find/words/crash.h"
#include "read/text/line.h"
#include "find/words/log.h"
#include "knowledge/words.h"
#include "find/words/quoted.h"
#include "base/needles.h"
#include "read/text/stream.h"

/* Needles, and the table that is usually made when cuwhy is built. */
struct searched {
	struct arena a;
	struct needles *d;
};

static struct searched search_for(const char *const *words, size_t n, size_t window)
{
	struct searched s;

	arena_init(&s.a);
	s.d = needles_new(needle_table_make(&s.a, words, n, window));
	return s;
}

static void search_end(struct searched *s)
{
	needles_free(s->d);
	arena_release(&s->a);
}

static void count_hit(void *arg, size_t which)
{
	((unsigned *)arg)[which]++;
}

static void needles__find_what_a_plain_search_finds(void **state)
{
	static const char *const words[] = {"CUDA error",  "undefined symbol: ", "out of memory",
					    "error: CUDA", "aaaaaaaa",		 "via P2P*CUMEM"};
	enum { N = sizeof(words) / sizeof(words[0]) };
	struct searched s = search_for(words, N, NEEDLE_MIN);
	static const char *const parts[] = {"cuda ERROR", "undefined symbol: x",
					    "out of mem", "ory",
					    " ",	  "error: ",
					    "CUDA",	  "aaaa",
					    "a",	  "via P2P/",
					    "CUMEM"};
	char line[256];

	(void)state;
	srand(7);
	for (int round = 0; round < 20000; round++) {
		unsigned found[N] = {0};

		line[0] = '\0';
		for (int k = 0; k < 6; k++)
			strncat(line, parts[(size_t)rand() % (sizeof(parts) / sizeof(parts[0]))],
				sizeof(line) - strlen(line) - 1);
		needles_in_line(s.d, line, strlen(line), count_hit, found);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(found[i], needle_matches(words[i], line, strlen(line)) ? 1 : 0);
	}
	search_end(&s);
}

/* Letters of both cases, few of them so that needles meet often, and characters that differ in bit 5 alone, as cases do. */
static void random_text(char *to, size_t len, const char *letters)
{
	for (size_t i = 0; i < len; i++)
		to[i] = letters[(size_t)rand() % strlen(letters)];
	to[len] = '\0';
}

static bool piece_is_in(const char *piece, size_t n, const char *s, size_t len)
{
	for (size_t i = 0; i + n <= len; i++)
		if (!strncasecmp(s + i, piece, n))
			return true;
	return false;
}

enum { RANDOM_WORDS = 40, RANDOM_TEXT = 120 };

static const char *const alphabets[] = {"aAb", "aAbBcC@`[{", "aAbBcCdDeEfFgG .:_?"};

static size_t random_words(char word[RANDOM_WORDS][32], const char **words, const char *letters)
{
	size_t n = 1 + (size_t)rand() % RANDOM_WORDS;

	for (size_t i = 0; i < n; i++) {
		random_text(word[i], 1 + (size_t)rand() % 24, letters);
		words[i] = word[i];
	}
	return n;
}

/* In a text of its exact size: reading past it would be noticed by the sanitizer. */
static char *random_exact(const char *letters, size_t *len)
{
	char text[RANDOM_TEXT + 1];

	*len = (size_t)rand() % RANDOM_TEXT;
	random_text(text, *len, letters);
	return memcpy(xmalloc(*len ? *len : 1), text, *len);
}

static void needles__the_first_of_them_is_found_at_any_place(void **state)
{
	(void)state;
	srand(11);
	for (int round = 0; round < 6000; round++) {
		const char *letters = alphabets[round % 3], *words[RANDOM_WORDS];
		char word[RANDOM_WORDS][32];
		size_t window = round & 1 ? NEEDLE_MIN : NEEDLE_FAST, n = random_words(word, words, letters);
		struct searched s = search_for(words, n, window);
		size_t muted = (size_t)rand() % n, which = 0, len;
		char *text = random_exact(letters, &len);
		const char *at;

		if (round % 4 < 2)
			needles_mute(s.d, muted, true);
		else
			muted = n;
		at = needles_find(s.d, text, text + len, &which);
		if (at) {
			assert_true(which != muted && strlen(words[which]) >= window);
			assert_true(piece_is_in(words[which], strlen(words[which]), text, len));
		}
		for (size_t i = 0; i < n; i++)	/* none before it */
			if (i != muted && strlen(words[i]) >= window)
				assert_false(
					piece_is_in(words[i], strlen(words[i]), text, at ? (size_t)(at - text) : len));
		search_end(&s);
		free(text);
	}
}

static void needles__all_in_a_line_are_found_once(void **state)
{
	(void)state;
	srand(13);
	for (int round = 0; round < 6000; round++) {
		const char *letters = alphabets[round % 3], *words[RANDOM_WORDS];
		char word[RANDOM_WORDS][32];
		size_t window = round & 1 ? NEEDLE_MIN : NEEDLE_FAST, n = random_words(word, words, letters), len;
		struct searched s = search_for(words, n, window);
		char *text = random_exact(letters, &len);
		unsigned found[RANDOM_WORDS] = {0};

		needles_in_line(s.d, text, len, count_hit, found);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(found[i], strlen(words[i]) >= window &&
							   piece_is_in(words[i], strlen(words[i]), text, len));
		search_end(&s);
		free(text);
	}
}

static void needles__anchors_hold_a_line_at_its_ends(void **state)
{
	static const char *const words[] = {"^Killed$", "^Segmentation fault", "core dumped)$", "^make*Killed$"};
	static const struct { const char *line; unsigned found[4]; } cases[] = {
		{"Killed", {1, 0, 0, 0}},
		{"  Killed  ", {1, 0, 0, 0}},
		{"worker Killed", {0, 0, 0, 0}},
		{"Killed it", {0, 0, 0, 0}},
		{"Segmentation fault (core dumped)", {0, 1, 1, 0}},
		{"a Segmentation fault (core dumped) happened", {0, 0, 0, 0}},
		{"make: *** [train] Killed", {0, 0, 0, 1}},
		{"make: *** [train] Killed 9", {0, 0, 0, 0}},
		{"remake: Killed", {0, 0, 0, 0}},
	};
	struct searched s = search_for(words, 4, NEEDLE_MIN);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned found[4] = {0};

		needles_in_line(s.d, cases[i].line, strlen(cases[i].line), count_hit, found);
		assert_memory_equal(found, cases[i].found, sizeof(found));
	}
	assert_true(needle_ok("^Killed$"));
	assert_false(needle_ok("^Kill$"));
	search_end(&s);
}

static void crash__names_the_library(void **state)
{
	static const struct { const char *line[4], *library; } cases[] = {
		{{"python3[22]: segfault at 0 ip 00007f sp 00007f error 4 in libtorch_cuda.so[7f1e+4b]"},
		 "libtorch_cuda.so"},
		{{"python3[22]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6[7f1e+4b]"}, ""},
		{{"[ 0] /lib/libc.so.6(+0x42520)[0x7f]", "[ 1] /opt/lib/libnccl.so.2(+0x5a)[0x7f]"}, "libnccl.so.2"},
		{{"#0  0x00007f in raise () from /lib/libc.so.6", "#1  0x00007f in f () from /opt/lib/libfoo.so.1"},
		 "libfoo.so.1"},
		{{"Fatal Python error: Segmentation fault", "Current thread 0x7f (most recent call first):",
		  "File \"/v/site-packages/decord/reader.py\", line 3 in f",
		  "File \"/v/site-packages/torch/x.py\", line 9 in g"},
		 "decord"},
		{{"Fatal Python error: Segmentation fault", "File \"/home/kim/data.py\", line 3 in f"}, ""},
		{{"File \"/v/site-packages/decord/reader.py\", line 3, in f"}, ""},
		{{"loading libfoo.so (version 3)", "[info] /data/a.so(1)", "#1 in line"}, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text_crash c = {0};

		for (size_t k = 0; k < 4 && cases[i].line[k]; k++)
			crash_line(&c, cases[i].line[k]);
		assert_string_equal(c.library, cases[i].library);
	}
}

struct seen {
	uint64_t number;
	size_t n, with;
};

static void see_line(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	struct seen *seen = arg;

	(void)gap;
	assert_true(number >= seen->number);	/* in order, none twice in the same place */
	seen->number = number;
	seen->n++;
	seen->with += memmem(s, len, "CUDA error: here", 16) != NULL;
}

static void stream_in_pieces(struct stream *st, const char *text, size_t n, size_t piece)
{
	for (size_t at = 0; at < n;) {
		size_t room, part = piece < n - at ? piece : n - at;
		char *to = stream_room(st, &room);

		part = part < room ? part : room;
		memcpy(to, text + at, part);
		stream_filled(st, part);
		at += part;
	}
	stream_end(st);
}

/* The same text in pieces of any size gives the same lines. */
static void stream__does_not_depend_on_the_pieces(void **state)
{
	static const char *const words[] = {"CUDA error: here"};
	static const size_t pieces[] = {1 << 20, 65536, 4093, 700001};
	struct searched s = search_for(words, 1, NEEDLE_FAST);
	size_t size = 3u << 20, n = 0, first = 0;
	char *text = xmalloc(size + 64);

	(void)state;
	for (unsigned i = 0; n < size; i++)
		n += (size_t)snprintf(text + n, size + 64 - n,
				      i % 9973 == 5000 ? "CUDA error: here %u\n" : "a line of no interest %u\n", i);
	for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
		struct seen seen = {0};
		struct stream *st = stream_new(s.d, see_line, &seen);

		stream_hasty(st);
		stream_in_pieces(st, text, n, pieces[k]);
		assert_true(seen.with >= 10);
		first = first ? first : seen.with;
		assert_int_equal(seen.with, first);
		assert_true(seen.n < 40000);	/* most were skipped */
		stream_free(st);
	}
	free(text);
	search_end(&s);
}

struct marks {
	bool seen[4];
	uint64_t last;	/* line with the last of them */
};

static void see_marks(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	struct marks *m = arg;
	char words[] = "CUDA error: 0";

	(void)gap;
	for (size_t i = 0; i < 4; i++) {
		words[strlen(words) - 1] = (char)('0' + i);
		if (memmem(s, len, words, strlen(words))) {
			m->seen[i] = true;
			m->last = i == 3 ? number : m->last;
		}
	}
}

/* Errors at the beginning of a very long line, in its middle, at its end, and on the line after it. */
static void stream__no_line_is_too_long(void **state)
{
	static const char *const words[] = {"CUDA error: "};
	static const size_t pieces[] = {1 << 20, 65536, 4093},
			    longs[] = {20000, 622000, 622500, 622592, 630000, 1300000, 5000000};
	struct searched s = search_for(words, 1, NEEDLE_FAST);

	(void)state;
	for (size_t k = 0; k < 3 * sizeof(longs) / sizeof(longs[0]); k++) {
		size_t size = longs[k / 3];
		char *fill = xcalloc(1, size / 2 + 1), *text;
		struct marks marks = {0};
		struct stream *st = stream_new(s.d, see_marks, &marks);

		memset(fill, 'x', size / 2);
		text = xasprintf("first\nCUDA error: 0 %s CUDA error: 1 %s CUDA error: 2\nCUDA error: 3\nlast\n", fill,
				 fill);
		stream_in_pieces(st, text, strlen(text), pieces[k % 3]);
		for (size_t i = 0; i < 4; i++)
			if (!marks.seen[i])
				fail_msg("a line of %zu bytes, read %zu at a time: error %zu was not passed on", size,
					 pieces[k % 3], i);
		assert_int_equal(marks.last, 3);
		stream_free(st);
		free(text);
		free(fill);
	}
	search_end(&s);
}

static void see_whole_line(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	assert_true(len >= 4 && !memcmp(s, "h:1 ", 4));
	see_line(arg, s, len, number, gap);
}

/* A word that every line has costs little, and hides no other one. */
static void stream__passes_few_lines_on_for_a_word_that_is_everywhere(void **state)
{
	static const char *const words[] = {"NCCL INFO", "NCCL INFO: CUDA error: here"};
	static const bool sparing[] = {true, false};
	static const size_t pieces[] = {1 << 20, 65536, 700001};
	struct searched s = search_for(words, 2, NEEDLE_FAST);
	size_t size = 20u << 20, n = 0, with = 0, first = 0;
	char *text = xmalloc(size + 64);

	(void)state;
	for (unsigned i = 0; n < size; i++) {
		bool error = i % 4001 == 4000;

		with += error;
		n += (size_t)snprintf(text + n, size + 64 - n,
				      error ? "h:1 NCCL INFO: CUDA error: here %u\n" : "h:1 NCCL INFO channel %u\n", i);
	}
	for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
		struct seen seen = {0};
		struct stream *st = stream_new(s.d, see_whole_line, &seen);

		stream_hasty(st);
		stream_sparing(st, sparing);
		stream_in_pieces(st, text, n, pieces[k]);
		assert_int_equal(seen.with, with);
		assert_true(seen.n < 30000);
		first = first ? first : seen.n;
		assert_int_equal(seen.n, first);
		stream_free(st);
	}
	free(text);
	search_end(&s);
}

enum { ERROR_LINE = 30000 };

static void see_word_after_error(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	(void)gap;
	*(size_t *)arg += number > ERROR_LINE + 1000 && memmem(s, len, "NCCL INFO", 9) != NULL;
}

static void stream__passes_words_on_again_after_an_error(void **state)
{
	static const char *const words[] = {"NCCL INFO", "CUDA error: here"};
	static const bool sparing[] = {true, false};
	struct searched s = search_for(words, 2, NEEDLE_FAST);
	size_t size = 2u << 20, n = 0, after = 0;
	char *text = xmalloc(size + 64);
	struct stream *st = stream_new(s.d, see_word_after_error, &after);

	(void)state;
	for (unsigned i = 1; n < size; i++)
		n += (size_t)snprintf(text + n, size + 64 - n, "%s %u\n",
				      i == ERROR_LINE ? "CUDA error: here"
				      : i % 500 == 0  ? "NCCL INFO channel"
						      : "a line of no interest",
				      i);
	stream_hasty(st);
	stream_sparing(st, sparing);
	stream_in_pieces(st, text, n, 65536);
	assert_true(after >= 5 && after <= 10);
	stream_free(st);
	free(text);
	search_end(&s);
}

static void expect_line(const char *raw, const char *text, const char *who, int rank)
{
	static struct text_line l;

	line_clean(&l, raw, strlen(raw), 1);
	assert_string_equal(l.text, text);
	assert_string_equal(l.who, who);
	assert_int_equal(l.rank, rank);
}

static void line__has_no_prefix_and_no_colors(void **state)
{
	(void)state;
	expect_line("RuntimeError: x", "RuntimeError: x", "", -1);
	expect_line("\033[31mRuntimeError\033[0m: x", "RuntimeError: x", "", -1);
	expect_line("[rank3]:   File \"a.py\", line 1, in f", "  File \"a.py\", line 1, in f", "rank3", 3);
	expect_line("[default1]:Traceback", "Traceback", "default1", 1);
	expect_line("(RayTrainWorker pid=12, ip=10.0.0.1) ValueError: y", "ValueError: y", "pid=12, ip=10.0.0.1", -1);
	expect_line("2: step 1", "step 1", "2", 2);
	expect_line("2025-06-01 12:00:00,123 x", "x", "", -1);
	expect_line("[1,5]<stderr>:boom", "boom", "1,5", -1);
	expect_line("    indented", "    indented", "", -1);
	expect_line("2025-03-04 11:12:13,123 - train.main - ERROR -   x", "  x", "", -1);
	expect_line("2025-03-04 11:12:13.123 | ERROR    | __main__:run:40 - x", "x", "", -1);
	expect_line("E0304 11:12:13.000001 140213 train.py:12] x", "x", "", -1);
	expect_line("2025-03-04T11:12:13.000000001Z stderr F   x", "  x", "", -1);
	expect_line("[pod/train-1/main]   x", "  x", "train-1/main", -1);
	expect_line("trainer  |   x", "  x", "trainer", -1);
	expect_line("a | b", "a | b", "", -1);
}

static void line__a_file_may_name_its_rank(void **state)
{
	(void)state;
	assert_int_equal(line_rank_of_file("logs/rank3.log"), 3);
	assert_int_equal(line_rank_of_file("job-rank_12.err"), 12);
	assert_int_equal(line_rank_of_file("/tmp/attempt_0/5/stderr.log"), 5);
	assert_int_equal(line_rank_of_file("train.log"), -1);
	assert_int_equal(line_rank_of_file("frank3.log"), -1);
}

static struct text_log *read_log(const char *text)
{
	struct text_log *l = log_new();

	log_read_text(l, "log", text, strlen(text));
	log_finish(l);
	return l;
}

static void expect_cause(const char *text, const char *cause)
{
	struct text_log *l = read_log(text);
	struct verdict *v = verdict_of_text(l);

	assert_string_equal(verdict_cause(v), cause);
	verdict_free(v);
	log_free(l);
}

struct coded {
	uint32_t code;
	const char *driver, *runtime, *words;
};

static const struct coded coded[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) {code, #driver, #runtime, text},
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
};
#define CODED (sizeof(coded) / sizeof(coded[0]))

static void expect_contradiction(bool expected, char *message)
{
	struct contradiction c;

	if (text_contradiction(message, &c) != expected)
		fail_msg("'%s' %s", message, expected ? "contradicts itself" : "is consistent");
	free(message);
}

/* What two of the forms that programs have say, for every pair of codes. */
static void expect_pair(const struct coded *a, const struct coded *b)
{
	bool differ = strcmp(a->words, b->words) != 0 && strcmp(b->words, "unknown error") != 0;
	bool old = a->code < 100 && text_number_today(a->code) == b->code;
	const char *name = a->driver[0] ? a->driver : a->runtime;

	old |= a->code == 4 && b->code == 719;	/* before CUDA 10.1 */
	expect_contradiction(differ && !old, xasprintf("CUDA error %u: %s", a->code, b->words));
	expect_contradiction(differ && !old, xasprintf("cuda runtime error (%u) : %s at x.cu:5", a->code, b->words));
	expect_contradiction(differ && !old, xasprintf("CUDA error: %s (error code %u)", b->words, a->code));
	expect_contradiction(differ, xasprintf("cuLaunchKernel: %s: %s", name, b->words));
	expect_contradiction(differ, xasprintf("CUDA error: %s (%s)", b->words, name));
	expect_contradiction(strcmp(a->words, b->words) != 0 && !old,
			     xasprintf("CUDA failure code=%u(%s)", a->code, b->driver[0] ? b->driver : b->runtime));
}

static void text__every_pair_of_a_code_and_words_agrees_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < CODED; i++)
		for (size_t k = 0; coded[i].code && k < CODED; k++)
			if (coded[k].code)
				expect_pair(&coded[i], &coded[k]);
	expect_contradiction(false,
			     xasprintf("cuda runtime error (77) : an illegal memory access was encountered at x.cu:5"));
	expect_contradiction(false, xasprintf("CUDA error 30: unknown error"));
	expect_contradiction(false, xasprintf("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 805 MiB"));
	expect_contradiction(false, xasprintf("error 805: out of memory"));	/* whose? */
}

/* Not every number beside CUDA's words is said of the same thing. */
static void text__numbers_that_are_not_about_the_words(void **state)
{
	(void)state;
	/* what was expected, and what came instead */
	expect_contradiction(
		false, xasprintf("Check failed: err == cudaSuccess (7 vs. 0) too many resources requested for launch"));
	expect_contradiction(false,
			     xasprintf("a.cu:61] Check failed: error == cudaSuccess (74 vs. 0)  misaligned address"));
	expect_contradiction(false, xasprintf("Check failed: result == CUDA_SUCCESS (2 vs. 0)"));
	/* libraries that do not know a number call it unknown */
	expect_contradiction(false, xasprintf("failed call to cuInit: UNKNOWN ERROR (34)"));
	expect_contradiction(false, xasprintf("CUDA error 803: unknown error"));
	expect_contradiction(true, xasprintf("CUDA error 999: out of memory"));
	/* numbers of the library that passes CUDA's words on */
	expect_contradiction(false, xasprintf("Error Code 1: Cuda Runtime (an illegal memory access was encountered)"));
	expect_contradiction(false, xasprintf("NCCL error 1: unhandled cuda error 'out of memory'"));
	expect_contradiction(true, xasprintf("an illegal memory access was encountered (CUDA error 805)"));
}

/* If the number and the words of a message mean different codes, neither is proven, whatever the rules say of each. */
static void text__a_message_that_contradicts_itself_proves_nothing(void **state)
{
	(void)state;
	for (size_t i = 1; i < CODED; i++) {
		const struct coded *other = &coded[i + 7 < CODED ? i + 7 : 1];
		char *text = xasprintf("RuntimeError: CUDA error %u: %s\n", coded[i].code, other->words);
		struct text_log *l = read_log(text);
		struct verdict *v = verdict_of_text(l);

		if (strcmp(coded[i].words, other->words) != 0 && strcmp(other->words, "unknown error") != 0 &&
		    v->sure != SURE_POSSIBLE)
			fail_msg("'%s' is %s, %s", text, verdict_cause(v), certainty_word(v->sure));
		verdict_free(v);
		log_free(l);
		free(text);
	}
}

static void log__keeps_ranks_apart(void **state)
{
	struct text_log *l = read_log("[rank0]: Traceback (most recent call last):\n"
				      "[rank1]: Traceback (most recent call last):\n"
				      "[rank0]:   File \"a.py\", line 10, in f\n"
				      "[rank1]:   File \"b.py\", line 20, in g\n"
				      "[rank0]:     x()\n"
				      "[rank1]:     y()\n"
				      "[rank1]: ValueError: one\n"
				      "[rank0]: KeyError: two\n");
	const struct text_event *e;

	(void)state;
	assert_int_equal(log_events(l, &e), 2);
	assert_string_equal(e[0].type, "ValueError");
	assert_int_equal(e[0].n_frames, 1);
	assert_string_equal(e[0].frame[0].file, "b.py");
	assert_string_equal(e[0].frame[0].source, "y()");
	assert_string_equal(e[1].frame[0].file, "a.py");
	assert_int_equal(e[1].rank, 0);
	assert_int_equal(log_ranks(l), 2);
	log_free(l);
}

/* The one exception of a text, and its innermost frame. */
static void expect_error(const char *text, const char *type, const char *message, const char *file, const char *source)
{
	struct text_log *l = read_log(text);
	const struct text_event *e;
	size_t n = log_events(l, &e);

	assert_int_equal(n, 1);
	assert_string_equal(e->type, type);
	assert_string_equal(e->message, message);
	assert_true(e->n_frames > 0);
	assert_string_equal(e->frame[e->n_frames - 1].file, file);
	assert_string_equal(e->frame[e->n_frames - 1].source, source);
	log_free(l);
}

static void clothes__any_prefix_of_a_traceback_is_learned(void **state)
{
	(void)state;
	expect_error("<1> node7/gpu1 ~ Traceback (most recent call last):\n"
		     "<2> node7/gpu1 ~   File \"a.py\", line 10, in f\n"
		     "<10> node7/gpu1 ~     x()\n"
		     "<11> node7/gpu1 ~ KeyError: two\n",
		     "KeyError", "two", "a.py", "x()");
}

/* Loggers often begin the traceback's first line in a way of its own. */
static void clothes__a_prefix_is_learned_from_frames_alone(void **state)
{
	(void)state;
	expect_error("Worker died: Traceback (most recent call last):\n"
		     "<2> node7/gpu1 ~   File \"a.py\", line 10, in f\n"
		     "<10> node7/gpu1 ~     x()\n"
		     "<11> node7/gpu1 ~ KeyError: two\n",
		     "KeyError", "two", "a.py", "x()");
}

static void clothes__a_traceback_on_one_line_has_its_frames(void **state)
{
	(void)state;
	expect_error("[rank0]: Traceback (most recent call last): File \"a.py\", line 10, in f x = g(1) File \"b.py\", line 2, in g "
		     "return h() ^^^ ValueError: no GPU\n",
		     "ValueError", "no GPU", "b.py", "return h()");
	expect_error("Mar  4 11:12:13 node7 train[4711]: Traceback (most recent call last):#012  File \"a.py\", line 10, in f#012    x()#012"
		     "KeyError: two\n",
		     "KeyError", "two", "a.py", "x()");
}

/* A progress bar that was drawn a thousand times, and as many lines in one of syslog's or in one JSON string. */
static void clothes__a_line_has_as_many_parts_as_there_are(void **state)
{
	static const char *const forms[][2] = {{"\r", "\n"}, {"#012", "\n"}, {"\\n", "\"}\n"}};

	(void)state;
	for (size_t k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
		struct buf text;

		buf_init(&text, 1u << 20);
		buf_adds(&text, k == 2 ? "{\"log\": \"" : "");
		for (unsigned i = 0; i < 1000; i++)
			buf_printf(&text, "%u%%%s", i % 100, forms[k][0]);
		buf_printf(&text, "Traceback (most recent call last):%s  File 'a.py', line 10, in f%s    x()%s"
				  "RuntimeError: CUDA error: an illegal memory access was encountered%s",
			   forms[k][0], forms[k][0], forms[k][0], forms[k][1]);
		expect_cause(text.data, "illegal-access-out-of-bounds");
		buf_release(&text);
	}
}

static void clothes__lines_cut_at_a_width_are_joined(void **state)
{
	(void)state;
	expect_error("Traceback (most recent call last):\n"
		     "  File \"a.py\", line 10, in f\n"
		     "    x()\n"
		     "RuntimeError: Expected all tensors to be on the same device, but found at least \n"
		     "two devices, cuda:0 and cpu!\n",
		     "RuntimeError",
		     "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
		     "a.py", "x()");
}

static void clothes__markup_is_taken_off(void **state)
{
	(void)state;
	expect_error("<pre>Traceback (most recent call last):\n"
		     "  File &quot;a.py&quot;, line 10, in &lt;module&gt;\n"
		     "    x(a &lt; b)\n"
		     "<span class=\"ansi-red-fg\">KeyError</span>: &#39;two&#39;</pre>\n",
		     "KeyError", "'two'", "a.py", "x(a < b)");
	expect_error("{\"level\": \"error\", \"exc_info\": \"Traceback (most recent call last):\\n  File \\\"a.py\\\", line 10, in f\\n    "
		     "x()\\nKeyError: two\"}\n",
		     "KeyError", "two", "a.py", "x()");
	expect_error("   \"traceback\": [\n"
		     "    \"\\u001b[0;31mKeyError\\u001b[0m  Traceback (most recent call last)\",\n"
		     "    \"Cell \\u001b[0;32mIn[3], line 2\\u001b[0m\\n      1 a\\n----> 2 x()\",\n"
		     "    \"KeyError: two\"\n"
		     "   ]\n",
		     "KeyError", "two", "Cell In[3]", "x()");
}

static void clothes__what_looks_like_markup_stays(void **state)
{
	(void)state;
	expect_error(
		"Traceback (most recent call last):\n  File \"a.py\", line 10, in <module>\n    x = y<a>(b)\nKeyError: two\n",
		"KeyError", "two", "a.py", "x = y<a>(b)");
}

static void log__counts_assertions(void **state)
{
	char *text = xmalloc(1 << 20);
	const struct text_assert *a;
	struct text_log *l;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 5000; i++)
		n += (size_t)snprintf(
			text + n, (1 << 20) - n,
			"a/Loss.cu:%d: kern: block: [%d,0,0], thread: [%d,0,0] Assertion `t < n_classes` failed.\n",
			103, i / 32, i % 32);
	l = read_log(text);
	assert_int_equal(log_asserts(l, (struct text_past){0}, NULL, &a), 1);
	assert_int_equal(a[0].count, 5000);
	assert_int_equal(a[0].source_line, 103);
	assert_string_equal(a[0].file, "a/Loss.cu");
	assert_string_equal(a[0].function, "kern");
	assert_string_equal(a[0].condition, "t < n_classes");
	log_free(l);
	free(text);
}

/* Only what belongs to the name, whatever follows it on the line. */
static void env__names_of_gpus_end_where_other_words_begin(void **state)
{
	static const struct { const char *line, *name; } lines[] = {
		{"GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-1)", "GeForce RTX 3090"},
		{"my RTX 4090 runs out of memory after two epochs", "RTX 4090"},
		{"on RTX 3080 Ti it works, on another card not", "RTX 3080 Ti"},
		{"NVIDIA GeForce RTX 3080 Laptop GPU with CUDA capability sm_86 is not compatible",
		 "GeForce RTX 3080 Laptop GPU"},
		{"GeForce RTX 2080 with Max-Q Design and 16 GB of RAM", "GeForce RTX 2080 with Max-Q Design"},
		{"Using A100-SXM4-80GB and 2 nodes", "A100-SXM4-80GB"},
		{"we have H100 80GB HBM3 nodes since May", "H100 80GB HBM3"},
		{"training on 8 A100 80GB PCIe cards", "A100 80GB PCIe"},
		{"| 0  Tesla P100-PCIE...  Off  | 00000000:04:00.0 Off |", "Tesla P100-PCIE"},
		{"Tesla T4 GPU has compute capability 7.5. You can use float16", "Tesla T4 GPU"},
		{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition with CUDA capability sm_120",
		 "RTX PRO 6000 Blackwell Workstation Edition"},
		{"RTX 6000 Ada Generation here", "RTX 6000 Ada Generation"},
		{"Found GPU0 GeForce GTX 770 which is of cuda capability 3.0.", "GeForce GTX 770"},
		{"NVIDIA TITAN RTX under load", "TITAN RTX"},
		{"Quadro K2200, driver 470", "Quadro K2200"},
		{"device: L4 24GB at 70 W", "L4 24GB"},
		{"RTX3090 crashed", "RTX3090"},
		{"RTX 3090 750 W power supply", "RTX 3090"},
		{"a V100 is what the cluster gives me", "V100"},
		{"A100 MIG 3g.20gb under Slurm", "A100 MIG 3g.20gb"},
		{"GeForce RTX 7090 Ultra is fast", "GeForce RTX 7090"},
		{"NVIDIA Jetson AGX Orin developer kit", "Jetson AGX Orin"},
		{"all RTX cards fail", ""},
		{"Tesla drivers were installed", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct text_log *l = read_log(lines[i].line);

		assert_string_equal(log_env(l)->gpu, lines[i].name);
		log_free(l);
	}
}

static double fact_of(const char *text, enum fact_id id)
{
	struct text_log *l = read_log(text);
	const struct text_event *e;
	struct casefile *f = xcalloc(1, sizeof(*f));
	struct pool pool = {0};
	double value;

	case_init(f, &pool);
	text_observe_event(f, l, log_events(l, &e) ? &e[0] : NULL);
	value = fact_number(f, id, -1);
	pool_release(&pool);
	free(f);
	log_free(l);
	return value;
}

#define GIB 1073741824.0

static void gpu__is_known_with_more_words_than_its_name_has(void **state)
{
	(void)state;
	assert_true(fact_of("RuntimeError: CUDA error: unknown error\ndevice: L4 24GB at 70 W\n", FACT_text_gpu_cc) == 89);
	assert_true(fact_of("RuntimeError: CUDA error: unknown error\nTesla T4 GPU has little memory\n",
			    FACT_text_gpu_cc) == 75);
	assert_true(fact_of("RuntimeError: CUDA error: unknown error\nmy RTX3090 has more\n", FACT_text_gpu_cc) == 86);
	assert_true(fact_of("RuntimeError: CUDA error: unknown error\nmy RTX 7090 has most\n", FACT_text_gpu_cc) == -1);	/* not a Quadro */
}

/* The answers in a text of these lines: "id=answer@line …". */
static void expect_snippets(const char *text, const char *expected)
{
	struct snippets found = {0};
	char got[400] = "", line[200];
	uint64_t number = 0;

	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(s, "\n"), s);
		snippets_line(&found, line, ++number);
	}
	for (size_t i = 0; i < found.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d=%s@%u", i ? " " : "",
			 (int)found.list[i].id, found.list[i].answer, (unsigned)found.list[i].line);
	assert_string_equal(got, expected);
}

static void snippet__is_what_was_typed_and_what_it_printed(void **state)
{
	(void)state;
	expect_snippets(">>> torch.cuda.is_available()\nFalse\n", "0=False@2");
	expect_snippets("In [3]: torch.cuda.is_available()\nOut[3]: True\n", "0=True@2");
	expect_snippets("torch.cuda.is_available(): False\n", "0=False@1");
	expect_snippets("torch.cuda.is_available()=True\n", "0=True@1");
	expect_snippets(">>> print(torch.version.cuda, torch.cuda.device_count())\n12.4 0\n", "2=12.4@2 1=0@2");
	expect_snippets(">>> torch.version.cuda\n'11.8'\n", "2='11.8'@2");
	expect_snippets(">>> torch.cuda.get_device_capability(0)\n(8, 6)\n", "4=(8, 6)@2");
	expect_snippets(">>> torch.cuda.is_available()\n>>> torch.version.hip\nNone\n", "3=None@3");
	expect_snippets("if torch.cuda.is_available():\n    x = x.cuda()\n", "");	/* code, not an answer */
	expect_snippets("assert torch.cuda.device_count() > 1\n2 GPUs\n", "");
	expect_snippets("if torch.cuda.device_count() == 2\n", "");
}

static void oom__numbers_of_all_forms(void **state)
{
	static const char old[] = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 5.00 GiB already "
				  "allocated; 1.00 GiB free; 6.00 GiB reserved in total by PyTorch)";
	static const char middle[] = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 8.00 GiB "
		"of which 1.00 GiB is free. Of the allocated memory 5.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
				     "PyTorch but unallocated.";
	static const char others[] = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of "
		"which 1.00 GiB is free. Process 7 has 3.00 GiB memory in use. Including non-PyTorch memory, this process has "
		"4.00 GiB memory in use. Of the allocated memory 5.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
				     "PyTorch but unallocated.";
	static const char async[] =
		"torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n"
		"Currently allocated     : 5.00 GiB\nRequested               : 2.00 GiB\nDevice limit            : 8.00 GiB\n"
		"Free (according to CUDA): 1.00 GiB\n";
	static const char *const forms[] = {old, middle, others, async};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_true(fact_of(forms[i], FACT_oom_is) == 1);
		assert_true(fact_of(forms[i], FACT_oom_request) == 2 * GIB);
		assert_true(fact_of(forms[i], FACT_oom_total) == 8 * GIB);
		assert_true(fact_of(forms[i], FACT_oom_free) == 1 * GIB);
		assert_true(fact_of(forms[i], FACT_oom_torch_allocated) == 5 * GIB);
	}
	assert_true(fact_of(old, FACT_oom_torch_reserved) == 6 * GIB);
	assert_true(fact_of(others, FACT_others_bytes) == 3 * GIB);
	assert_true(fact_of(others, FACT_oom_live) == 4 * GIB);
}

static void text__the_first_error_counts(void **state)
{
	(void)state;
	expect_cause("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n"
		     "RuntimeError: CUDA error: misaligned address\n\n"
		     "During handling of the above exception, another exception occurred:\n\n"
		     "Traceback (most recent call last):\n  File \"a.py\", line 9, in h\n    k()\n"
		     "RuntimeError: CUDA error: an illegal memory access was encountered\n", "misaligned-address");
	/* errors about another process come after what happened here */
	expect_cause("[rank0]: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE)\n"
		     "[rank1]: RuntimeError: CUDA error: misaligned address\n", "misaligned-address");
	/* something else failed first, and it is not CUDA's */
	expect_cause("KeyError: 'x'\nRuntimeError: CUDA error: misaligned address\n", "misaligned-address");
	expect_cause("KeyError: 'x'\n", "none");
}

static void quoted__lines_that_mention_an_error(void **state)
{
	static const struct { const char *line; bool quoted, code; } cases[] = {
		{"tests/test_cuda.py::test_error[CUDA error: out of memory] PASSED [ 11%]", true, false},
		{"FAILED tests/test_cuda.py::test_error - RuntimeError: CUDA error: out of memory", false, false},
		{"test_oom (tests.T.test_oom) ... skipped 'Found no NVIDIA driver on your system'", true, false},
		{"ok 3 - a CUDA error is reported", true, false},
		{"8f3a1c2 fix: CUDA out of memory when resuming", true, false},
		{"deadbee CUDA out of memory", false, false},	/* a word: no digit */
		{"    RuntimeError: CUDA error: out of memory", false, false},
		{"if \"CUDA out of memory\" in str(e):", false, true},
		{"tests/test_errors.py:31:    raise RuntimeError(\"CUDA error: out of memory\")", false, true},
		{"train.py:31: UserWarning: CUDA initialization: Found no NVIDIA driver", false, false},
		{"case CUBLAS_STATUS_ALLOC_FAILED: return \"CUBLAS_STATUS_ALLOC_FAILED\";", false, true},
		{"RuntimeError: CUDA error: out of memory (see log);", false, false},
		{"{\"message\": \"CUDA error: out of memory\", \"level\": \"error\"}", false, false},
		{"$ grep -rn \"CUDA error\" src", false, true},
	};
	struct text_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct quoted q = {0};

		line_clean(&line, cases[i].line, strlen(cases[i].line), 1);
		if (quoted_line(&q, &line) != cases[i].quoted || quoted_code(line_words(&line)) != cases[i].code)
			fail_msg("%s", cases[i].line);
	}
}

static void quoted__a_diff_ends_where_its_lines_end(void **state)
{
	static const char *const lines[] = {"diff --git a/x b/x", "@@ -1,2 +1,2 @@", "+CUDA error: out of memory",
					    " context"};
	static const char after[] = "CUDA error: out of memory";
	struct quoted q = {0};
	struct text_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		line_clean(&line, lines[i], strlen(lines[i]), i + 1);
		assert_true(quoted_line(&q, &line));
	}
	line_clean(&line, after, strlen(after), 9);
	assert_false(quoted_line(&q, &line));
}

static void text__what_was_handled_does_not_lead(void **state)
{
	static const char handled[] =
		"step 1 loss 2\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n"
		"RuntimeError: CUDA error: misaligned address\nstep 2 loss 2\nstep 3 loss 2\n"
		"Traceback (most recent call last):\n  File \"a.py\", line 9, in h\n    k()\n";
	char text[1024];
	const struct text_event *e;
	struct text_log *l;

	(void)state;
	snprintf(text, sizeof(text), "%sRuntimeError: CUDA error: device-side assert triggered\n", handled);
	expect_cause(text, "kernel-assert");
	snprintf(text, sizeof(text), "%sKeyError: 'x'\n", handled);
	expect_cause(text, "none");
	/* the same error again: the time that ended the program counts */
	snprintf(text, sizeof(text), "%sRuntimeError: CUDA error: misaligned address\n", handled);
	expect_cause(text, "misaligned-address");
	l = read_log(text);
	assert_int_equal(log_events(l, &e), 1);
	assert_int_equal(e->frame[e->n_frames - 1].line, 9);
	assert_int_equal(e->count, 2);
	log_free(l);
}

static void restart__a_command_starts_a_program_and_a_look_does_not(void **state)
{
	static const struct {
		const char *line;
		enum restart kind;
	} cases[] = {
		{"$ python train.py", RESTART_PROGRAM},
		{"(base) mira@box:~/sd$ CUDA_VISIBLE_DEVICES=0 python3 train.py", RESTART_PROGRAM},
		{"[root@node01 yolo]# yolo train data=coco.yaml", RESTART_PROGRAM},
		{"mira@box sd % ./run.sh", RESTART_PROGRAM},
		{"(venv) C:\\Users\\x>python a.py", RESTART_PROGRAM},
		{"PS D:\\x> python .\\a.py", RESTART_PROGRAM},
		{"\xe2\x9e\x9c  sd git:(main) \xe2\x9c\x97 torchrun a.py", RESTART_PROGRAM},
		{"root@0f1c:/workspace# docker run --gpus all img python a.py", RESTART_PROGRAM},
		{"!python a.py --fp16", RESTART_PROGRAM},
		{"+ srun python a.py", RESTART_PROGRAM},
		{"python -m torch.distributed.run a.py", RESTART_PROGRAM},
		{"In [4]: !python a.py", RESTART_PROGRAM},
		{">>> model.cuda()", RESTART_STATEMENT},
		{"In [4]: model.cuda()", RESTART_STATEMENT},
		{"After reinstalling PyTorch I get:", RESTART_TOLD},
		{"**EDIT:** that was it, but", RESTART_TOLD},
		{"$ pip install torch", RESTART_NOT},
		{"$ nvidia-smi", RESTART_NOT},
		{"$ sudo modprobe nvidia_uvm", RESTART_NOT},
		{"!pip install torch", RESTART_NOT},
		{"python -m torch.utils.collect_env", RESTART_NOT},
		{"python train.py fails with:", RESTART_NOT},
		{"!!! Exception during processing !!!", RESTART_NOT},
		{"/usr/lib/python3/x.py:12: UserWarning: 3 > 2", RESTART_NOT},
		{"[2024-01-01 10:00:00] loss 0.3 # 12", RESTART_NOT},
		{"$ ", RESTART_NOT},
		{"(pid=12", RESTART_NOT},
		{"PS C:", RESTART_NOT},
	};
	struct text_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct restarts r = {0};

		line_clean(&line, cases[i].line, strlen(cases[i].line), 1);
		if (restart_line(&r, &line, true) != cases[i].kind)
			fail_msg("%s", cases[i].line);
		assert_int_equal(restart_line(&r, &line, false), RESTART_NOT);
	}
}

static void expect_sure(const char *text, const char *cause, enum certainty most, const char *other)
{
	struct text_log *l = read_log(text);
	struct verdict *v = verdict_of_text(l);
	bool offered = !other;

	for (size_t i = 1; i < v->n_candidates; i++)
		offered |= other && !strcmp(AT(v->candidates[i].cause->id), other);
	assert_string_equal(verdict_cause(v), cause);
	assert_true(v->sure <= most);
	assert_true(offered);
	verdict_free(v);
	log_free(l);
}

#define FAILED(line, message) \
	"Traceback (most recent call last):\n  File \"a.py\", line " line ", in <module>\n    f(x)\n" message "\n"
#define CPU_ONLY	FAILED("3", "AssertionError: Torch not compiled with CUDA enabled")
#define DEVICES \
	FAILED("7", \
	       "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")
#define DTYPES		FAILED("8", "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Half")
#define LOST		FAILED("9", "RuntimeError: CUDA error: an illegal memory access was encountered")
#define PROGRESS	" 10%|1 | 10/100 [00:01<00:09, 9.1it/s]\n 20%|2 | 20/100 [00:02<00:08, 9.1it/s]\n"

static void text__the_last_run_that_failed_leads(void **state)
{
	(void)state;
	expect_sure("$ python a.py\n" CPU_ONLY "$ pip install torch\n$ python a.py\n" DEVICES, "tensor-device-mismatch",
		    SURE_CERTAIN, NULL);
	/* only told: the other may still be the reason */
	expect_sure(CPU_ONLY "\nAfter reinstalling I get:\n\n" DEVICES, "tensor-device-mismatch", SURE_LIKELY,
		    "cpu-only-build");
	/* the last run works: the text is about the one that does not */
	expect_sure("$ python a.py\n" DEVICES "$ python a.py\n" PROGRESS PROGRESS, "tensor-device-mismatch",
		    SURE_CERTAIN, NULL);
	/* it fails, but CUDA does not */
	expect_sure("$ python a.py\n" DEVICES "$ python a.py\n" FAILED("9", "KeyError: 'x'"), "tensor-device-mismatch",
		    SURE_LIKELY, NULL);
	/* of one process, the first one leads */
	expect_sure("$ python a.py\n" CPU_ONLY "$ ls\n" DEVICES, "cpu-only-build", SURE_CERTAIN, NULL);
}

#define HELD(request, free, theirs, cached)                                                                                     \
	FAILED("9", \
	       "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " request \
	       " GiB. GPU 0 has a total capacity of 23.65 GiB of which " free " GiB is free. Process 22931 has " theirs \
	       " GiB memory in use. Including non-PyTorch memory, this process has 14.10 GiB memory in use. Of the " \
	       "allocated memory 9.02 GiB is allocated by PyTorch, and " cached \
	       " GiB is reserved by PyTorch but unallocated.")

/* Memory of this process that is free and cached is another way out than to end the other one. */
static void text__another_process_is_certain_only_if_the_cache_is_not_enough(void **state)
{
	(void)state;
	expect_sure(HELD("2.00", "1.10", "8.40", "4.60"), "oom-other-process", SURE_LIKELY, "oom-fragmentation");
	expect_sure(HELD("2.00", "1.10", "8.40", "0.10"), "oom-other-process", SURE_CERTAIN, NULL);
}

/* A failed assertion belongs to the run that printed it, also after a later run began. */
static void text__an_earlier_run_keeps_its_assertion(void **state)
{
	static const char text[] =
		"/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
		"thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n" FAILED(
			"9", "RuntimeError: CUDA error: device-side assert triggered") "\nAfter reinstalling I get:\n\n" DEVICES;

	(void)state;
	expect_sure(text, "tensor-device-mismatch", SURE_LIKELY, "label-out-of-range");
}

static void case__has_the_words_of_a_text_that_is_gone(void **state)
{
	static const char line[] = "AssertionError: Torch not compiled with CUDA enabled";
	struct casefile *c = xcalloc(1, sizeof(*c));
	struct text_log *l = read_log(line);
	const struct text_event *e;
	struct pool pool = {0};
	const struct word_table *words = words_get();
	size_t found = 0;

	(void)state;
	case_init(c, &pool);
	log_events(l, &e);
	text_observe(c, &(struct text_view){.log = l, .event = e});
	log_free(l);
	for (size_t i = 0; i < words->n; i++) {
		const struct text_hit *hit = case_hit(c, word_text(words, i));

		if (!AT(words->asked)[i])
			continue;
		if (!hit != !needle_matches(word_text(words, i), line, strlen(line)))
			fail_msg("%s: %s", word_text(words, i), hit ? "is not there" : "was not found");
		if (!hit)
			continue;
		found++;
		assert_string_equal(hit->text, line);
		assert_string_equal(hit->file, "log");
		assert_int_equal(hit->line, 1);
	}
	assert_true(found > 0);
	pool_release(&pool);
	free(c);
}

static void case__has_only_the_words_of_what_is_not_over(void **state)
{
	struct text_log *l = read_log("$ python a.py\n" CPU_ONLY "$ python a.py\n" DEVICES);
	const struct text_event *e;
	struct pool pool = {0};
	struct casefile *c = xcalloc(1, sizeof(*c));

	(void)state;
	case_init(c, &pool);
	assert_int_equal(log_events(l, &e), 2);
	text_observe(c, &(struct text_view){.log = l, .event = &e[1]});
	assert_non_null(case_hit(c, "Torch not compiled with CUDA enabled"));
	assert_non_null(case_hit(c, "Expected all tensors to be on the same device"));
	case_init(c, &pool);
	text_observe(c, &(struct text_view){
				.log = l, .event = &e[1], .past = log_past_runs(l, (struct text_past){0}, &e[1])});
	assert_null(case_hit(c, "Torch not compiled with CUDA enabled"));
	assert_non_null(case_hit(c, "Expected all tensors to be on the same device"));
	log_free(l);
	pool_release(&pool);
	free(c);
}

static void text__only_what_was_written_later_shows_that_a_program_went_on(void **state)
{
#define BAR(n) " 10%|1 | " n "/100 [00:01<00:09, 9.1it/s]\n"
	(void)state;
	expect_cause(BAR("10") DEVICES BAR("10") BAR("3"), "tensor-device-mismatch");	/* open bars, drawn again at the end */
	expect_cause(BAR("10") DEVICES BAR("11") BAR("12"), "none");
	expect_cause(BAR("10") FAILED("9", "PlanError: no triton plan") BAR("10"), "unknown");
	expect_cause("epoch 0 loss 2\n" DEVICES "epoch 1 loss 2\nepoch 2 loss 2\n", "none");
	expect_cause(DEVICES "epoch 1 loss 2\nepoch 2 loss 2\n", "tensor-device-mismatch");	/* standard output comes late */
	expect_cause("epoch 0 loss 2\n" LOST "epoch 1 loss 2\nepoch 2 loss 2\n", "illegal-access-out-of-bounds");
	/* times */
	expect_cause("2024-01-01 10:00:00 failed\n" DEVICES "2024-01-01 10:00:01 step 1\n2024-01-01 10:00:02 step 2\n",
		     "none");
	expect_cause("2024-01-01 10:00:00 failed\n" DEVICES "2024-01-01 09:00:01 step 1\n2024-01-01 09:00:02 step 2\n",
		     "tensor-device-mismatch");
	/* words of a traceback are no progress */
	expect_cause(FAILED("9", "RuntimeError: CUDA error: an illegal memory access was encountered")
		     "\nThe above exception was the direct cause of the following exception:\n\n"
											     "Traceback (most recent call last):\n  File \"a.py\", line 9, in f\n    raise E('epoch 3 failed') from e\n"
											     "E.Failed: epoch 3 failed\n",
		     "illegal-access-out-of-bounds");
#undef BAR
}

static void text__a_lost_context_leads_whatever_is_typed_next(void **state)
{
	(void)state;
	expect_sure(">>> f(x)\n" LOST ">>> f(y)\n" DTYPES, "illegal-access-out-of-bounds", SURE_CERTAIN, NULL);
	expect_sure(">>> f(x)\n" CPU_ONLY ">>> f(y)\n" DTYPES, "cpu-only-build", SURE_CERTAIN, NULL);
	expect_sure(">>> f(x)\n" DEVICES ">>> f(y)\n" DTYPES, "dtype-mismatch", SURE_LIKELY, "tensor-device-mismatch");
	expect_sure(">>> f(x)\n" DEVICES ">>> exit()\n$ python\n>>> f(y)\n" LOST, "illegal-access-out-of-bounds",
		    SURE_CERTAIN, NULL);
}

static void text__a_traceback_without_its_exception_is_unknown_if_it_is_about_gpus(void **state)
{
#define CUT(source) "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    " source "\n"
	(void)state;
	expect_cause(CUT("y = solve(x, gpu=True)"), "unknown");
	expect_cause(CUT("y = solve(x, gpu=True)") "...\n\nWhat is this?\n", "unknown");
	expect_cause(CUT("y = solve(x)"), "none");
	expect_cause(CUT("y = solve(x, gpu=True)") "step 1 loss 2\nstep 2 loss 2\n", "none");	/* the program went on */
	expect_cause(CUT("y = solve(x, gpu=True)") "KeyError: 'x'\n", "none");
	expect_cause(CUT("y = solve(x, gpu=True)") "EarlyStop: enough\n", "none");
	expect_cause("KeyError: 'x'\n\nThe above exception was the direct cause of the following exception:\n\n" CUT(
			     "y = solve(x, gpu=True)"),
		     "none");
	/* the line that raises it has the message */
	expect_sure(CUT("raise AssertionError(\"Torch not compiled with CUDA enabled\")"), "cpu-only-build",
		    SURE_LIKELY, NULL);
	expect_cause(CUT("raise AssertionError("), "none");
	expect_cause(CUT("raise "), "none");
#undef CUT
}

static void text__an_exception_that_speaks_of_a_gpu_is_never_nothing(void **state)
{
	static const char top[] = "Traceback (most recent call last):\n  File \"a.py\", line 9, in h\n    k()\n";
	static const char *const messages[] = {"FooError: 0 GPU blocks", "x.y.PlanError: triton gave up",
					       "RuntimeError: a bad VRAM page", "ValueError: bad nccl id"};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		snprintf(text, sizeof(text), "%s%s\n", top, messages[i]);
		expect_cause(text, "unknown");
	}
	snprintf(text, sizeof(text), "%sValueError: a chip of barracuda\n", top);
	expect_cause(text, "none");
}

/* A status with two possible causes, and nothing that decides between them: both are named. */
static void text__a_status_alone_has_both_candidates(void **state)
{
	static const char text[] = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n";
	struct text_log *l = read_log(text);
	struct verdict *v = verdict_of_text(l);
	char *json = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&json, &len);

	(void)state;
	report_json(f, v, false);
	fclose(f);
	assert_non_null(strstr(json, "\"certainty\":\"possible\""));
	assert_non_null(strstr(json, "{\"cause\":\"oom-masked-as-library-error\""));
	assert_non_null(strstr(json, "{\"cause\":\"driver-too-old\""));
	free(json);
	verdict_free(v);
	log_free(l);
}

static void text__a_footer_is_no_evidence(void **state)
{
	(void)state;
	expect_cause("ValueError: bad\nCUDA kernel errors might be asynchronously reported at some other API call\n"
		     "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n", "none");
}

static void codes__every_one_answers(void **state)
{
	static const char *const names[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) #driver, #runtime,
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
#define STATUS(family, number, name, note, causes) #name,
#include "kb/code_notes.def"
	};
	static const char *const causes[] = {
#define CODE_NOTE(code, note, causes) causes,
#include "kb/code_notes.def"
#define STATUS(family, number, name, note, causes) causes,
#include "kb/code_notes.def"
#define XID_NOTE(number, note, causes) causes,
#include "kb/code_notes.def"
	};
	struct code c;
	char word[32];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(!names[i][0] || code_find(&c, names[i]));
	for (int i = 1; i < 200; i++) {
		snprintf(word, sizeof(word), "Xid %d", i);
		assert_true(code_find(&c, word));
	}
	assert_false(code_find(&c, "train.log"));
	assert_false(code_find(&c, "12345"));
	/* every cause that is named has a file */
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		char list[256], *at = list, *id;

		snprintf(list, sizeof(list), "%s", causes[i]);
		while ((id = strsep(&at, ", ")) != NULL)
			if (id[0] && !kb_find(kb_get(), id))
				fail_msg("no cause '%s'", id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needles__find_what_a_plain_search_finds),
		cmocka_unit_test(needles__the_first_of_them_is_found_at_any_place),
		cmocka_unit_test(needles__all_in_a_line_are_found_once),
		cmocka_unit_test(needles__anchors_hold_a_line_at_its_ends),
		cmocka_unit_test(crash__names_the_library),
		cmocka_unit_test(stream__no_line_is_too_long),
		cmocka_unit_test(stream__does_not_depend_on_the_pieces),
		cmocka_unit_test(stream__passes_few_lines_on_for_a_word_that_is_everywhere),
		cmocka_unit_test(stream__passes_words_on_again_after_an_error),
		cmocka_unit_test(line__has_no_prefix_and_no_colors),
		cmocka_unit_test(line__a_file_may_name_its_rank),
		cmocka_unit_test(clothes__any_prefix_of_a_traceback_is_learned),
		cmocka_unit_test(clothes__a_prefix_is_learned_from_frames_alone),
		cmocka_unit_test(clothes__a_traceback_on_one_line_has_its_frames),
		cmocka_unit_test(clothes__a_line_has_as_many_parts_as_there_are),
		cmocka_unit_test(clothes__lines_cut_at_a_width_are_joined),
		cmocka_unit_test(clothes__markup_is_taken_off),
		cmocka_unit_test(clothes__what_looks_like_markup_stays),
		cmocka_unit_test(text__every_pair_of_a_code_and_words_agrees_or_not),
		cmocka_unit_test(text__numbers_that_are_not_about_the_words),
		cmocka_unit_test(text__a_message_that_contradicts_itself_proves_nothing),
		cmocka_unit_test(log__keeps_ranks_apart),
		cmocka_unit_test(log__counts_assertions),
		cmocka_unit_test(env__names_of_gpus_end_where_other_words_begin),
		cmocka_unit_test(gpu__is_known_with_more_words_than_its_name_has),
		cmocka_unit_test(snippet__is_what_was_typed_and_what_it_printed),
		cmocka_unit_test(oom__numbers_of_all_forms),
		cmocka_unit_test(text__the_first_error_counts),
		cmocka_unit_test(quoted__lines_that_mention_an_error),
		cmocka_unit_test(quoted__a_diff_ends_where_its_lines_end),
		cmocka_unit_test(text__what_was_handled_does_not_lead),
		cmocka_unit_test(restart__a_command_starts_a_program_and_a_look_does_not),
		cmocka_unit_test(text__the_last_run_that_failed_leads),
		cmocka_unit_test(text__another_process_is_certain_only_if_the_cache_is_not_enough),
		cmocka_unit_test(text__an_earlier_run_keeps_its_assertion),
		cmocka_unit_test(case__has_the_words_of_a_text_that_is_gone),
		cmocka_unit_test(case__has_only_the_words_of_what_is_not_over),
		cmocka_unit_test(text__only_what_was_written_later_shows_that_a_program_went_on),
		cmocka_unit_test(text__a_traceback_without_its_exception_is_unknown_if_it_is_about_gpus),
		cmocka_unit_test(text__a_lost_context_leads_whatever_is_typed_next),
		cmocka_unit_test(text__an_exception_that_speaks_of_a_gpu_is_never_nothing),
		cmocka_unit_test(text__a_status_alone_has_both_candidates),
		cmocka_unit_test(text__a_footer_is_no_evidence),
		cmocka_unit_test(codes__every_one_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
