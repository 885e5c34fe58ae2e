/* SPDX-License-Identifier: Apache-2.0
 * The writers: the keys of the JSON contract, the shape of the text, runs of several processes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "show/report.h"
#include "show/report_wrap.h"
#include "find/fault/culprit.h"
#include "judge.h"

#define G(x, y, z) ((const uint32_t[3]){x, y, z})

static struct verdict *refused_on(uint32_t tid, int exit)
{
	struct cw_failure *f;
	struct tb b;
	uint32_t s;

	tb_init(&b);
	s = tb_stack(&b, USER, NULL);
	f = tb_fail_launch(&b, 1, s, tb_function(&b, "_Z4fillPfl"), G(1, 70000, 1), G(32, 1, 1), 16);
	f->stream = 7;
	f->tid = tid ? tid : b.h->pid;
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "train.py:41:<module>", NULL), "RuntimeError",
		     "Triton Error [CUDA]: invalid argument");
	return judge_end(&b, exit, 0);
}

static struct verdict *refused(int exit)
{
	return refused_on(0, exit);
}

static char *text_of(const struct verdict *v, const struct text_style *style)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	report_text(out, v, style);
	fclose(out);
	return text;
}

static void contract(const json_t *j)
{
	static const char *const keys[] = {
		"schema", "cause",  "certainty",  "title",    "error", "where",	  "noticed", "kernel",
		"fault",  "memory", "candidates", "evidence", "fix",   "process", "others",  "notes",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!json_object_get(j, keys[i]))
			fail_msg("no key %s", keys[i]);
	assert_int_equal(json_integer_value(json_object_get(j, "schema")), 1);
	assert_true(json_is_array(json_object_get(j, "candidates")));
	assert_true(json_is_array(json_object_get(j, "evidence")));
	assert_true(json_is_array(json_object_get(j, "fix")));
	assert_true(json_is_array(json_object_get(j, "others")));
}

static void has_keys(const json_t *j, const char *const *keys)
{
	assert_true(json_is_object(j));
	for (; *keys; keys++)
		if (!json_object_get(j, *keys))
			fail_msg("no key %s", *keys);
}

static void json__all_keys_of_the_contract(void **state)
{
	struct verdict *v = refused(1);
	json_t *j = verdict_object(v), *k, *c;

	(void)state;
	contract(j);
	has_keys(json_object_get(j, "error"), (const char *[]){"code", "name", "api", NULL});
	has_keys(json_object_get(j, "where"), (const char *[]){"file", "line", "function", "stack", NULL});
	has_keys(json_object_get(j, "noticed"), (const char *[]){"file", "line", NULL});
	k = json_object_get(j, "kernel");
	has_keys(k, (const char *[]){"name", "grid", "block", "shared", "stream", NULL});
	assert_string_equal(field(k, "name"), "fill(float*, long)");
	assert_int_equal(json_integer_value(json_array_get(json_object_get(k, "grid"), 1)), 70000);
	assert_int_equal(json_integer_value(json_object_get(k, "stream")), 7);
	has_keys(json_object_get(j, "process"), (const char *[]){"pid", "rank", "exit", "signal", NULL});
	c = json_array_get(json_object_get(j, "candidates"), 0);
	assert_string_equal(field(c, "cause"), field(j, "cause"));
	assert_string_equal(field(c, "certainty"), field(j, "certainty"));
	assert_string_equal(field(json_object_get(j, "error"), "name"), "CUDA_ERROR_INVALID_VALUE");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "noticed"), "line")), 41);
	has_keys(json_array_get(json_object_get(j, "evidence"), 0), (const char *[]){"source", "text", NULL});
	has_keys(json_array_get(json_object_get(j, "fix"), 0), (const char *[]){"text", "command", NULL});
	json_decref(j);
	verdict_free(v);
}

static void json__none_keeps_the_keys(void **state)
{
	struct process_end end = {.pid = 5, .status_known = true, .exit = 0};
	struct verdict *v = verdict_of_process(NULL, &end);
	json_t *j = verdict_object(v);

	(void)state;
	contract(j);
	assert_string_equal(field(j, "cause"), "none");
	assert_int_equal(json_array_size(json_object_get(j, "candidates")), 0);
	assert_true(json_is_null(json_object_get(j, "error")));
	assert_true(json_is_null(json_object_get(j, "where")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "process"), "pid")), 5);
	json_decref(j);
	verdict_free(v);
}

static void json__bytes_that_are_no_text_do_not_break_it(void **state)
{
	struct tb b;
	json_t *j;

	(void)state;
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON,
		     tb_stack(&b,
			      "tr\xff"
			      "ain.py:1:f",
			      NULL),
		     "RuntimeError", "CUDA error: \xff\xfe broken");
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "unknown");
	assert_string_equal(field(json_object_get(j, "where"), "file"), "tr?ain.py");
	json_decref(j);
}

static void text__has_its_five_parts_in_order(void **state)
{
	static const char *const parts[] = {"cuwhy: ",
					    "\n  WHERE  train.py:32 in step()",
					    "traceback says train.py:41",
					    "\n  WHAT   kernel fill(float*, long)",
					    "grid 1x70000x1  block 32x1x1",
					    "\n  WHY    ",
					    "70,000",
					    "\n  FIX    ",
					    "\n  CONFIDENCE  certain: ",
					    "recording /x"};
	struct verdict *v = refused(1);
	struct text_style style = {.width = 100, .verbose = true, .recording = "/x"};
	char *text = text_of(v, &style);
	const char *at = text;

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		at = strstr(at, parts[i]);
		if (!at)
			fail_msg("%s is missing or too early in:\n%s", parts[i], text);
	}
	assert_null(strchr(text, '\033'));
	assert_true(text[strlen(text) - 1] == '\n');
	free(text);
	verdict_free(v);
}

/* At three in the morning: the first reasons and fixes, one word of confidence, and what was left out. */
static void text__is_short_by_default(void **state)
{
	static const char *const parts[] = {"cuwhy: ",
					    "\n  WHERE  train.py:32 in step()",
					    "\n  WHAT   kernel fill\n",
					    "\n  WHY    ",
					    "\n  FIX    ",
					    "\n  CONFIDENCE  certain: ", "cause launch-config-grid-limit; recording /x",
					    "'cuwhy explain -v /x' also shows the call that failed"};
	struct verdict *v = refused(1);
	struct text_style style = {.width = 100, .recording = "/x", .more = "cuwhy explain -v /x"};
	char *text = text_of(v, &style);
	const char *at = text;

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		at = strstr(at, parts[i]);
		if (!at)
			fail_msg("%s is missing or too early in:\n%s", parts[i], text);
	}
	assert_null(strstr(text, "grid 1x70000x1"));
	assert_null(strstr(text, "cuLaunchKernel returned"));
	free(text);
	verdict_free(v);
}

