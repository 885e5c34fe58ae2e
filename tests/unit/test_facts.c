/* SPDX-License-Identifier: Apache-2.0
 * Facts: which line is the user's, which failures belong together, which of them ended the program, what
 * messages say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "find/failure/place.h"
#include "find/failure/incident.h"
#include "case/line.h"
#include "case/message.h"
#include "case/source.h"
#include "judge.h"

#define G(x, y, z) ((const uint32_t[3]){x, y, z})

static const char torch_lib[] = "/src/pytorch/torch/lib/libtorch_cuda.so";

static void place__whose_code_a_file_is(void **state)
{
	static const struct { const char *file; enum owner owner; } rows[] = {
		{"train.py", OWNER_USER},
		{"/home/me/project/train.py", OWNER_USER},
		{"/home/me/torch/train.py", OWNER_USER},
		{"<ipython-input-3-abc>", OWNER_USER},
		{"/tmp/ipykernel_1234/99.py", OWNER_USER},
		{"/venv/lib/python3.12/site-packages/torch/nn/functional.py", OWNER_TORCH},
		{"/usr/lib/python3/dist-packages/torch/_tensor.py", OWNER_TORCH},
		{"/src/pytorch/torch/nn/modules/conv.py", OWNER_TORCH},
		{"/venv/lib/python3.12/site-packages/triton/runtime/jit.py", OWNER_TRITON},
		{"/venv/lib/python3.12/site-packages/cupy/_core/core.py", OWNER_CUPY},
		{"/venv/lib/python3.12/site-packages/transformers/trainer.py", OWNER_LIBRARY},
		{"/venv/lib/python3.12/site-packages/torchvision/ops.py", OWNER_LIBRARY},
		{"/usr/lib/python3.12/threading.py", OWNER_STDLIB},
		{"/usr/lib64/python3.9/runpy.py", OWNER_STDLIB},
		{"/usr/local/lib/python3.13t/runpy.py", OWNER_STDLIB},
		{"/home/me/lib/python3.x/mine.py", OWNER_USER},
		{"cupy_backends/cuda/api/runtime.pyx", OWNER_CUPY},
		{"sklearn/x.pyx", OWNER_LIBRARY},
		{"<string>", OWNER_GENERATED},
		{"<frozen runpy>", OWNER_GENERATED},
		{"<eval_with_key>.0", OWNER_GENERATED},
		{"/tmp/torchinductor_me/ab/cabc.py", OWNER_GENERATED},
		{"/home/me/.triton/cache/x/y.py", OWNER_GENERATED},
		{"", OWNER_GENERATED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (frame_owner(rows[i].file, torch_lib) != rows[i].owner)
			fail_msg("%s", rows[i].file);
}

static void place__the_program_in_a_command_line(void **state)
{
	static const struct { const char *cmdline, *text; } rows[] = {
		{"python3 -c import x", "import x"},
		{"python3 -c \nimport x", "\nimport x"},
		{"python3 -Buc import x", "import x"},
		{"python3 -cimport x", "import x"},
		{"python3 -W ignore -X dev -Xutf8 -u -c a.c()", "a.c()"},
		{"python3 -c from multiprocessing.spawn import spawn_main; spawn_main()", NULL},
		{"python3 -c ", NULL},
		{"python3 -c", NULL},
		{"python3 -X", NULL},
		{"python3 - -c x", NULL},
		{"python3 train.py -c x", NULL},
		{"python3 -m torch.distributed.run -c x", NULL},
		{"python3", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text = command_text(rows[i].cmdline);

		if (!text != !rows[i].text || (text && strcmp(text, rows[i].text)))
			fail_msg("%s: %s", rows[i].cmdline, text ? text : "no text");
	}
}

static void place__the_text_must_define_the_function(void **state)
{
	static const char text[] =
		"import x\n@x.compile\n@y\ndef step(n):\n  f = lambda: n\nclass Net:\n  async def run(self): pass";
	static const struct { const char *function; uint32_t first; bool cut, defined; } rows[] = {
		{"step", 2, false, true},     {"step", 4, false, true},	     {"step", 5, false, false},
		{"ste", 4, false, false},     {"Net", 6, false, true},	     {"run", 7, false, true},
		{"<lambda>", 5, false, true}, {"<lambda>", 4, false, false}, {"__init__", 2, false, false},
		{"far", 9, false, false},     {"far", 9, true, true},	     {"step", 0, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (text_defines(text, rows[i].cut, rows[i].function, rows[i].first) != rows[i].defined)
			fail_msg("%s at %u", rows[i].function, rows[i].first);
}

static void place__innermost_frame_of_the_user_else_a_library(void **state)
{
	struct tb b;
	struct trace *t;
	struct place p;
	uint32_t mine, lib, none;

	(void)state;
	tb_init(&b);
	mine = tb_stack(&b, TORCH "nn/functional.py:9:relu",
			"/venv/lib/python3.12/site-packages/timm/x.py:3:f", "model.py:7:forward",
			"train.py:1:<module>", NULL);
	lib = tb_stack(&b, TORCH "nn/functional.py:9:relu",
		       "/venv/lib/python3.12/site-packages/timm/x.py:3:f",
		       "/usr/lib/python3.12/threading.py:5:run", NULL);
	none = tb_stack(&b, TORCH "nn/functional.py:9:relu", NULL);
	t = tb_trace(&b);
	assert_true(place_of_stack(t, mine, &p));
	assert_string_equal(p.file, "model.py");
	assert_int_equal(p.line, 7);
	assert_false(p.library);
	assert_true(place_of_stack(t, lib, &p));
	assert_string_equal(p.function, "f");
	assert_true(p.library);
	assert_false(place_of_stack(t, none, &p));
	assert_false(place_of_stack(t, 0, &p));
	assert_null(p.file);
	assert_string_equal(stack_torch_op(t, mine), "relu");
	assert_null(stack_torch_op(t, 0));
	trace_free(t);
}

static void place__qualified_names_and_decorators(void **state)
{
	char name[] = "/tmp/cuwhy-test-XXXXXX.py";
	struct pool pool = {0};
	struct place p = {.file = name, .line = 2, .first_line = 2};
	struct source_book book = {.cwd = ""};
	int fd = mkstemps(name, 3);

	(void)state;
	assert_string_equal(function_base("Model.forward"), "forward");
	assert_string_equal(function_base("make.<locals>.run"), "run");
	assert_string_equal(function_base("step"), "step");
	assert_string_equal(function_base("<module>"), "<module>");
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x\n@one\n@two(\n  3)\ndef f():\n    g()\n", 36), 36);
	close(fd);
	place_skip_decorators(&p, &book, &pool);
	assert_int_equal(p.line, 5);
	p.line = p.first_line = 5;	/* def f(): g() on one line stays where it is */
	place_skip_decorators(&p, &book, &pool);
	assert_int_equal(p.line, 5);
	p.line = 6;
	place_skip_decorators(&p, &book, &pool);
	assert_int_equal(p.line, 6);
	unlink(name);
	source_book_release(&book);
	pool_release(&pool);
}

