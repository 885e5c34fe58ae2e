/* SPDX-License-Identifier: Apache-2.0
 * Reading another process: memory that is not there, chains without an end, every version's layout.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/mem.h"
#include "read/live/target.h"
#include "read/live/task.h"
#include "verdict/verdict.h"
#include "live_make.h"

#define FIRST_MINOR	9u
#define LAST_MINOR	12u	/* of those without debug offsets */

static struct image *image;
static struct remote r;
static struct pyproc p;
static struct pool pool;

static void begin(unsigned minor)
{
	free(image);
	image = xcalloc(1, sizeof(*image));
	if (r.page)
		remote_release(&r);
	remote_init(&r, image_fetch, image);
	pyproc_at(&p, &r, IMAGE_AT, IMAGE_CODE_TYPE, image_version(minor));
}

static uint64_t interpreter(uint64_t thread)
{
	uint64_t at = image_room(image, 512);

	image_put(image, IMAGE_AT + p.s.head, at, 8);
	image_put(image, at + p.s.threads, thread, 8);
	return at;
}

static void memory__reads_cross_pages_and_end_where_memory_does(void **state)
{
	uint8_t bytes[16];
	char text[8];

	(void)state;
	begin(11);
	for (size_t i = 0; i < IMAGE_BYTES; i++)
		image->bytes[i] = (uint8_t)(i % 251);
	assert_true(remote_read(&r, IMAGE_AT + REMOTE_PAGE - 8, bytes, sizeof(bytes)));
	assert_memory_equal(bytes, image->bytes + REMOTE_PAGE - 8, sizeof(bytes));
	assert_false(remote_read(&r, IMAGE_AT - 1, bytes, 2));
	assert_false(remote_read(&r, IMAGE_AT + IMAGE_BYTES - 8, bytes, sizeof(bytes)));
	assert_false(remote_read(&r, UINT64_MAX - 3, bytes, sizeof(bytes)));
	memcpy(image->bytes, "longer than that", 17);
	remote_forget(&r);
	assert_true(remote_string(&r, IMAGE_AT, text, sizeof(text)));
	assert_string_equal(text, "longer ");
}

static void memory__what_was_read_is_kept_until_it_is_forgotten(void **state)
{
	uint64_t word;

	(void)state;
	begin(11);
	image_put(image, IMAGE_AT, 1, 8);
	assert_true(remote_word(&r, IMAGE_AT, &word) && word == 1);
	image_put(image, IMAGE_AT, 2, 8);
	assert_true(remote_word(&r, IMAGE_AT, &word) && word == 1);
	remote_forget(&r);
	assert_true(remote_word(&r, IMAGE_AT, &word) && word == 2);
}

static void python__frames_of_every_layout_have_their_lines(void **state)
{
	(void)state;
	for (unsigned minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		struct py_thread list[4];
		struct py_walked w;
		struct py_frame f;
		uint64_t outer, inner, thread;
		bool whole;

		begin(minor);
		assert_true(p.found);
		outer = image_frame(image, &p.l, image_code(image, &p.l, "/a/train.py", "<module>", 10), 3, 0);
		inner = image_frame(image, &p.l, image_code(image, &p.l, "/a/step.py", "step", 40), 2, outer);
		thread = image_thread(image, &p.l, &p.s, 77, inner, 0);
		interpreter(thread);
		assert_int_equal(pyproc_threads(&p, list, 4, &whole), 1);
		assert_true(whole);
		assert_true(!p.s.native || list[0].tid == 77);
		assert_true(pyproc_walk(&p, list[0].state, &w));
		assert_int_equal(w.n, 2);
		assert_true(pyproc_frame(&p, &w.raw[0], &f, &pool));
		assert_string_equal(f.file, "/a/step.py");
		assert_string_equal(f.function, "step");
		assert_int_equal(f.line, 42);
		assert_true(pyproc_frame(&p, &w.raw[1], &f, &pool));
		assert_int_equal(f.line, 13);
	}
}

static void python__chains_that_never_end_are_cut(void **state)
{
	struct py_thread list[64];
	struct py_walked w;
	uint64_t frame, thread;
	bool whole;

	(void)state;
	for (unsigned minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		begin(minor);
		frame = image_frame(image, &p.l, image_code(image, &p.l, "a.py", "f", 1), 0, 0);
		image_put(image, frame + p.l.previous, frame, 8);
		thread = image_thread(image, &p.l, &p.s, 5, frame, 0);
		image_put(image, thread + p.s.thread_next, thread, 8);
		image_put(image, interpreter(thread) + p.s.next, IMAGE_AT, 8);
		assert_int_equal(pyproc_threads(&p, list, 64, &whole), 64);
		assert_false(whole);
		assert_true(pyproc_walk(&p, thread, &w));
		assert_true(w.cut);
		assert_int_equal(w.n, PY_FRAMES_MAX);
	}
}