static void text__short_form_counts_what_it_leaves_out(void **state)
{
	struct verdict *v = refused(1);
	struct said why[6], fix[3];
	char *text;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		why[i] = (struct said){.text = "a reason", .next = i < 5 ? &why[i + 1] : NULL};
	for (size_t i = 0; i < 3; i++)
		fix[i] = (struct said){.text = "a fix", .command = "true", .next = i < 2 ? &fix[i + 1] : NULL};
	v->why = why;	/* of no pool: the verdict frees its own */
	v->fix = fix;
	text = text_of(v, NULL);
	assert_non_null(strstr(text, "3 more reasons"));
	assert_non_null(strstr(text, "1 more fix\n"));
	assert_non_null(strstr(text, "\n  -v also shows "));
	free(text);
	verdict_free(v);
}

static void markdown__nothing_in_it_is_markup_of_others(void **state)
{
	struct verdict *v = refused(1);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	v->title = "a | b <script> `c` *d*\n# e";
	report_markdown(out, v, "says ``` and\n```` more\n");
	fclose(out);
	assert_non_null(strstr(text, "**a \\| b \\<script\\> \\`c\\` \\*d\\* \\# e**\n"));
	assert_non_null(strstr(text, "| cause | launch-config-grid-limit |\n"));
	assert_non_null(strstr(text, "\n`````text\nsays ``` and\n```` more\n`````\n"));
	free(text);
	verdict_free(v);
}

