/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's memory snapshots: what is rejected, what is replayed, and the verdicts.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "find/memory/observe_snapshot.h"
#include "verdict/verdict.h"
#include "snap_make.h"

#define UNUSED(state)	(void)(state)
#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
#define BASE		0x7f0000000000ull

static struct snap_make made;

struct found {
	struct snapshot *s;
	struct snap_lines l;
	struct snap_device d;
	struct verdict *v;
};

static struct found judge(void)
{
	struct err e = {0};
	struct found f;

	f.s = snap_from_bytes(made.data, made.len, &e);
	if (!f.s)
		fail_msg("%s", e.msg);
	snap_lines_find(&f.l, f.s, snapshot_owner);
	snap_analyze(&f.d, f.s, &f.l, 0);
	f.v = verdict_of_snapshot(f.s, &f.l, &f.d);
	return f;
}

static void done(struct found *f)
{
	verdict_free(f->v);
	snap_device_release(&f->d);
	snap_lines_release(&f->l);
	snap_free(f->s);
}

static void refused(const void *bytes, size_t len, int code, const char *why)
{
	struct err e = {0};

	assert_null(snap_from_bytes(bytes, len, &e));
	assert_int_equal(e.code, code);
	if (!strstr(e.msg, why))
		fail_msg("'%s' does not say '%s'", e.msg, why);
}

#define REFUSED(text, code, why) refused(text, sizeof(text) - 1, code, why)

static void refuses_what_runs_code(void **state)
{
	UNUSED(state);
	REFUSED("\x80\x02" "cos\nsystem\n.", -EPERM, "GLOBAL at byte 2");
	REFUSED("\x80\x04\x8c\x02os\x8c\x06system\x93.", -EPERM, "STACK_GLOBAL at byte 14");
	REFUSED("\x80\x04}}R.", -EPERM, "REDUCE at byte 4");
	REFUSED("\x80\x04}}b.", -EPERM, "BUILD at byte 4");
	REFUSED("\x80\x04)\x81.", -EPERM, "NEWOBJ at byte 3");
	REFUSED("\x80\x04(i__main__\nX\n.", -EPERM, "INST at byte 3");
	REFUSED("\x80\x04\xf7.", -EPERM, "0xf7 at byte 2");
}

static void refuses_what_is_damaged(void **state)
{
	UNUSED(state);
	REFUSED("", -EBADMSG, "cut short");
	REFUSED("\x80", -EBADMSG, "cut short");
	REFUSED("\x80\x04}", -EBADMSG, "cut short");
	REFUSED("\x80\x04X\xff\xff\xff\x7fshort", -EBADMSG, "cut short");
	REFUSED("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffshort", -EBADMSG, "cut short");
	REFUSED("\x80\x04\x8b\xff\xff\xff\xff.", -EBADMSG, "negative length");
	REFUSED("\x80\x07}.", -EBADMSG, "protocol");
	REFUSED("\x80\x04j\xff\xff\xff\xff.", -EBADMSG, "never stored");
	REFUSED("\x80\x04}r\xff\xff\xff\xff.", -EBADMSG, "out of order");
	REFUSED("\x80\x04u.", -EBADMSG, "no mark");
	REFUSED("\x80\x04s.", -EBADMSG, "missing");
	REFUSED("\x80\x04](K\x01u.", -EBADMSG, "without a value");
	REFUSED("\x80\x04](K\x01K\x02u.", -EBADMSG, "other than a dictionary");
	REFUSED("\x80\x04}K\x01" "a.", -EBADMSG, "other than a list");
	REFUSED("\x80\x04\x94.", -EBADMSG, "memo without a value");
	REFUSED("\x80\x04(.", -EBADMSG, "unexpected end");
	made.len = 0;
	make_begin(&made);
	memset(made.data + made.len, '(', 1000);
	refused(made.data, 1000, -EBADMSG, "deeply nested");
	memset(made.data + made.len, 'N', sizeof(made.data) - made.len);
	refused(made.data, sizeof(made.data), -EBADMSG, "without a container");
	REFUSED("\x80\x04K\x01K\x02(a.", -EBADMSG, "missing");
}