static void python__a_chain_that_leads_nowhere_is_no_stack(void **state)
{
	struct py_walked w;
	uint64_t frame, thread;

	(void)state;
	begin(11);
	frame = image_frame(image, &p.l, image_code(image, &p.l, "a.py", "f", 1), 0, 0xdead0000);
	thread = image_thread(image, &p.l, &p.s, 5, frame, 0);
	assert_false(pyproc_walk(&p, thread, &w));
	image_put(image, frame + p.l.previous, 0, 8);
	image_put(image, frame + p.l.code, IMAGE_AT, 8);	/* no code object */
	remote_forget(&r);
	assert_false(pyproc_walk(&p, thread, &w));
}

static void python__versions_that_are_not_known_are_refused_in_words(void **state)
{
	(void)state;
	begin(8);
	assert_false(p.found);
	assert_string_equal(p.why, "its Python is 3.8; cuwhy reads 3.9 to 3.14");
	begin(13);	/* no debug offsets in there */
	assert_false(p.found);
	memcpy(image->bytes, "xdebugpy", 8);
	image_put(image, IMAGE_AT + 16, 1, 8);
	remote_forget(&r);
	pyproc_at(&p, &r, IMAGE_AT, 0, image_version(13));
	assert_string_equal(p.why, "it is a free-threaded Python 3.13");
}

static void python__contents_change_with_a_variable(void **state)
{
	struct py_raw raw = {0};
	uint64_t before, object, code;

	(void)state;
	for (unsigned minor = FIRST_MINOR; minor <= LAST_MINOR; minor++) {
		begin(minor);
		code = image_code(image, &p.l, "a.py", "f", 1);
		raw = (struct py_raw){image_frame(image, &p.l, code, 1, 0), code, 0};
		object = image_room(image, 64);
		image_put(image, IMAGE_CODE_TYPE + 32, 32, 8);	/* how large such an object is */
		image_put(image, code + p.n_locals, 1, 4);
		image_put(image, code + p.stack_size, 2, 4);
		if (p.stack)
			image_put(image, raw.frame + p.stack, raw.frame + p.locals + 8, 8);
		image_put(image, raw.frame + p.locals, object, 8);
		image_put(image, object + 8, IMAGE_CODE_TYPE, 8);
		before = pyproc_contents(&p, &raw);
		assert_true(before);
		remote_forget(&r);
		assert_true(pyproc_contents(&p, &raw) == before);
		image_put(image, object, 99, 8);	/* its reference count */
		remote_forget(&r);
		assert_true(pyproc_contents(&p, &raw) == before);
		image_put(image, object + 32, 99, 8);	/* what lies behind it, another one's */
		remote_forget(&r);
		assert_true(pyproc_contents(&p, &raw) == before);
		image_put(image, object + 24, 4711, 8);
		remote_forget(&r);
		assert_false(pyproc_contents(&p, &raw) == before);
	}
}

static void task__a_system_call_is_read_with_its_arguments(void **state)
{
	struct task t = {0};

	(void)state;
	task_parse_call(&t, "202 0x55aa 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f00ab\n");
	assert_true(t.in_call && !t.runs);
	assert_int_equal(t.call, SYS_futex);
	assert_true(t.arg[0] == 0x55aa && t.sp == 0x7ffd10 && t.pc == 0x7f00ab);
	t = (struct task){0};
	task_parse_call(&t, "running\n");
	assert_true(t.runs && !t.in_call);
	task_parse_call(&t, "-1 0x7ffd10 0x7f00ab\n");	/* a page fault, or it is stopped */
	assert_false(t.in_call || t.runs);
	assert_true(t.sp == 0x7ffd10);
}

static void target__mappings_are_found_by_address_and_name(void **state)
{
	struct target t = {0};

	(void)state;
	target_parse(&t, "1000-2000 r--p 00000000 08:01 7 /usr/lib/libcuda.so.1\n"
			 "2000-5000 r-xp 00001000 08:01 7 /usr/lib/libcuda.so.1\n"
			 "not a line\n"
			 "7000-8000 rw-p 00000000 00:00 0 [stack]\n");
	assert_int_equal(t.n_maps, 3);
	assert_true(t.is_32bit);
	assert_int_equal(t.n_modules, 1);
	assert_true(target_module(&t, 0x2fff) == target_has(&t, "libcuda.so"));
	assert_null(target_module(&t, 0x1fff));	/* no code */
	assert_null(target_module(&t, 0x7100));
	assert_null(target_mapping(&t, 0x6000));
	assert_string_equal(target_mapping(&t, 0x7fff)->path, "[stack]");
	assert_null(target_has(&t, "libnccl"));
	target_close(&t);
}