static void place__source_text_is_optional(void **state)
{
	char name[] = "/tmp/cuwhy-test-XXXXXX.py";
	struct pool pool = {0};
	struct place p = {.file = name, .line = 2};
	struct source_book book = {.cwd = ""}, tmp = {.cwd = "/tmp"};
	FILE *out;
	int fd = mkstemps(name, 3);

	(void)state;
	assert_true(fd >= 0);
	out = fdopen(fd, "w");
	fputs("one\n\t two\033 = 2\n", out);
	fclose(out);
	assert_string_equal(place_source(&p, &book, &pool), "two? = 2");
	p.file = name + 5;
	assert_string_equal(place_source(&p, &tmp, &pool), "two? = 2");
	p.line = 9;
	assert_null(place_source(&p, &tmp, &pool));
	p.file = "/nonexistent";
	assert_null(place_source(&p, &book, &pool));
	p.file = "/dev";
	assert_null(place_source(&p, &book, &pool));
	p.file = "/etc/passwd";		/* not named like source code, whatever it is */
	assert_null(place_source(&p, &book, &pool));
	unlink(name);
	p = (struct place){.file = name, .line = 2};	/* it has been read before: the file is not needed again */
	assert_string_equal(place_source(&p, &book, &pool), "two? = 2");
	source_book_release(&tmp);
	source_book_release(&book);
	pool_release(&pool);
}