/* An exception without a CUDA call, from the recorder's view. */
static char *text_of_exception(uint32_t source, const char *type, const char *words)
{
	struct tb b;
	struct verdict *v;
	char *text;

	tb_init(&b);
	tb_fail_text(&b, source, tb_stack(&b, USER, NULL), type, words);
	v = judge_end(&b, 1, 0);
	text = text_of(v, NULL);
	verdict_free(v);
	return text;
}

static void text__what_happened_is_only_what_was_seen(void **state)
{
	struct verdict *v = verdict_new("unknown");
	char *check = text_of_exception(CW_SRC_TORCH_CHECK, "matmul",
					"mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
	char *remote = text_of_exception(CW_SRC_PYTHON, "DistBackendError", "NCCL error: remote process exited");
	char *nothing;

	(void)state;
	case_observer(&v->c, "note");
	fact_set_number(&v->c, FACT_error_code, 0);
	nothing = text_of(v, NULL);
	assert_non_null(strstr(check, "WHAT   PyTorch rejected an operation before it reached the GPU"));
	assert_null(strstr(remote, "rejected"));
	assert_non_null(
		strstr(remote, "WHAT   the program ended with DistBackendError: NCCL error: remote process exited"));
	assert_null(strstr(nothing, "WHAT"));
	free(check);
	free(remote);
	free(nothing);
	verdict_free(v);
}

static void text__is_wrapped_and_color_only_adds(void **state)
{
	struct verdict *v = refused(1);
	struct text_style narrow = {.width = 60}, color = {.width = 60, .color = true};
	char *plain = text_of(v, &narrow), *bold = text_of(v, &color), *to = bold;
	const char *line = plain;

	(void)state;
	line += strcspn(line, "\n") + 1;		/* the headline is one line */
	while (*line) {
		size_t n = strcspn(line, "\n");

		if (strncmp(line, "             ", 13))	/* commands are not wrapped */
			assert_true(n <= 60);
		line += n + 1;
	}
	assert_non_null(strstr(bold, "\033[1m"));
	for (const char *from = bold; *from; from++) {
		if (*from == '\033')
			from = strchr(from, 'm');
		else
			*to++ = *from;
	}
	*to = '\0';
	assert_string_equal(plain, bold);
	free(plain);
	free(bold);
	verdict_free(v);
}

static void text__numbers_are_not_parted_from_their_units(void **state)
{
	static const char text[] =
		"350.0 MiB of 23.6 GiB, 12 % of it, would have been free after 1.5 s; 4 bytes: 7 blocks";
	static const char *const units[] = {"MiB", "GiB", "%", "s;", "bytes"};
	int words = 0;

	(void)state;
	for (int width = 40; width < 100; width++) {
		struct text_style style = {.width = width};
		char *out = NULL;
		size_t len;
		FILE *f = open_memstream(&out, &len);
		struct wrap w;

		wrap_init(&w, f, &style);
		wrap_plain(&w, 2, text);
		fclose(f);
		for (const char *line = out; *line; line += strcspn(line, "\n") + 1) {
			const char *first = line + strspn(line, " ");

			assert_true(strcspn(line, "\n") <= (size_t)width);
			for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
				assert_true(strncmp(first, units[i], strlen(units[i])) != 0);
			words += strncmp(first, "blocks", 6) == 0;
		}
		free(out);
	}
	assert_true(words > 0);	/* what is no unit may begin a line */
}

static void text__escape_sequences_in_messages_are_not_obeyed(void **state)
{
	struct tb b;
	struct verdict *v;
	char *text;

	(void)state;
	tb_init(&b);
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "a.py:1:f", NULL), "RuntimeError",
		     "mat1 and mat2 shapes cannot be multiplied (1x1 and \033]0;x\a2x2)");
	v = judge_end(&b, 1, 0);
	text = text_of(v, NULL);
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\a'));
	free(text);
	verdict_free(v);
}

static void text__notes_are_one_line(void **state)
{
	struct verdict *v = refused(0);
	struct text_style style = {.width = 100, .recording = "/r"};
	char *text = text_of(v, &style);

	(void)state;
	assert_string_equal(verdict_cause(v), "none");
	assert_int_equal(verdict_notes(v), 1);
	assert_true(strchr(text, '\n') == text + strlen(text) - 1);
	assert_non_null(strstr(text, "handled"));
	assert_non_null(strstr(text, "train.py:32"));
	assert_non_null(strstr(text, "/r"));
	free(text);
	verdict_free(v);
}