static void refuses_other_pickles(void **state)
{
	UNUSED(state);
	REFUSED("\x80\x04}.", -EBADMSG, "without 'segments'");
	REFUSED("\x80\x04K\x01.", -EBADMSG, "other than a dictionary");
	REFUSED("\x80\x04](K\x01K\x02" "e.", -EBADMSG, "something other than segments");
}

/* One event, appended over and over, must not become many. */
static void refuses_the_same_event_twice(void **state)
{
	UNUSED(state);
	make_top(&made);
	make_events(&made);
	make_event(&made, "alloc", BASE, 512, 0);
	make_byte(&made, 0x94);
	make_byte(&made, 'h');
	make_byte(&made, 0);
	make_end(&made);
	refused(made.data, made.len, -EBADMSG, "order");
}

/* Two segments that share one list of blocks: only the first has it. */
static void a_list_has_one_owner(void **state)
{
	struct snapshot *s;

	UNUSED(state);
	make_top(&made);
	make_segment(&made, BASE, 2 * MIB);
	make_block(&made, BASE, 2 * MIB, "active_allocated", 0);
	make_byte(&made, 'e');
	make_byte(&made, 0x94);
	make_byte(&made, 'u');
	make_byte(&made, '}');
	make_byte(&made, '(');
	make_item(&made, "total_size", 2 * MIB);
	make_text(&made, "blocks");
	make_byte(&made, 'h');
	make_byte(&made, 0);
	make_byte(&made, 'u');
	make_events(&made);
	make_end(&made);
	s = snap_from_bytes(made.data, made.len, NULL);
	assert_non_null(s);
	assert_int_equal(s->segments.n, 2);
	assert_int_equal(s->segment[0].n, 1);
	assert_int_equal(s->segment[1].n, 0);
	snap_free(s);
}

static void every_prefix_is_refused(void **state)
{
	struct err e;

	UNUSED(state);
	make_top(&made);
	make_segment(&made, BASE, 2 * MIB);
	make_block(&made, BASE, 2 * MIB, "active_allocated", 3);
	make_segment_end(&made);
	make_events(&made);
	make_event(&made, "alloc", BASE, 2 * MIB, 3);
	make_end(&made);
	for (size_t i = 0; i < made.len; i++) {
		e = (struct err){0};
		assert_null(snap_from_bytes(made.data, i, &e));
		assert_int_equal(e.code, -EBADMSG);
	}
}

/* Line 1 holds 1 MiB before the list begins, line 2 allocated and freed 4 MiB, line 3 holds 2 MiB at the end. */
static void make_story(void)
{
	make_top(&made);
	make_segment(&made, BASE, 20 * MIB);
	make_block(&made, BASE, 2 * MIB, "active_allocated", 3);
	make_block(&made, BASE + 2 * MIB, 18 * MIB, "inactive", 0);
	make_segment_end(&made);
	make_events(&made);
	make_event(&made, "alloc", BASE + 8 * MIB, 4 * MIB, 2);
	make_event(&made, "free_requested", BASE + 16 * MIB, MIB, 1);
	make_event(&made, "free_completed", BASE + 16 * MIB, MIB, 1);
	make_event(&made, "free_requested", BASE + 8 * MIB, 4 * MIB, 9);
	make_event(&made, "free_completed", BASE + 8 * MIB, 4 * MIB, 9);
	make_event(&made, "alloc", BASE, 2 * MIB - 100, 3);
	make_end(&made);
}

static uint64_t held_by(const struct found *f, size_t moment, uint32_t number)
{
	struct snap_holder *h;
	size_t n = snap_holders(&f->d, &f->l, moment, &h);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (snap_line(&f->l, h[i].line)->line == number)
			bytes += h[i].bytes;
	free(h);
	return bytes;
}

static void replays_backwards_from_the_end(void **state)
{
	struct found f;

	UNUSED(state);
	make_story();
	f = judge();
	assert_int_equal(f.d.replay.end.allocated, 2 * MIB);
	assert_int_equal(f.d.replay.start.allocated, MIB);
	assert_int_equal(f.d.replay.peak.allocated, 5 * MIB);
	assert_int_equal(f.d.replay.peak_moment, 1);
	assert_int_equal(replay_at(&f.d.replay, 4).allocated, 0);
	assert_int_equal(held_by(&f, 0, 1), MIB);
	assert_int_equal(held_by(&f, 1, 1), MIB);
	assert_int_equal(held_by(&f, 1, 2), 4 * MIB);
	assert_int_equal(held_by(&f, 1, 3), 0);
	assert_int_equal(held_by(&f, 6, 3), 2 * MIB);
	/* the line that freed it never held it */
	assert_int_equal(held_by(&f, 2, 9), 0);
	assert_string_equal(verdict_cause(f.v), "none");
	done(&f);
}

