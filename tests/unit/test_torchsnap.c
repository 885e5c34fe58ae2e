/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of PyTorch's allocator: the bytes of the pickle, and segments from damaged recordings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/pickle_write.h"
#include "show/torchsnap.h"
#include "read/recording/trace.h"
#include "trace_make.h"

#define CHECK_BYTES(p, want) check_bytes(p, want, sizeof(want) - 1)

static void check_bytes(struct pickle *p, const char *want, size_t n)
{
	assert_int_equal(p->out.len - 2, n);
	assert_memory_equal(p->out.data, "\x80\x04", 2);
	assert_memory_equal(p->out.data + 2, want, n);
	pickle_release(p);
}

static void pickle__numbers_take_the_shortest_form(void **state)
{
	struct pickle p;

	(void)state;
	pickle_begin(&p, 1000);
	pickle_uint(&p, 255);
	pickle_uint(&p, 256);
	pickle_uint(&p, 65536);
	pickle_uint(&p, 0x7fffffff);
	CHECK_BYTES(&p, "K\xff" "M\x00\x01" "J\x00\x00\x01\x00" "J\xff\xff\xff\x7f");
	pickle_begin(&p, 1000);
	pickle_uint(&p, 0x80000000u);
	pickle_uint(&p, 0x7f0000000000u);
	pickle_uint(&p, UINT64_MAX);
	CHECK_BYTES(&p, "\x8a\x05\x00\x00\x00\x80\x00" "\x8a\x06\x00\x00\x00\x00\x00\x7f"
			"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00");
	pickle_begin(&p, 1000);
	pickle_int(&p, -1);
	pickle_int(&p, INT64_MIN);
	pickle_float(&p, 0.5);
	pickle_bool(&p, true);
	CHECK_BYTES(&p, "J\xff\xff\xff\xff" "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"
			"G\x3f\xe0\x00\x00\x00\x00\x00\x00"
			"\x88");
}

static void pickle__what_was_written_is_referred_to(void **state)
{
	struct pickle p;
	char copy[] = "ab";

	(void)state;
	pickle_begin(&p, 1000);
	pickle_text(&p, "ab");
	assert_true(pickle_shared_list(&p, (struct pickle_key){7, 7}));
	pickle_list_end(&p);
	pickle_text(&p, copy);
	assert_false(pickle_shared_list(&p, (struct pickle_key){7, 7}));
	CHECK_BYTES(&p, "\x8c\x02" "ab\x94" "]\x94(e" "h\x00" "h\x01");
}

static void pickle__a_text_need_not_outlive_its_writing(void **state)
{
	struct pickle p;
	char text[] = "ab";

	(void)state;
	pickle_begin(&p, 1000);
	pickle_text(&p, text);
	text[0] = 'x';
	pickle_text(&p, "ab");
	CHECK_BYTES(&p, "\x8c\x02" "ab\x94" "h\x00");
}

static void pickle__the_memo_grows(void **state)
{
	static char text[3000][8];
	struct pickle p;
	size_t len;

	(void)state;
	pickle_begin(&p, 1 << 20);
	for (int i = 0; i < 3000; i++) {
		snprintf(text[i], sizeof(text[i]), "%d", i);
		pickle_text(&p, text[i]);
	}
	len = p.out.len;
	pickle_text(&p, "2999");
	pickle_text(&p, "0");
	assert_int_equal(p.out.len - len, 7);
	assert_memory_equal(p.out.data + len, "j\xb7\x0b\x00\x00" "h\x00", 7);
	pickle_release(&p);
}

static void pickle__any_bytes_become_a_text(void **state)
{
	struct pickle p;

	(void)state;
	pickle_begin(&p, 1000);
	pickle_text(&p, "a\xff\xc3\xa4");
	CHECK_BYTES(&p, "\x8c\x04" "a?\xc3\xa4\x94");
	pickle_begin(&p, 6);
	pickle_text(&p, "longer than there is room");
	assert_true(p.out.full);
	pickle_release(&p);
}

static void put(struct make *m, uint32_t kind, const struct cw_allocation *list, size_t n)
{
	memcpy(m->data + make_chunk(m, kind, (uint32_t)(8 * sizeof(*list))), list, n * sizeof(*list));
}