static void message__numbers_sizes_and_codes(void **state)
{
	double n;

	(void)state;
	assert_true(message_number("allocating 4,398,046,511,104 bytes", "allocating ", &n));
	assert_true(n == 4398046511104.0);
	assert_false(message_number("allocating many", "allocating ", &n));
	assert_true(message_bytes("Tried to allocate 1.50 GiB. GPU 0", "allocate ", &n));
	assert_true(n == 1.5 * (1 << 30));
	assert_true(message_bytes("of 512 bytes", "of ", &n));
	assert_false(message_bytes("of 512 apples", "of ", &n));
	assert_int_equal(message_code("CUDA error: invalid argument"), 1);
	assert_int_equal(message_code("CUDA error: invalid configuration argument"), 9);
	assert_int_equal(message_code("Triton Error [CUDA]: invalid argument"), 1);
	assert_int_equal(message_code("CUDA_ERROR_INVALID_VALUE: invalid argument"), 1);
	assert_int_equal(message_code("cudaErrorInvalidDevice: invalid device ordinal"), 101);
	assert_int_equal(message_code("CUDA out of memory. Tried to allocate 2.00 GiB"), 2);
	assert_int_equal(message_code("CUDA error: device-side assert triggered"), 710);
	assert_int_equal(message_code("Invalid argument: no such file"), 0);
	assert_false(message_has_code("an invalid argument was given", 1));
}

static void message__the_drivers_log_tells_of_a_launch(void **state)
{
	struct pool pool = {0};
	struct casefile f;

	(void)state;
	case_init(&f, &pool);
	facts_from_message(&f, "Requested block size of 1056 threads exceeds device maximum 1024");
	assert_string_equal(fact_text(&f, FACT_launch_broken), "block threads");
	assert_true(fact_number(&f, FACT_launch_broken_value, 0) == 1056);
	case_init(&f, &pool);
	facts_from_message(&f, "Grid Dimension Y must be nonzero");
	assert_string_equal(fact_text(&f, FACT_launch_zero), "grid y");
	case_init(&f, &pool);
	facts_from_message(&f, "Requested cooperative grid dimensions (100000,1,1) exceed occupancy limit "
			       "for this kernel on this "
			       "device of 264 blocks");
	assert_true(fact_number(&f, FACT_launch_resident, 0) == 264);
	pool_release(&pool);
}

static void message__an_oom_text_tells_who_holds_what(void **state)
{
	struct pool pool = {0};
	struct casefile f;

	(void)state;
	case_init(&f, &pool);
	facts_from_message(
		&f,
		"CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB of "
		"which 10.00 GiB is free. Including non-PyTorch memory, this process has 69.00 GiB memory in "
		"use. Of "
		"the allocated memory 60.00 GiB is allocated by PyTorch, and 8.00 GiB is reserved by PyTorch "
		"but unallocated.");
	assert_true(fact_number(&f, FACT_oom_request, 0) == 20.0 * (1 << 30));
	assert_true(fact_number(&f, FACT_oom_free, 0) == 10.0 * (1 << 30));
	assert_true(fact_number(&f, FACT_oom_torch_allocated, 0) == 60.0 * (1 << 30));
	assert_true(fact_number(&f, FACT_oom_torch_reserved, 0) == 68.0 * (1 << 30));
	assert_true(fact_number(&f, FACT_oom_total, 0) > 79.0 * (1 << 30));
	pool_release(&pool);
}