/* `more`: another thread waits for somebody outside, a lock is shared, something changes, a debugger is attached. `wakes`: something goes on by
 * itself. */
static void check_case(const char *waits, bool more, bool wakes, const char *cause, enum certainty sure)
{
	struct verdict *v = verdict_new("unknown");
	bool lock = !strcmp(waits, "lock");

	fact_set_flag(&v->c, FACT_live_is, true);
	fact_set_flag(&v->c, FACT_live_deadlock, false);
	fact_set_text(&v->c, FACT_live_waits, waits);
	fact_set_flag(&v->c, FACT_live_shared, more && lock);
	fact_set_text(&v->c, FACT_live_outside, more && !lock ? "thread 7 waits for somebody to connect" : "");
	fact_set_text(&v->c, FACT_live_wakes, wakes ? "thread 7 sleeps, and goes on by itself" : "");
	fact_set_text(&v->c, FACT_live_changes, more ? "it read or wrote 4096 bytes" : "");
	fact_set_number(&v->c, FACT_live_peer_pid, more ? 4711 : 0);
	verdict_judge(v);
	assert_string_equal(verdict_cause(v), cause);
	assert_int_equal(v->sure, sure);
	assert_int_equal(v->n_candidates, 1);
	verdict_free(v);
}

static void check_wait(const char *waits, bool more, const char *cause, enum certainty sure)
{
	check_case(waits, more, false, cause, sure);
}

