/* SPDX-License-Identifier: Apache-2.0
 * What is copied to the GPU: written by the recorder's own code, read back, and compared with all that was copied.
 */
#include "rec_make.h"

#include "dice.h"
#include "read/recording/copies.h"

#define MANY	6000
#define LARGEST	(200u << 10)
#define SOURCES	4096u		/* offsets into `source` */
#define TO	0x7f0000000000ull

static uint8_t source[LARGEST + SOURCES];

static struct truth {
	uint64_t to, bytes;
	uint32_t offset, stack;
	bool kept;
} all[MANY];

enum { PINNED_AT = 1024, GPU_AT = 1025, MANAGED_AT = 1026, ARRAY_AT = 1027 };

static unsigned type_of(uint64_t address)
{
	uint64_t offset = address - (uint64_t)(uintptr_t)source;

	if (address >= TO)
		return 2;
	return offset == PINNED_AT ? 1 : offset == GPU_AT ? 2 : offset == MANAGED_AT ? 4 : offset == ARRAY_AT ? 3 : 0;
}

static bool is_kept(uint32_t offset)
{
	return offset != GPU_AT && offset != MANAGED_AT && offset != ARRAY_AT;
}

static void copy_many(size_t n, bool to_gpu)
{
	memory_is = type_of;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)roll(256);
	for (size_t i = 0; i < n; i++) {
		uint32_t offset = roll(4) ? (uint32_t)roll(SOURCES) : PINNED_AT + (uint32_t)roll(4);
		uint64_t bytes = roll(3) ? 1 + roll(3000) : 1 + roll(LARGEST - 1);

		clock_ns++;
		thread.chain.off = 4096 + 8 * (uint32_t)roll(100);
		all[i] = (struct truth){TO + 4096 * roll(100), bytes, offset, thread.chain.off, is_kept(offset)};
		copies_keep(&(struct copied){all[i].to, (uint64_t)(uintptr_t)source + offset, bytes, 0, to_gpu, to_gpu,
					     false});
	}
}

/* How many copies there are, and of how many the contents: they are those of the newest. */
static void compare(size_t n, bool in_stream, size_t *listed, size_t *with)
{
	const struct cw_copy **list;
	uint8_t *bytes = malloc(LARGEST);
	struct trace *t = finished();
	size_t k = 0;

	*listed = trace_copies(t, &list);
	*with = 0;
	for (size_t i = n; i > 0; i--) {
		const struct truth *want = &all[i - 1];
		const struct cw_copy *c;

		if (!want->kept)
			continue;
		if (k == *listed)
			break;
		c = list[*listed - ++k];
		assert_true(c->to == want->to && c->bytes == want->bytes && c->stack == want->stack);
		assert_int_equal(c->kept, want->bytes <= CW_COPIES_WHOLE ? want->bytes : CW_COPIES_PREFIX);
		assert_int_equal(!!(c->flags & CW_COPY_IN_STREAM), in_stream);
		assert_int_equal(c->flags & CW_COPY_PINNED, want->offset == PINNED_AT ? CW_COPY_PINNED : 0);
		if (!trace_copied(t, c, 0, bytes, c->kept))
			break;
		assert_memory_equal(bytes, source + want->offset, c->kept);
		++*with;
	}
	free(list);
	free(bytes);
	trace_free(t);
}

static size_t kept_in(size_t n, size_t bytes)
{
	size_t count = 0, sum = 0;

	for (size_t i = n; i > 0; i--) {
		if (!all[i - 1].kept)
			continue;
		sum += all[i - 1].bytes <= CW_COPIES_WHOLE ? all[i - 1].bytes : CW_COPIES_PREFIX;
		if (sum > bytes)
			break;
		count++;
	}
	return count;
}

static void ring__the_newest_copies_are_there_with_their_contents(void **state)
{
	size_t listed, with;

	for (unsigned size = 0; size < 2; size++) {
		start(state);
		rec.h->cap = size ? 64u << 20 : 16u << 20;
		copies_start();
		assert_true(copies_on());
		copy_many(MANY, size);
		compare(MANY, size, &listed, &with);
		assert_int_equal(listed, CW_COPIES / (size ? 1 : 4));
		assert_int_equal(with, kept_in(MANY, CW_COPIES_BYTES / (size ? 1 : 4)));
		assert_true(with > 20 && with < listed);
	}
}

static void ring__a_full_recording_has_none(void **state)
{
	size_t listed, with;

	start(state);
	room = (uint32_t)rec.h->used;
	copy_many(10, true);
	room = BYTES;
	compare(10, true, &listed, &with);
	assert_int_equal(listed + with, 0);
}

static void copy__what_a_graph_will_copy_is_not_kept(void **state)
{
	size_t listed, with;

	start(state);
	rec.captures = 1;
	captured_stream = 5;
	memory_is = type_of;
	for (unsigned i = 0; i < 10; i++) {
		all[i] = (struct truth){TO, 8, 0, 0, i % 2};
		thread.chain.off = 0;
		copies_keep(&(struct copied){TO, (uint64_t)(uintptr_t)source, 8, i % 2 ? 6 : 5, true, true, false});
	}
	captured_stream = 0;
	rec.captures = 0;
	compare(10, true, &listed, &with);
	assert_true(listed == 5 && with == 5);
}

static void copy__pinned_memory_that_is_gone_has_no_contents(void **state)
{
	const struct cw_copy **list;
	struct trace *t;
	uint8_t byte;

	start(state);
	memory_is = type_of;
	memory_gone = true;
	copies_keep(&(struct copied){TO, (uint64_t)(uintptr_t)source + PINNED_AT, 8, 0, true, true, false});
	memory_gone = false;
	t = finished();
	assert_int_equal(trace_copies(t, &list), 1);
	assert_false(trace_copied(t, list[0], 0, &byte, 1));
	free(list);
	trace_free(t);
}

static void copy__to_host_memory_or_from_memory_that_is_slow_to_read_is_not_kept(void **state)
{
	size_t listed, with;

	start(state);
	memory_is = type_of;
	copies_keep(&(struct copied){(uint64_t)(uintptr_t)source + 2048, (uint64_t)(uintptr_t)source, 8, 0, false,
				     false, false});
	copies_not_of_pinned();
	copies_keep(&(struct copied){TO, (uint64_t)(uintptr_t)source + PINNED_AT, 8, 0, false, true, false});
	copies_keep(&(struct copied){TO, (uint64_t)(uintptr_t)source, 0, 0, false, true, false});
	compare(0, true, &listed, &with);
	assert_int_equal(listed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring__the_newest_copies_are_there_with_their_contents),
		cmocka_unit_test(ring__a_full_recording_has_none),
		cmocka_unit_test(copy__what_a_graph_will_copy_is_not_kept),
		cmocka_unit_test(copy__pinned_memory_that_is_gone_has_no_contents),
		cmocka_unit_test(copy__to_host_memory_or_from_memory_that_is_slow_to_read_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