static struct trace *build(struct torchsnap *s, const struct cw_allocation *driver, size_t n_driver,
			   const struct cw_allocation *blocks, size_t n_blocks)
{
	struct trace *t;
	struct make m;

	make_init(&m);
	((struct cw_header *)m.data)->lost_blocks = 1;	/* else the reader itself leaves out those that overlap */
	put(&m, CW_CHUNK_ALLOCATIONS, driver, n_driver);
	put(&m, CW_CHUNK_BLOCKS, blocks, n_blocks);
	t = trace_from_bytes(m.data, m.used, NULL);
	assert_non_null(t);
	torchsnap_build(s, t, NULL);
	return t;
}

#define BUILD(s, driver, blocks) \
	build(s, driver, sizeof(driver) / sizeof(*(driver)), blocks, sizeof(blocks) / sizeof(*(blocks)))

static void snapshot__no_byte_is_counted_twice(void **state)
{
	static const struct cw_allocation driver[] = {
		{.addr = 0x1000, .size = 0x1000, .kind = CW_MEM_DEVICE},
		{.addr = 0x1800, .size = 0x4000, .kind = CW_MEM_DEVICE},	/* on top of the first */
		{.addr = 0x8000, .size = 0x1000, .kind = CW_MEM_DEVICE},	/* contains no block */
		{.addr = UINT64_MAX - 0xfff, .size = 0xfff, .kind = CW_MEM_DEVICE},
	};
	static const struct cw_allocation blocks[] = {
		{.addr = 0x800, .size = 0x1000, .kind = CW_MEM_TORCH},		/* begins before its segment */
		{.addr = 0x1000, .size = 0x400, .kind = CW_MEM_TORCH},
		{.addr = 0x1200, .size = 0x200, .kind = CW_MEM_TORCH},		/* on top of the one before */
		{.addr = 0x1c00, .size = 0x4000, .kind = CW_MEM_TORCH},		/* longer than its segment */
		{.addr = UINT64_MAX - 0xff, .size = 0xff, .kind = CW_MEM_TORCH, .device = -1},
	};
	struct torchsnap s;
	struct trace *t = BUILD(&s, driver, blocks);
	uint64_t end = 0;

	(void)state;
	assert_int_equal(s.n_segments, 3);
	assert_int_equal(s.outside, 1);
	assert_int_equal(s.overlapping, 1);
	for (size_t i = 0; i < s.n_segments; i++) {
		const struct torchsnap_segment *g = &s.segment[i];
		uint64_t sum = 0, from = g->addr;

		assert_true(g->addr >= end);
		end = g->addr + g->size;
		for (size_t k = g->first; k < g->first + g->n; k++) {
			assert_true(s.block[k].addr >= from);
			from = s.block[k].addr + s.block[k].size;
			assert_true(from <= end);
			sum += s.block[k].size;
		}
		assert_int_equal(sum, g->allocated);
	}
	assert_int_equal(s.segment[1].allocated, 0x400 + 0x400);
	torchsnap_release(&s);
	trace_free(t);
}

static void snapshot__memory_of_others_is_not_in_it(void **state)
{
	static const struct cw_allocation driver[] = {
		{.addr = 0x100000, .size = 0x1000, .kind = CW_MEM_DEVICE},
		{.addr = 0x200000, .size = 0x1000, .kind = CW_MEM_PINNED},
		{.addr = 0x300000, .size = 0x1000, .kind = CW_MEM_DEVICE},
	};
	static const struct cw_allocation blocks[] = {{.addr = 0x300200, .size = 512, .kind = CW_MEM_TORCH}};
	struct torchsnap s;
	struct trace *t = BUILD(&s, driver, blocks);

	(void)state;
	assert_int_equal(s.n_segments, 1);
	assert_int_equal(s.segment[0].addr, 0x300000);
	assert_true(s.segment[0].small);
	assert_int_equal(s.n_events, 2);
	assert_int_equal(s.event[0].action, TORCHSNAP_SEGMENT_ALLOC);
	torchsnap_release(&s);
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pickle__numbers_take_the_shortest_form),
		cmocka_unit_test(pickle__what_was_written_is_referred_to),
		cmocka_unit_test(pickle__a_text_need_not_outlive_its_writing),
		cmocka_unit_test(pickle__the_memo_grows),
		cmocka_unit_test(pickle__any_bytes_become_a_text),
		cmocka_unit_test(snapshot__no_byte_is_counted_twice),
		cmocka_unit_test(snapshot__memory_of_others_is_not_in_it),
	};

	return cmocka_run_group_tests_name("torchsnap", tests, NULL, NULL);
}