static size_t count_incidents(struct tb *b)
{
	struct pool pool = {0};
	struct incidents all;
	struct trace *t = tb_trace(b);
	size_t n;

	incidents_collect(&all, t, &pool);
	n = all.n;
	pool_release(&pool);
	trace_free(t);
	return n;
}

static void join__driver_runtime_and_pytorch_are_one(void **state)
{
	struct tb b;
	uint32_t s;

	(void)state;
	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	tb_fail_launch(&b, 1, s, 0, G(1, 70000, 1), G(1, 1, 1), 0);
	tb_fail(&b, CW_SRC_RUNTIME, 9, s);
	tb_fail(&b, CW_SRC_TORCH_CUDA, 9, s);
	assert_int_equal(count_incidents(&b), 1);
}

static void join__two_lines_are_two(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_RUNTIME, 101, tb_stack(&b, "a.py:1:f", NULL));
	tb_fail(&b, CW_SRC_TORCH_CUDA, 101, tb_stack(&b, "a.py:1:f", NULL));
	tb_fail(&b, CW_SRC_DRIVER, 101, tb_stack(&b, "a.py:2:f", NULL));
	assert_int_equal(count_incidents(&b), 2);
}

static void join__two_threads_are_two(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail_launch(&b, 1, 0, 0, G(1, 70000, 1), G(1, 1, 1), 0);
	tb_fail(&b, CW_SRC_TORCH_CUDA, 1, 0)->tid = 2;
	assert_int_equal(count_incidents(&b), 2);
}

static void join__harmless_codes_are_left_out(void **state)
{
	static const uint32_t codes[] = {600, 4, 201, 202, 704, 712, 713};
	struct tb b;

	(void)state;
	tb_init(&b);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		tb_fail(&b, CW_SRC_DRIVER, codes[i], 0)->api = 120;
	tb_fail(&b, CW_SRC_DRIVER, 1, 0)->api = 143;	/* cuPointerGetAttribute: a probe */
	assert_int_equal(count_incidents(&b), 0);
}

static void expect_end(struct tb *b, int exit, const char *cause, size_t notes)
{
	struct verdict *v = judge_end(b, exit, 0);

	assert_string_equal(verdict_cause(v), cause);
	assert_int_equal(verdict_notes(v), notes);
	verdict_free(v);
}

static void refused_launch(struct tb *b, const char *line)
{
	uint32_t s = tb_stack(b, line, NULL);

	tb_fail_launch(b, 1, s, 0, G(1, 70000, 1), G(1, 1, 1), 0);
	tb_fail(b, CW_SRC_TORCH_CUDA, 1, s);
}

static void handled__an_end_with_0_makes_notes_of_all(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	refused_launch(&b, "a.py:1:f");
	tb_fail(&b, CW_SRC_DRIVER, 700, 0)->api = 32;
	expect_end(&b, 0, "none", 2);
}

static void handled__another_exception_ended_the_program(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	refused_launch(&b, "a.py:1:f");
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:9:f", NULL), "ValueError", "no such file");
	expect_end(&b, 1, "none", 1);
}

static void handled__but_chained_from_it_is_not(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	refused_launch(&b, "a.py:1:f");
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:9:f", NULL), "ValueError", "step failed");
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:1:f", NULL), "AcceleratorError",
		     "CUDA error: invalid argument")
		->python_chain = 1;
	expect_end(&b, 1, "launch-config-grid-limit", 0);
}

static void handled__the_exception_names_the_later_of_two(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_RUNTIME, 101, tb_stack(&b, "a.py:1:f", NULL));
	tb_fail(&b, CW_SRC_TORCH_CUDA, 101, tb_stack(&b, "a.py:1:f", NULL));
	refused_launch(&b, "a.py:5:f");
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:5:f", NULL), "AcceleratorError",
		     "CUDA error: invalid argument");
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "launch-config-grid-limit");
	assert_int_equal(json_array_size(json_object_get(j, "notes")), 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "noticed"), "line")), 5);
	json_decref(j);
}