/* Tasks of an event loop go on after one of them has failed, and fail as well. */
static void process__an_exception_tells_of_the_failure_on_its_line(void **state)
{
	struct verdict *v;
	uint32_t first, later;
	struct tb b;

	(void)state;
	tb_init(&b);
	first = tb_stack(&b, "serve.py:8:handle", "serve.py:14:main", NULL);
	later = tb_stack(&b, "serve.py:7:handle", "serve.py:14:main", NULL);
	tb_fail(&b, CW_SRC_TORCH_OOM, 2, first);
	tb_fail(&b, CW_SRC_TORCH_OOM, 2, later);
	tb_fail_text(&b, CW_SRC_PYTHON, first, "OutOfMemoryError", "CUDA out of memory. Tried to allocate 48.00 MiB");
	v = judge_end(&b, 1, 0);
	assert_int_equal(v->c.line[LINE_where].number, 8);
	assert_int_equal(verdict_notes(v), 1);
	verdict_free(v);
}

static void text__a_failure_after_which_nothing_happens_may_have_ended_a_thread(void **state)
{
	struct verdict *v = refused_on(7, 0);
	char *text = text_of(v, NULL);

	(void)state;
	assert_string_equal(verdict_cause(v), "none");
	assert_null(strstr(text, "handled"));
	assert_non_null(strstr(text, "may have ended a thread"));
	free(text);
	verdict_free(v);
}

static struct verdict *failed_at(uint64_t time, uint32_t rank)
{
	struct tb b;

	tb_init(&b);
	b.h->rank = rank;
	b.ticks = time;
	tb_fail_launch(&b, 1, tb_stack(&b, USER, NULL), 0, G(1, 70000, 1), G(32, 1, 1), 0);
	return judge_end(&b, 1, 0);
}

static void join__the_first_failure_leads(void **state)
{
	struct process_end well = {.pid = 9, .status_known = true};
	struct verdict *list[] = {verdict_of_process(NULL, &well), failed_at(9000, 2), failed_at(4000, 1),
				  refused(0), failed_at(7000, 0)};
	struct verdict *v = verdict_join(list, 5);
	json_t *j = verdict_object(v), *others = json_object_get(j, "others");

	(void)state;
	assert_int_equal(verdict_time_ns(v), 5000);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "process"), "rank")), 1);
	assert_int_equal(json_array_size(others), 2);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(json_array_get(others, 0), "process"), "rank")),
			 0);
	assert_int_equal(verdict_notes(v), 1);
	contract(json_array_get(others, 0));
	json_decref(j);
	verdict_free(v);
}

/* Process 200, which ended as `end` says, next to process 100 (child of 99), which failed at 5000. */
static struct verdict *joined_with(const struct process_end *end, const char *type, const char *words)
{
	struct verdict *list[] = {NULL, failed_at(4000, 0)};
	struct trace *t;
	struct tb b;

	tb_init(&b);
	b.h->ppid = end->ppid;
	if (type)
		tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), type, words);
	t = tb_trace(&b);
	list[0] = verdict_of_process(t, end);
	trace_free(t);
	return verdict_join(list, 2);
}

#define ENDED(p, how, value, at) {.pid = 200, .ppid = p, .status_known = true, .how = value, .ended_ns = at}