static void verdict__what_something_may_end_by_itself_is_possible(void **state)
{
	static const struct { const char *waits, *cause; } rows[] = {
		{"lock", "hang-lock"},		   {"queue", "hang-lock"},	     {"condition", "hang-lock"},
		{"thread", "hang-lock"},	   {"tasks", "hang-lock"},	     {"process", "hang-other-process"},
		{"worker", "hang-other-process"},  {"pipe", "hang-input-output"},    {"file-lock", "hang-input-output"},
		{"socket", "hang-peer"},	   {"loop", "hang-loop"},	     {"queue-room", "hang-lock"},
		{"queue-done", "hang-lock"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int more = 0; more < 2; more++)
			check_case(rows[i].waits, more, true, rows[i].cause, SURE_POSSIBLE);
}

static void verdict__what_may_still_get_on_is_possible(void **state)
{
	static const char *const inside[] = {"lock",	  "queue",  "queue-room", "queue-done",
					     "condition", "thread", "tasks"};

	(void)state;
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
		check_wait(inside[i], true, "hang-lock", SURE_POSSIBLE);
	check_wait("loop", true, "hang-loop", SURE_POSSIBLE);
	check_wait("stopped", true, "hang-stopped", SURE_CERTAIN);
}

static void verdict__every_wait_has_its_cause(void **state)
{
	static const struct { const char *waits, *cause; enum certainty sure; } rows[] = {
		{"lock", "hang-lock", SURE_LIKELY},	     {"queue", "hang-lock", SURE_LIKELY},
		{"condition", "hang-lock", SURE_LIKELY},     {"thread", "hang-lock", SURE_LIKELY},
		{"tasks", "hang-lock", SURE_LIKELY},	     {"queue-room", "hang-lock", SURE_LIKELY},
		{"queue-done", "hang-lock", SURE_LIKELY},    {"signal", "hang-sleep", SURE_POSSIBLE},
		{"device", "hang-input-output", SURE_POSSIBLE},
		{"gil", "hang-lock", SURE_POSSIBLE},	     {"process", "hang-other-process", SURE_LIKELY},
		{"worker", "hang-other-process", SURE_LIKELY}, {"collective", "hang-peer", SURE_LIKELY},
		{"store", "hang-peer", SURE_LIKELY},	     {"accept", "hang-peer", SURE_POSSIBLE},
		{"socket", "hang-peer", SURE_POSSIBLE},	     {"event", "hang-peer", SURE_POSSIBLE},
		{"pipe", "hang-input-output", SURE_LIKELY},  {"file", "hang-input-output", SURE_LIKELY},
		{"file-lock", "hang-input-output", SURE_LIKELY}, {"terminal", "hang-input-output", SURE_LIKELY},
		{"unknown", "hang-input-output", SURE_POSSIBLE}, {"sleep", "hang-sleep", SURE_POSSIBLE},
		{"loop", "hang-loop", SURE_LIKELY},	     {"native", "hang-loop", SURE_POSSIBLE},
		{"stopped", "hang-stopped", SURE_CERTAIN},   {"cuda", "kernel-hang", SURE_POSSIBLE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_wait(rows[i].waits, false, rows[i].cause, rows[i].sure);
}

/* A circle of locks, as what CPython writes down about owners (`sure`) or as the blocks that threads seem to be in show it. */
static void check_circle(bool sure, bool wakes, bool timed, enum certainty expected)
{
	struct verdict *v = verdict_new("unknown");

	fact_set_flag(&v->c, FACT_live_is, true);
	fact_set_text(&v->c, FACT_live_waits, "lock");
	fact_set_flag(&v->c, FACT_live_deadlock, true);
	fact_set_flag(&v->c, FACT_live_deadlock_sure, sure);
	fact_set_flag(&v->c, FACT_live_deadlock_timed, timed);
	fact_set_text(&v->c, FACT_live_wakes, wakes ? "thread 7 gives up after a while" : "");
	verdict_judge(v);
	assert_string_equal(verdict_cause(v), "hang-deadlock");
	assert_int_equal(v->sure, expected);
	assert_int_equal(v->n_candidates, 1);
	verdict_free(v);
}

static void verdict__a_circle_is_as_sure_as_its_owners_and_what_may_end_it(void **state)
{
	(void)state;
	check_circle(true, false, false, SURE_CERTAIN);
	check_circle(true, true, false, SURE_LIKELY);
	check_circle(true, true, true, SURE_POSSIBLE);
	check_circle(false, false, false, SURE_LIKELY);
	check_circle(false, true, false, SURE_POSSIBLE);
	check_circle(false, true, true, SURE_POSSIBLE);
}

static void verdict__a_process_can_wait_for_its_own_file_lock(void **state)
{
	static const char *const reason =
		"it waits in flock for a lock that it has itself, through another descriptor of the same file";
	struct verdict *v = verdict_new("unknown");

	(void)state;
	fact_set_flag(&v->c, FACT_live_is, true);
	fact_set_flag(&v->c, FACT_live_deadlock, false);
	fact_set_text(&v->c, FACT_live_waits, "file-lock");
	fact_set_text(&v->c, FACT_live_wakes, "");
	fact_set_text(&v->c, FACT_live_peer, "it is this process itself, which has the file open twice");
	fact_set_number(&v->c, FACT_live_peer_pid, 0);
	verdict_judge(v);
	assert_string_equal(verdict_cause(v), "hang-input-output");
	assert_int_equal(v->sure, SURE_LIKELY);
	assert_string_equal(v->because, reason);
	verdict_free(v);
}

/* NVML's figure is of one moment: whether a real GPU happens to be busy is not for a test to hope. */
static void verdict__a_wait_for_a_busy_gpu_is_a_kernel_that_runs(void **state)
{
	(void)state;
	for (int percent = 0; percent <= 100; percent += 100) {
		struct verdict *v = verdict_new("unknown");

		fact_set_flag(&v->c, FACT_live_is, true);
		fact_set_flag(&v->c, FACT_live_deadlock, false);
		fact_set_text(&v->c, FACT_live_waits, "cuda");
		fact_set_number(&v->c, FACT_live_utilization, percent);
		verdict_judge(v);
		assert_string_equal(verdict_cause(v), "kernel-hang");
		assert_int_equal(v->sure, percent ? SURE_LIKELY : SURE_POSSIBLE);
		verdict_free(v);
	}
}

static int end(void **state)
{
	(void)state;
	free(image);
	remote_release(&r);
	pool_release(&pool);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__reads_cross_pages_and_end_where_memory_does),
		cmocka_unit_test(memory__what_was_read_is_kept_until_it_is_forgotten),
		cmocka_unit_test(python__frames_of_every_layout_have_their_lines),
		cmocka_unit_test(python__chains_that_never_end_are_cut),
		cmocka_unit_test(python__a_chain_that_leads_nowhere_is_no_stack),
		cmocka_unit_test(python__versions_that_are_not_known_are_refused_in_words),
		cmocka_unit_test(python__contents_change_with_a_variable),
		cmocka_unit_test(task__a_system_call_is_read_with_its_arguments),
		cmocka_unit_test(verdict__every_wait_has_its_cause),
		cmocka_unit_test(verdict__what_may_still_get_on_is_possible),
		cmocka_unit_test(verdict__what_something_may_end_by_itself_is_possible),
		cmocka_unit_test(verdict__a_circle_is_as_sure_as_its_owners_and_what_may_end_it),
		cmocka_unit_test(verdict__a_process_can_wait_for_its_own_file_lock),
		cmocka_unit_test(verdict__a_wait_for_a_busy_gpu_is_a_kernel_that_runs),
		cmocka_unit_test(target__mappings_are_found_by_address_and_name),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