static void handled__an_exception_on_the_failing_line_without_words(void **state)
{
	struct tb b;
	uint32_t s;

	(void)state;
	tb_init(&b);
	s = tb_stack(&b, "a.py:1:f", NULL);
	tb_fail_launch(&b, 1, s, 0, G(1, 70000, 1), G(1, 1, 1), 0);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:1:f", "a.py:30:<module>", NULL), "LaunchError",
		     "");
	expect_end(&b, 1, "launch-config-grid-limit", 0);
}

static void handled__a_sticky_error_never_is(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_DRIVER, 700, tb_stack(&b, "a.py:1:f", NULL))->api = 32;
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:9:f", NULL), "ValueError", "other");
	expect_end(&b, 1, "illegal-access-out-of-bounds", 0);
}

static void handled__pytorchs_own_retry_is_nothing(void **state)
{
	struct cw_failure *f;
	struct tb b;

	(void)state;
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 2, tb_stack(&b, "a.py:1:f", NULL));
	f->api = 120;
	f->request_bytes = 1 << 20;
	expect_end(&b, 0, "none", 0);
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_DRIVER, 2, tb_stack(&b, "a.py:1:f", NULL));
	f->api = 120;
	f->request_bytes = 1 << 20;
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:9:f", NULL), "ValueError", "other");
	expect_end(&b, 1, "none", 0);
}

/* A request that PyTorch's retry satisfied, and one of the same size, by the same function of PyTorch, that it did not. */
static void handled__a_retry_is_not_of_the_next_request(void **state)
{
	static const char *const lines[] = {"a.py:9:f", "a.py:12:f"};
	struct cw_failure *f = NULL;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	for (size_t i = 0; i < 2; i++) {
		uint32_t s = tb_stack(&b, "/venv/lib/python3.12/site-packages/torch/nn/modules/conv.py:548:_conv_forward", lines[i], NULL);

		f = tb_fail(&b, CW_SRC_DRIVER, 2, s);
		f->api = 120;
		f->request_bytes = 9ull << 30;
		if (i) {
			f = tb_fail(&b, CW_SRC_TORCH_OOM, 2, s);
			f->request_bytes = 9ull << 30;
		}
	}
	tb_fail_text(&b, CW_SRC_PYTHON, f->stack, "OutOfMemoryError", "CUDA out of memory");
	j = judge(&b, 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 12);
	json_decref(j);
}

/* torch.library tries one reading of a key, then another: two checks of PyTorch, and nothing of CUDA */
static void handled__two_checks_of_pytorch_are_no_cuda_failure(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "parse", "could not parse dispatch key: cpu");
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "parse", "could not parse dispatch key: default");
	expect_end(&b, 0, "none", 0);
}

static void handled__without_an_exception_the_last_one_raised(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_fail(&b, CW_SRC_TORCH_CUDA, 101, tb_stack(&b, "a.py:1:f", NULL));
	refused_launch(&b, "a.py:5:f");
	tb_fail(&b, CW_SRC_DRIVER, 400, tb_stack(&b, "a.py:7:f", NULL))->api = 41;
	j = judge(&b, 3);	/* by sys.exit(3): one that ends with 1 has an exception */
	assert_string_equal(field(j, "cause"), "launch-config-grid-limit");
	assert_int_equal(json_array_size(json_object_get(j, "notes")), 2);
	json_decref(j);
}

static void handled__a_refusal_that_the_thread_survived(void **state)
{
	static const char text[] = "expected scalar type Long but found Float";
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "f", text);
	expect_end(&b, 1, "dtype-mismatch", 0);
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "f", text);
	tb_launch(&b, 1, 0);
	expect_end(&b, 1, "none", 0);
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "f", text);
	expect_end(&b, 0, "none", 0);
}

