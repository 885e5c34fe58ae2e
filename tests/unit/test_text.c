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

#include "base/mem.h"
#include "input/text/observe.h"
#include "write/code.h"
#include "judge/verdict.h"
#include "write/report.h"
#include "rules/kb.h"
#include "input/text/crash.h"
#include "input/text/line.h"
#include "input/text/log.h"
#include "base/needles.h"
#include "input/text/stream.h"

/* ---- needles ---------------------------------------------------------------------------------------- */

static void count_hit(void *arg, size_t which)
{
	((unsigned *)arg)[which]++;
}

static void needles__find_what_a_plain_search_finds(void **state)
{
	static const char *const words[] = {"CUDA error",  "undefined symbol: ", "out of memory",
					    "error: CUDA", "aaaaaaaa",		 "via P2P*CUMEM"};
	enum { N = sizeof(words) / sizeof(words[0]) };
	struct needles *d = needles_new(words, N, NEEDLE_MIN);
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
		needles_in_line(d, line, strlen(line), count_hit, found);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(found[i], needle_matches(words[i], line, strlen(line)) ? 1 : 0);
	}
	needles_free(d);
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
	struct needles *d = needles_new(words, 4, NEEDLE_MIN);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned found[4] = {0};

		needles_in_line(d, cases[i].line, strlen(cases[i].line), count_hit, found);
		assert_memory_equal(found, cases[i].found, sizeof(found));
	}
	assert_true(needle_ok("^Killed$"));
	assert_false(needle_ok("^Kill$"));
	needles_free(d);
}

/* ---- crashes ---------------------------------------------------------------------------------------- */

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

/* ---- the stream ------------------------------------------------------------------------------------- */

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

/* The same text in pieces of any size gives the same lines. */
static void stream__does_not_depend_on_the_pieces(void **state)
{
	static const char *const words[] = {"CUDA error: here"};
	static const size_t pieces[] = {1 << 20, 65536, 4093, 700001};
	struct needles *d = needles_new(words, 1, NEEDLE_FAST);
	size_t size = 3u << 20, n = 0, first = 0;
	char *text = xmalloc(size + 64);

	(void)state;
	for (unsigned i = 0; n < size; i++)
		n += (size_t)snprintf(text + n, size + 64 - n,
				      i % 9973 == 5000 ? "CUDA error: here %u\n" : "a line of no interest %u\n", i);
	for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
		struct seen seen = {0};
		struct stream *st = stream_new(d, see_line, &seen);

		stream_hasty(st);
		for (size_t at = 0; at < n;) {
			size_t room;
			char *to = stream_room(st, &room);
			size_t part = pieces[k] < n - at ? pieces[k] : n - at;

			part = part < room ? part : room;
			memcpy(to, text + at, part);
			stream_filled(st, part);
			at += part;
		}
		stream_end(st);
		assert_true(seen.with >= 10);
		first = first ? first : seen.with;
		assert_int_equal(seen.with, first);
		assert_true(seen.n < 40000);	/* most were skipped */
		stream_free(st);
	}
	free(text);
	needles_free(d);
}

/* ---- lines ------------------------------------------------------------------------------------------ */

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
}

/* ---- whole texts ------------------------------------------------------------------------------------ */

static struct text_log *read_log(const char *text)
{
	const char **words;
	size_t n = kb_words(kb_get(), &words);
	struct text_log *l = log_new(words, n);

	free(words);
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
	assert_int_equal(log_asserts(l, &a), 1);
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
	text_observe(f, l, log_events(l, &e) ? &e[0] : NULL);
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

/* ---- codes ------------------------------------------------------------------------------------------ */

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
		cmocka_unit_test(needles__anchors_hold_a_line_at_its_ends),
		cmocka_unit_test(crash__names_the_library),
		cmocka_unit_test(stream__does_not_depend_on_the_pieces),
		cmocka_unit_test(line__has_no_prefix_and_no_colors),
		cmocka_unit_test(log__keeps_ranks_apart),
		cmocka_unit_test(log__counts_assertions),
		cmocka_unit_test(env__names_of_gpus_end_where_other_words_begin),
		cmocka_unit_test(gpu__is_known_with_more_words_than_its_name_has),
		cmocka_unit_test(oom__numbers_of_all_forms),
		cmocka_unit_test(text__the_first_error_counts),
		cmocka_unit_test(text__a_status_alone_has_both_candidates),
		cmocka_unit_test(text__a_footer_is_no_evidence),
		cmocka_unit_test(codes__every_one_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