static void adds_up_the_segments(void **state)
{
	struct found f;

	UNUSED(state);
	make_story();
	f = judge();
	assert_int_equal(f.d.all.reserved, 20 * MIB);
	assert_int_equal(f.d.all.allocated, 2 * MIB);
	assert_int_equal(f.d.all.split, 18 * MIB);
	assert_int_equal(f.d.all.cached, 0);
	assert_int_equal(f.d.all.largest_free, 18 * MIB);
	assert_int_equal(f.d.n_pins, 1);
	assert_int_equal(f.d.pin[0].kept, 18 * MIB);
	done(&f);
}

static void names_frames_of_the_user(void **state)
{
	UNUSED(state);
	assert_int_equal(snapshot_owner("/home/user/train.py", ""), SNAP_OWN);
	assert_int_equal(snapshot_owner("/x/site-packages/torch/nn/functional.py", ""), SNAP_PLUMBING);
	assert_int_equal(snapshot_owner("/x/site-packages/transformers/trainer.py", ""), SNAP_LIBRARY);
	assert_int_equal(snapshot_owner("??", ""), SNAP_PLUMBING);
	assert_int_equal(snapshot_owner("/pytorch/aten/src/ATen/Functions.cpp", ""), SNAP_PLUMBING);
	assert_int_equal(snapshot_owner("<stdin>", ""), SNAP_OWN);
}

static void make_oom(uint64_t reserved, uint64_t live, uint64_t request, uint64_t free_bytes)
{
	make_top(&made);
	make_segment(&made, BASE, reserved);
	make_block(&made, BASE, live, "active_allocated", 3);
	for (uint64_t at = live; at < reserved; at += reserved / 8)
		make_block(&made, BASE + at, reserved - at < reserved / 8 ? reserved - at : reserved / 8, "inactive",
			   0);
	make_segment_end(&made);
	make_events(&made);
	make_event(&made, "oom", free_bytes, request, 7);
	make_end(&made);
}

static void expect(const char *cause)
{
	struct found f = judge();

	assert_string_equal(verdict_cause(f.v), cause);
	assert_true(f.d.oom.exact);
	done(&f);
}

static void tells_causes_apart(void **state)
{
	UNUSED(state);
	make_oom(16 * GIB, 15 * GIB, 2 * GIB, 100 * MIB);
	expect("oom-capacity");
	/* half of the segment is free, in pieces of an eighth */
	make_oom(16 * GIB, 8 * GIB, 4 * GIB, 100 * MIB);
	expect("oom-fragmentation");
	make_oom(16 * GIB, 15 * GIB, 1ull << 41, 100 * MIB);
	expect("oom-request-too-large");
	make_oom(16 * GIB, 15 * GIB, GIB, 30 * GIB);
	expect("oom-memory-fraction");
	/* for a block of 3 MiB PyTorch requests 20 from the driver: 10 free ones are not enough */
	make_oom(16 * GIB, 15 * GIB, 3 * MIB, 10 * MIB);
	expect("oom-capacity");
}

static void somebody_else_took_the_card(void **state)
{
	UNUSED(state);
	make_top(&made);
	make_events(&made);
	make_event(&made, "segment_alloc", BASE, 12 * GIB, 3);
	make_event(&made, "segment_free", BASE, 12 * GIB, 3);
	make_event(&made, "oom", 100 * MIB, GIB, 7);
	make_end(&made);
	expect("oom-other-process");
}