static void join__tells_victims_from_failures_of_their_own(void **state)
{
	static const struct {
		struct process_end end;
		const char *type, *words;
		bool victim;
	} c[] = {
		{ENDED(99, signal, 15, 9000), NULL, NULL, true},
		{ENDED(99, signal, 15, 4000), NULL, NULL, false},	/* before it */
		{ENDED(77, signal, 15, 9000), NULL, NULL, false},	/* not its sibling */
		{ENDED(99, signal, 11, 9000), NULL, NULL, false},	/* no launcher sends that */
		{ENDED(99, exit, 0, 9000), NULL, NULL, false},
		{ENDED(99, exit, 1, 9000), NULL, NULL, false},
		{ENDED(77, exit, 1, 9000), "ProcessRaisedException", "-- Process 0 terminated", true},
		{ENDED(77, exit, 1, 9000), "RuntimeError", "NCCL error: ncclRemoteError, a peer", true},
		{ENDED(99, exit, 1, 9000), "EOFError", "", true},
		{ENDED(77, exit, 1, 9000), "EOFError", "", false},
		{ENDED(100, exit, 1, 9000), "BrokenPipeError", "[Errno 32]", true},
		{ENDED(99, exit, 1, 9000), "KeyError", "loss", false},
		{ENDED(99, exit, 1, 4000), "EOFError", "", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct verdict *v = joined_with(&c[i].end, c[i].type, c[i].words);
		json_t *j = verdict_object(v), *other = json_array_get(json_object_get(j, "others"), 0);

		assert_int_equal(verdict_pid(v), 100);
		assert_int_equal(json_is_true(json_object_get(other, "victim")), c[i].victim);
		assert_int_equal(json_integer_value(json_object_get(other, "victim_of")), c[i].victim ? 100 : 0);
		json_decref(j);
		verdict_free(v);
	}
}

/* Process 300 handled a refused launch at model.py:28 at 4000 and ended well; process 200 ended with the exception. */
static struct verdict *survived_with(uint32_t ppid, const char *words)
{
	struct process_end well = {.pid = 300, .ppid = ppid, .status_known = true, .ended_ns = 8000};
	struct process_end badly = {.pid = 200, .ppid = 99, .status_known = true, .exit = 1, .ended_ns = 9000};
	struct verdict *list[2];
	struct trace *t;
	struct tb b;

	tb_init(&b);
	b.h->ppid = ppid;
	tb_fail_launch(&b, 1, tb_stack(&b, "/w/model.py:28:step", NULL), tb_function(&b, "_Z4fillPfl"), G(1, 70000, 1),
		       G(32, 1, 1), 16)->mono_ns = 4000;
	t = tb_trace(&b);
	list[0] = verdict_of_process(t, &well);
	trace_free(t);
	tb_init(&b);
	b.h->ppid = 99;
	b.ticks = 6000;
	tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, "/w/train.py:41:<module>", NULL), "RuntimeError", words);
	t = tb_trace(&b);
	list[1] = verdict_of_process(t, &badly);
	trace_free(t);
	return verdict_join(list, 2);
}