static void handled__a_c_program_dies_of_its_first_failure(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	tb_plain_program(&b);
	tb_fail_launch(&b, 1, 0, 0, G(1, 70000, 1), G(1, 1, 1), 0);
	b.ticks += 5000000000ull;
	tb_fail(&b, CW_SRC_DRIVER, 400, 0)->api = 41;
	expect_end(&b, 1, "launch-config-grid-limit", 1);
}

static void handled__somebody_killed_the_program(void **state)
{
	struct verdict *v;
	struct tb b;

	(void)state;
	tb_init(&b);
	refused_launch(&b, "a.py:1:f");
	v = judge_end(&b, -1, 15);
	assert_string_equal(verdict_cause(v), "none");
	assert_int_equal(verdict_notes(v), 1);
	verdict_free(v);
	tb_init(&b);
	refused_launch(&b, "a.py:1:f");
	v = judge_end(&b, -1, 6);
	assert_string_equal(verdict_cause(v), "launch-config-grid-limit");
	verdict_free(v);
}

/* A lookup of a kernel that is not there for this GPU: cuLibraryGetKernel, called by `library`. */
static struct cw_failure *lookup(struct tb *b, const char *library, uint32_t stack)
{
	struct cw_failure *f = tb_fail(b, CW_SRC_DRIVER, 209, stack);

	f->api = 97;
	f->count = 4;
	snprintf(f->library, sizeof(f->library), "%s", library);
	return f;
}

#define NCCL   "/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
#define RUNTIME "/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13"
#define FAST   "/venv/lib/python3.12/site-packages/fast_ops/_C.abi3.so"

/* NCCL 2.28.9 on an H200: what it finds is used, what it does not find is not needed */
static void lookup__nvidias_libraries_report_what_they_cannot_do_without(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	lookup(&b, NCCL, tb_stack(&b, "nccl1.py:3:<module>", NULL));
	expect_end(&b, 0, "none", 0);
	tb_init(&b);
	lookup(&b, FAST, tb_stack(&b, "a.py:3:<module>", NULL));
	expect_end(&b, 0, "none", 1);
	tb_init(&b);
	lookup(&b, "/opt/libncclx/fast.so", tb_stack(&b, "a.py:3:<module>", NULL));
	expect_end(&b, 0, "none", 1);
}

/* A launch has its caller's name, not the runtime's. */
static void lookup__the_runtime_asks_outside_of_a_launch(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	lookup(&b, RUNTIME, tb_stack(&b, "a.py:3:<module>", NULL));
	expect_end(&b, 0, "none", 0);
}

static void lookup__a_library_takes_stock(void **state)
{
	struct tb b;

	(void)state;
	tb_init(&b);
	lookup(&b, FAST, tb_stack(&b, "a.py:3:<module>", NULL))->found_beside = 2;
	expect_end(&b, 0, "none", 0);
	tb_init(&b);
	lookup(&b, FAST, tb_stack(&b, "a.py:3:<module>", NULL))->found_beside = 1;
	expect_end(&b, 0, "none", 1);
}

static void lookup__that_ends_the_program_is_told(void **state)
{
	static const char *const text[] = {
		"NCCL error: unhandled cuda error 'no kernel image is available for execution on the device'",
		"cannot initialize"};
	struct tb b;
	uint32_t s;

	(void)state;
	for (int k = 0; k < 2; k++) {
		tb_init(&b);
		s = tb_stack(&b, "a.py:3:<module>", NULL);
		lookup(&b, NCCL, s);
		tb_fail_text(&b, CW_SRC_PYTHON, s, "DistBackendError", text[k]);
		expect_end(&b, 1, "extension-arch-missing", 0);
	}
	tb_init(&b);	/* a library's own check calls exit(1) */
	lookup(&b, RUNTIME, tb_stack(&b, "a.py:3:<module>", NULL));
	expect_end(&b, 1, "arch-not-in-wheel", 0);
	tb_init(&b);	/* PyTorch's check raised, and the program went on */
	s = tb_stack(&b, "a.py:3:<module>", NULL);
	lookup(&b, RUNTIME, s);
	tb_fail(&b, CW_SRC_TORCH_CUDA, 209, s);
	expect_end(&b, 0, "none", 1);
}