/* Line 5 keeps a block in every round, line 6 makes and frees eight of the same size; or, without frees, keeps them. */
static void make_rounds(bool forward_only)
{
	uint64_t kept = 0;

	make_top(&made);
	make_segment(&made, BASE, GIB);
	for (int i = 0; i < 40; i++)
		make_block(&made, BASE + (uint64_t)i * 16 * MIB, 16 * MIB, "active_allocated",
			   forward_only ? 4 + (uint64_t)i % 4 : 5);
	make_segment_end(&made);
	make_events(&made);
	for (int round = 0; round < 40; round++) {
		make_event(&made, "alloc", BASE + kept++ * 16 * MIB, 16 * MIB, forward_only ? 4 + round % 4 : 5);
		for (int i = 0; i < 16; i++)
			make_event(&made, i < 8 ? "alloc" : "free_requested",
				   BASE + GIB / 2 * 3 + (uint64_t)(i % 8) * 16 * MIB,
				   forward_only ? 4096 : 16 * MIB, 6);
	}
	/* without what stayed, half a segment is free in one piece, and never a whole one */
	make_event(&made, "oom", 10 * MIB, forward_only ? GIB : GIB / 2, 7);
	make_end(&made);
}

static void a_line_that_grows(void **state)
{
	struct found f;

	UNUSED(state);
	make_rounds(false);
	f = judge();
	assert_string_equal(verdict_cause(f.v), "oom-growth");
	assert_int_equal(f.v->c.blamed[BLAMED_growth].line.number, 5);
	done(&f);
	/* what would not have been enough is no reason */
	make_rounds(true);
	f = judge();
	assert_string_equal(verdict_cause(f.v), "oom-capacity");
	done(&f);
}

static void sizes_of_any_kind_do_no_harm(void **state)
{
	struct found f;

	UNUSED(state);
	make_top(&made);
	make_segment(&made, UINT64_MAX, UINT64_MAX);
	make_block(&made, UINT64_MAX, UINT64_MAX, "active_allocated", 0);
	make_block(&made, 0, UINT64_MAX, "inactive", 0);
	make_segment_end(&made);
	make_events(&made);
	make_event(&made, "alloc", UINT64_MAX, UINT64_MAX, 0);
	make_event(&made, "segment_free", 0, UINT64_MAX, 0);
	make_event(&made, "oom", UINT64_MAX, UINT64_MAX, 0);
	make_end(&made);
	f = judge();
	done(&f);
}

static void figures_that_cannot_be_true_are_said_and_nothing_is_certain(void **state)
{
	static const uint64_t requests[] = {(uint64_t)-5, GIB};
	struct found f;

	UNUSED(state);
	for (int i = 0; i < 2; i++) {
		make_top(&made);
		make_segment(&made, BASE, 16 * GIB);
		make_block(&made, BASE, i ? (uint64_t)255 << 40 : 15 * GIB, "active_allocated", 3);
		make_segment_end(&made);
		make_events(&made);
		make_event(&made, "oom", 100 * MIB, requests[i], 7);
		make_end(&made);
		f = judge();
		assert_non_null(verdict_damage(f.v));
		assert_non_null(strstr(verdict_damage(f.v), "1 figure in it cannot be true"));
		assert_int_not_equal(f.v->sure, SURE_CERTAIN);
		assert_string_not_equal(verdict_cause(f.v), "oom-request-too-large");
		done(&f);
	}
}

static void texts_cannot_command_a_terminal(void **state)
{
	struct found f;

	UNUSED(state);
	make_top(&made);
	make_events(&made);
	make_byte(&made, '}');
	make_byte(&made, '(');
	make_word(&made, "action", "oom");
	make_item(&made, "size", GIB);
	make_frames(&made, "\033[2J.py", 1);
	make_byte(&made, 'u');
	make_end(&made);
	f = judge();
	assert_string_equal(snap_text(f.s, snap_line(&f.l, f.d.oom.line)->file), "?[2J.py");
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_runs_code),
		cmocka_unit_test(refuses_what_is_damaged),
		cmocka_unit_test(refuses_other_pickles),
		cmocka_unit_test(refuses_the_same_event_twice),
		cmocka_unit_test(a_list_has_one_owner),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(replays_backwards_from_the_end),
		cmocka_unit_test(adds_up_the_segments),
		cmocka_unit_test(names_frames_of_the_user),
		cmocka_unit_test(tells_causes_apart),
		cmocka_unit_test(somebody_else_took_the_card),
		cmocka_unit_test(a_line_that_grows),
		cmocka_unit_test(sizes_of_any_kind_do_no_harm),
		cmocka_unit_test(figures_that_cannot_be_true_are_said_and_nothing_is_certain),
		cmocka_unit_test(texts_cannot_command_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