static void join__a_failure_that_another_process_raised_again_is_not_handled(void **state)
{
	static const struct {
		uint32_t ppid;
		const char *words;
		bool fatal;
	} c[] = {
		{200, "Caught RuntimeError in worker process 0. CUDA error: invalid argument", true},
		{77, "Caught RuntimeError in worker process 0. CUDA error: invalid argument", false},
		{77, "Traceback (most recent call last):\n  File \"/w/model.py\", line 28, in step\nLaunchError", true},
		{77, "Traceback (most recent call last):\n  File \"/w/model.py\", line 281, in step\nLaunchError", false},
		{77, "Traceback (most recent call last):\n  File \"/w/model.py.old\", line 28, in step\nLaunchError",
		 false},
		{200, "label", false},
		{200, "CUDA error: out of memory", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct verdict *v = survived_with(c[i].ppid, c[i].words);

		if (c[i].fatal) {
			assert_int_equal(verdict_pid(v), 300);
			assert_string_equal(verdict_cause(v), "launch-config-grid-limit");
			assert_int_equal(verdict_notes(v), 0);
			assert_non_null(v->others);
			assert_int_equal(v->others->victim_of, 300);
			assert_string_equal(verdict_cause(v->others), "none");
		} else {
			assert_string_not_equal(verdict_cause(v), "launch-config-grid-limit");
			assert_int_equal(verdict_notes(v), 1);
		}
		verdict_free(v);
	}
}

static void join__two_faults_of_their_own_have_no_victim(void **state)
{
	struct verdict *list[] = {failed_at(4000, 0), failed_at(8000, 1)}, *v = verdict_join(list, 2);
	json_t *j = verdict_object(v);

	(void)state;
	assert_null(json_object_get(json_array_get(json_object_get(j, "others"), 0), "victim"));
	json_decref(j);
	verdict_free(v);
}

/* A fault of a process that began at 0; its core dump was written at `dumped`, 0 = there is none. */
static struct verdict *faulted(uint32_t pid, uint64_t noticed, uint64_t dumped)
{
	static const struct culprit fault = {.fault = FAULT_ILLEGAL_ADDRESS};
	struct process_end end = {.pid = pid, .status_known = true, .exit = 1, .fault = dumped ? &fault : NULL};
	struct verdict *v;
	struct trace *t;
	struct tb b;

	tb_init(&b);
	b.h->start_realtime_ns = 77000000000ull;
	end.fault_real_ns = dumped ? b.h->start_realtime_ns + dumped : 0;
	b.ticks = noticed - 1000;
	tb_fail(&b, CW_SRC_DRIVER, 700, tb_stack(&b, USER, NULL));
	t = tb_trace(&b);
	v = verdict_of_process(t, &end);
	trace_free(t);
	return v;
}

static void join__a_fault_happened_when_its_dump_was_written(void **state)
{
	struct verdict *list[] = {faulted(1, 5000, 0), faulted(2, 10000, 4000)}, *v = verdict_join(list, 2);

	(void)state;
	assert_int_equal(verdict_pid(v), 2);
	assert_int_equal(verdict_time_ns(v), 4000);
	verdict_free(v);
	/* a copy is newer than the fault: then the time when it was noticed counts */
	list[0] = faulted(1, 5000, 0);
	list[1] = faulted(2, 10000, 900000);
	v = verdict_join(list, 2);
	assert_int_equal(verdict_pid(v), 1);
	verdict_free(v);
}

static void join__nothing_is_none(void **state)
{
	struct process_end first = {.pid = 1, .status_known = true},
			   second = {.pid = 2, .status_known = true};
	struct verdict *list[] = {verdict_of_process(NULL, &first), verdict_of_process(NULL, &second)};
	struct verdict *v = verdict_join(NULL, 0);
	json_t *j;

	(void)state;
	assert_string_equal(verdict_cause(v), "none");
	verdict_free(v);
	v = verdict_join(list, 2);
	j = verdict_object(v);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "process"), "pid")), 1);
	json_decref(j);
	verdict_free(v);
}

static void cause__is_explained_and_listed(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_true(report_cause(out, "oom-capacity", NULL, NULL));
	assert_false(report_cause(out, "no-such-cause", NULL, NULL));
	report_cause_list(out);
	fclose(out);
	assert_non_null(strstr(text, "What to try"));
	assert_non_null(strstr(text, "\nvisible-devices-wrong "));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__all_keys_of_the_contract),
		cmocka_unit_test(json__none_keeps_the_keys),
		cmocka_unit_test(json__bytes_that_are_no_text_do_not_break_it),
		cmocka_unit_test(text__has_its_five_parts_in_order),
		cmocka_unit_test(text__is_short_by_default),
		cmocka_unit_test(markdown__nothing_in_it_is_markup_of_others),
		cmocka_unit_test(text__short_form_counts_what_it_leaves_out),
		cmocka_unit_test(text__what_happened_is_only_what_was_seen),
		cmocka_unit_test(text__is_wrapped_and_color_only_adds),
		cmocka_unit_test(text__numbers_are_not_parted_from_their_units),
		cmocka_unit_test(text__escape_sequences_in_messages_are_not_obeyed),
		cmocka_unit_test(text__notes_are_one_line),
		cmocka_unit_test(process__an_exception_tells_of_the_failure_on_its_line),
		cmocka_unit_test(text__a_failure_after_which_nothing_happens_may_have_ended_a_thread),
		cmocka_unit_test(join__the_first_failure_leads),
		cmocka_unit_test(join__tells_victims_from_failures_of_their_own),
		cmocka_unit_test(join__a_failure_that_another_process_raised_again_is_not_handled),
		cmocka_unit_test(join__two_faults_of_their_own_have_no_victim),
		cmocka_unit_test(join__a_fault_happened_when_its_dump_was_written),
		cmocka_unit_test(join__nothing_is_none),
		cmocka_unit_test(cause__is_explained_and_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