/* The thread made other calls after it: what ended the program, on the same line, is something else. */
static void lookup__that_the_library_survived_is_not_blamed(void **state)
{
	struct tb b;
	uint32_t s;

	(void)state;
	for (int k = 0; k < 3; k++) {
		tb_init(&b);
		s = tb_stack(&b, "a.py:3:<module>", NULL);
		lookup(&b, NCCL, s);
		if (k == 0)
			tb_call(&b, 134, 1, s);		/* cuMemCreate */
		else
			tb_launch(&b, 1, s);
		if (k < 2)
			tb_fail_text(&b, CW_SRC_PYTHON, s, "DistBackendError", "connection refused");
		expect_end(&b, 1, "none", 0);
	}
	tb_init(&b);	/* cleaning up is not going on */
	s = tb_stack(&b, "a.py:3:<module>", NULL);
	lookup(&b, NCCL, s);
	tb_call(&b, 125, 1, s);		/* cuMemFree_v2 */
	tb_fail_text(&b, CW_SRC_PYTHON, s, "DistBackendError", "cannot initialize");
	expect_end(&b, 1, "extension-arch-missing", 0);
}

static void handled__no_trace_and_no_failure_is_none(void **state)
{
	struct process_end end = {.pid = 7, .status_known = true, .exit = 3};
	struct verdict *v = verdict_of_process(NULL, &end);
	struct tb b;

	(void)state;
	assert_string_equal(verdict_cause(v), "none");
	verdict_free(v);
	tb_init(&b);
	expect_end(&b, 1, "none", 0);
}

/* ---- backward -------------------------------------------------------------------------------------------
 */

static void backward__the_forward_line_and_the_line_that_called(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_launch(&b, 1,
		  tb_stack(&b, TORCH "autograd/__init__.py:9:backward", TORCH "_tensor.py:8:backward",
			   "train.py:50:main", NULL));
	f = tb_fail_launch(&b, 1, 0, 0, G(1, 70000, 1), G(1, 1, 1), 0);
	f->tid = 2;
	f->forward_stack =
		tb_stack(&b, TORCH "nn/functional.py:9:pad", "model.py:12:forward", "train.py:49:main", NULL);
	f->node_name = tb_string(&b, "_ZTVN5torch8autograd9generated12MulBackward0E");
	j = judge(&b, 1);
	assert_string_equal(field(json_object_get(j, "where"), "file"), "model.py");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "backward"), "line")), 50);
	assert_string_equal(field(j, "node"), "MulBackward0");
	json_decref(j);
}

static void backward__an_oom_is_where_backward_was_called(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	f = tb_fail(&b, CW_SRC_TORCH_OOM, 2, 0);
	f->tid = 2;
	f->request_bytes = 1 << 30;
	f->forward_stack = tb_stack(&b, "model.py:12:forward", NULL);
	tb_fail_text(&b, CW_SRC_PYTHON,
		     tb_stack(&b, TORCH "autograd/__init__.py:9:backward", "train.py:50:main", NULL),
		     "OutOfMemoryError", "CUDA out of memory.");
	j = judge(&b, 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 50);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "forward"), "line")), 12);
	json_decref(j);
}

static void backward__a_custom_backward_is_its_own_line(void **state)
{
	struct cw_failure *f;
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	f = tb_fail_launch(&b, 1,
			   tb_stack(&b, "ops.py:77:backward", TORCH "autograd/function.py:3:apply", NULL), 0,
			   G(1, 70000, 1), G(1, 1, 1), 0);
	f->forward_stack = tb_stack(&b, "model.py:12:forward", NULL);
	j = judge(&b, 1);
	assert_string_equal(field(json_object_get(j, "where"), "file"), "ops.py");
	json_decref(j);
}

/* ---- the list
 * ---------------------------------------------------------------------------------------------- */

static void facts__the_list_for_writers_of_causes_has_every_fact_once(void **state)
{
	char *text = NULL, row[160];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	facts_document(out);
	fclose(out);
	for (int i = 0; i < FACT_COUNT; i++) {
		const char *first;

		snprintf(row, sizeof(row), "`%s`", fact_name(i));
		first = strstr(text, row);
		assert_non_null(first);
		/* the JSON key, which may be the same word, is in the same row */
		first = strchr(first, '\n');
		assert_null(strstr(first, row));
	}
	free(text);
}

static void facts__names_are_unique_and_found(void **state)
{
	(void)state;
	for (int i = 0; i < FACT_COUNT; i++)
		assert_int_equal(fact_find(fact_name(i), strlen(fact_name(i))), i);
	assert_int_equal(fact_find("no.such", 7), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place__whose_code_a_file_is),
		cmocka_unit_test(place__the_program_in_a_command_line),
		cmocka_unit_test(place__the_text_must_define_the_function),
		cmocka_unit_test(place__innermost_frame_of_the_user_else_a_library),
		cmocka_unit_test(place__qualified_names_and_decorators),
		cmocka_unit_test(place__source_text_is_optional),
		cmocka_unit_test(message__numbers_sizes_and_codes),
		cmocka_unit_test(message__the_drivers_log_tells_of_a_launch),
		cmocka_unit_test(message__an_oom_text_tells_who_holds_what),
		cmocka_unit_test(join__driver_runtime_and_pytorch_are_one),
		cmocka_unit_test(join__two_lines_are_two),
		cmocka_unit_test(join__two_threads_are_two),
		cmocka_unit_test(join__harmless_codes_are_left_out),
		cmocka_unit_test(handled__an_end_with_0_makes_notes_of_all),
		cmocka_unit_test(handled__another_exception_ended_the_program),
		cmocka_unit_test(handled__but_chained_from_it_is_not),
		cmocka_unit_test(handled__the_exception_names_the_later_of_two),
		cmocka_unit_test(handled__an_exception_on_the_failing_line_without_words),
		cmocka_unit_test(handled__a_sticky_error_never_is),
		cmocka_unit_test(handled__pytorchs_own_retry_is_nothing),
		cmocka_unit_test(handled__a_retry_is_not_of_the_next_request),
		cmocka_unit_test(handled__two_checks_of_pytorch_are_no_cuda_failure),
		cmocka_unit_test(handled__without_an_exception_the_last_one_raised),
		cmocka_unit_test(handled__a_refusal_that_the_thread_survived),
		cmocka_unit_test(handled__a_c_program_dies_of_its_first_failure),
		cmocka_unit_test(handled__somebody_killed_the_program),
		cmocka_unit_test(lookup__nvidias_libraries_report_what_they_cannot_do_without),
		cmocka_unit_test(lookup__the_runtime_asks_outside_of_a_launch),
		cmocka_unit_test(lookup__a_library_takes_stock),
		cmocka_unit_test(lookup__that_ends_the_program_is_told),
		cmocka_unit_test(lookup__that_the_library_survived_is_not_blamed),
		cmocka_unit_test(handled__no_trace_and_no_failure_is_none),
		cmocka_unit_test(backward__the_forward_line_and_the_line_that_called),
		cmocka_unit_test(backward__an_oom_is_where_backward_was_called),
		cmocka_unit_test(backward__a_custom_backward_is_its_own_line),
		cmocka_unit_test(facts__the_list_for_writers_of_causes_has_every_fact_once),
		cmocka_unit_test(facts__names_are_unique_and_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
