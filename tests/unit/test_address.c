/* SPDX-License-Identifier: Apache-2.0
 * Whose memory the address of a fault is: recordings with blocks, segments, frees and host memory, and a fault
 * somewhere in or near them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "find/fault/culprit.h"
#include "find/fault/address.h"
#include "find/fault/fault.h"
#include "trace_builder.h"

#define SEGMENT	0x7d0000000000ull
#define MIB	(1ull << 20)
#define GIB	(1ull << 30)
#define SLOTS	8
#define FREE	125		/* cuMemFree_v2 in kb/cuda_api.def */
#define ALLOC	120

/* A scene: memory at tick 100 and earlier, a launch at 1000, the fault noticed at 2000. */
struct stage {
	struct tb b;
	struct cw_allocation *driver, *torch;
	struct cw_ring *freed, *calls;
	struct cw_range *ranges;
	struct cw_launch launch;
	struct cw_failure noticed;
	struct culprit_lane lane;
	struct culprit culprit;
	struct fault_launch match;
	uint8_t params[64];
	struct trace *trace;
	struct address a;
};

static void *chunk(struct stage *s, uint32_t kind, size_t size)
{
	return s->b.data + tb_chunk(&s->b, kind, size);
}

static struct cw_ring *ring(struct stage *s, uint32_t kind, uint32_t slot)
{
	struct cw_ring *r = chunk(s, kind, sizeof(*r) + SLOTS * slot);

	*r = (struct cw_ring){.slot_size = slot, .n_slots = SLOTS};
	return r;
}

static void begin(struct stage *s)
{
	memset(s, 0, sizeof(*s));
	tb_init(&s->b);
	s->driver = chunk(s, CW_CHUNK_ALLOCATIONS, SLOTS * sizeof(*s->driver));
	s->torch = chunk(s, CW_CHUNK_BLOCKS, SLOTS * sizeof(*s->torch));
	s->ranges = chunk(s, CW_CHUNK_RANGES, SLOTS * sizeof(*s->ranges));
	s->freed = ring(s, CW_CHUNK_FREED, sizeof(struct cw_freed));
	s->calls = ring(s, CW_CHUNK_CALLS, sizeof(struct cw_call));
	s->launch = (struct cw_launch){.ticks = 1000, .flags = CW_LAUNCH_ON(0)};
	s->noticed = (struct cw_failure){.ticks = 2000};
	s->lane.address_known = true;
	s->culprit = (struct culprit){ .fault = FAULT_ILLEGAL_ADDRESS, .lanes = &s->lane, .n_lanes = 1, .n_kept = 1,
				      .space = SASS_GLOBAL,
				      .insn = {.kind = SASS_STORE, .width = 4},
				      .params = {s->params, sizeof(s->params)}};
	s->match = (struct fault_launch){.newest = &s->launch};
}

static uint32_t at_line(struct stage *s, unsigned line)
{
	char frame[32];

	snprintf(frame, sizeof(frame), "train.py:%u:step", line);
	return tb_stack(&s->b, frame, NULL);
}

static void segment(struct stage *s, uint64_t addr, uint64_t size, int device, enum cw_memory kind)
{
	struct cw_allocation *a = s->driver;

	while (a->addr)
		a++;
	*a = (struct cw_allocation){ .addr = addr, .size = size, .ticks = 50, .kind = (uint16_t)kind,
				    .device = (int16_t)device,
				    .stack = at_line(s, 5)};
}

static void block(struct stage *s, uint64_t addr, uint64_t size, unsigned line, uint64_t ticks)
{
	struct cw_allocation *a = s->torch;

	while (a->addr)
		a++;
	*a = (struct cw_allocation){
		.addr = addr, .size = size, .ticks = ticks, .kind = CW_MEM_TORCH, .stack = at_line(s, line)};
}

static void freed(struct stage *s, uint64_t addr, uint64_t size, unsigned line, uint64_t made, uint64_t ticks)
{
	struct cw_freed *f = (struct cw_freed *)(s->freed + 1) + s->freed->head;

	*f = (struct cw_freed){ .seq = ++s->freed->head, .addr = addr, .size = size, .made_ticks = made, .ticks = ticks,
			       .kind = CW_MEM_TORCH,
			       .stack = at_line(s, line),
			       .free_stack = at_line(s, line + 1)};
}

static void call(struct stage *s, uint32_t api, uint64_t ticks, uint64_t arg, uint64_t out, unsigned line)
{
	struct cw_call *c = (struct cw_call *)(s->calls + 1) + s->calls->head;

	*c = (struct cw_call){
		.seq = ++s->calls->head, .ticks = ticks, .api = api, .arg = {arg}, .out = out, .stack = at_line(s, line)};
}

static void pointer(struct stage *s, unsigned i, uint64_t v)
{
	memcpy(s->params + i * 8, &v, sizeof(v));
}

static const struct address *fault_at(struct stage *s, uint64_t address)
{
	s->lane.address = address;
	if (!s->trace)
		s->trace = tb_trace(&s->b);
	address_find(&s->a, s->trace, &s->culprit, &s->noticed, &s->match);
	return &s->a;
}

static void end(struct stage *s)
{
	trace_free(s->trace);
}

static void address__in_live_memory_contradicts_the_fault(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	block(&s, SEGMENT + MIB, MIB, 10, 100);
	a = fault_at(&s, SEGMENT + MIB + 16);
	assert_string_equal(a->in, "live");
	assert_int_equal(a->block.made.line, 10);
	a = fault_at(&s, SEGMENT + 5 * MIB);	/* in PyTorch's cache: not a tensor, but still mapped */
	assert_string_equal(a->in, "live");
	assert_false(a->block.known);
	assert_int_equal(a->segment.size, 20 * MIB);
	end(&s);
}

static void address__that_was_not_decoded_is_left_alone(void **state)
{
	struct stage s;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	s.culprit.address_doubtful = true;
	assert_string_equal(fault_at(&s, SEGMENT + 64 * MIB)->in, "");
	s.culprit.address_doubtful = false;
	s.culprit.space = SASS_SHARED;
	assert_string_equal(fault_at(&s, SEGMENT + 64 * MIB)->in, "");
	end(&s);
}

/* The whole warp is blamed; its first lanes stayed in bounds. */
static void address__of_the_lane_that_left_the_memory_counts(void **state)
{
	struct culprit_lane lanes[4] = {{.address_known = true, .address = SEGMENT + 2 * MIB - 8},
					{.address_known = true, .address = SEGMENT + 2 * MIB - 4},
					{.address_known = true, .address = SEGMENT + 2 * MIB},
					{.address_known = true, .address = SEGMENT + 2 * MIB + 4}};
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 2 * MIB, 0, CW_MEM_DEVICE);
	s.culprit.lanes = lanes;
	s.culprit.n_lanes = s.culprit.n_kept = 4;
	a = fault_at(&s, 0);
	assert_string_equal(a->in, "near");
	assert_int_equal(a->distance, 0);
	assert_int_equal(a->lane, 2);
	assert_int_equal(a->threads, 2);
	lanes[2].address = lanes[3].address = SEGMENT;
	a = fault_at(&s, 0);
	assert_string_equal(a->in, "live");
	assert_int_equal(a->lane, 0);
	assert_int_equal(a->threads, 4);
	end(&s);
}

static void near__the_block_that_the_kernel_was_given_counts(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	block(&s, SEGMENT, MIB, 10, 100);
	block(&s, SEGMENT + MIB, MIB, 11, 100);
	pointer(&s, 2, SEGMENT + 512);	/* into the first one, although the second is nearer */
	a = fault_at(&s, SEGMENT + 40 * MIB);
	assert_string_equal(a->in, "near");
	assert_int_equal(a->block.made.line, 10);
	assert_int_equal(a->segment.made.line, 5);
	assert_true(a->past && a->param_sure && !a->several);
	assert_int_equal(a->param_byte, 16);
	assert_int_equal(a->distance, 39 * MIB);
	pointer(&s, 0, SEGMENT + MIB);
	a = fault_at(&s, SEGMENT + 40 * MIB);
	assert_int_equal(a->block.made.line, 11);
	assert_true(a->several);
	end(&s);
}

/* What the code says outweighs what is nearest, and what was there before. */
static void near__the_pointer_that_the_code_used_counts(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	block(&s, SEGMENT, MIB, 10, 100);
	block(&s, SEGMENT + MIB, MIB, 11, 100);
	pointer(&s, 0, SEGMENT + MIB);
	pointer(&s, 1, 12345);
	pointer(&s, 2, SEGMENT + 512);
	freed(&s, SEGMENT + 30 * MIB, 20 * MIB, 20, 100, 500);
	s.culprit.origin = 1u << 2 | 1u << 1;	/* a pointer, and a number that was added */
	a = fault_at(&s, SEGMENT + 40 * MIB);
	assert_string_equal(a->in, "near");
	assert_int_equal(a->block.made.line, 10);
	assert_int_equal(a->param_byte, 16);
	assert_true(a->traced && a->past && a->distance == 39 * MIB);
	s.culprit.origin = 1u << 1;		/* does not point to anything live */
	a = fault_at(&s, SEGMENT + 40 * MIB);
	assert_string_equal(a->in, "freed");
	assert_false(a->traced);
	s.culprit.values.pointer_known = true;	/* executed, the code says which one it is */
	s.culprit.values.pointer = 16;
	a = fault_at(&s, SEGMENT + 40 * MIB);
	assert_true(a->traced && a->param_byte == 16 && a->distance == 39 * MIB);
	s.culprit.values.pointer_known = false;
	s.culprit.view = (struct view){.n = 1, .at = 16};	/* and so do sizes and strides */
	a = fault_at(&s, SEGMENT + 40 * MIB);
	assert_true(a->traced && a->param_byte == 16);
	s.culprit.view.at = 8;
	assert_false(fault_at(&s, SEGMENT + 40 * MIB)->traced);
	end(&s);
}

static void near__without_pointers_the_nearest_counts(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	segment(&s, SEGMENT + GIB, 20 * MIB, 0, CW_MEM_DEVICE);
	block(&s, SEGMENT + MIB, MIB, 10, 100);
	a = fault_at(&s, SEGMENT - 64);
	assert_int_equal(a->block.made.line, 10);
	assert_false(a->past || a->param_sure);
	assert_int_equal(a->distance, MIB + 64);
	a = fault_at(&s, SEGMENT + GIB - 64);	/* beside a segment in which PyTorch has no block */
	assert_false(a->block.known);
	assert_int_equal(a->segment.addr, SEGMENT + GIB);
	end(&s);
}

static void near__the_tensors_are_those_of_the_launch(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	freed(&s, SEGMENT, MIB, 10, 100, 1500);		/* live at the launch, freed since */
	freed(&s, SEGMENT, 2 * MIB, 20, 1600, 1700);	/* allocated in its place since */
	block(&s, SEGMENT, 3 * MIB, 30, 1800);
	pointer(&s, 0, SEGMENT);
	a = fault_at(&s, SEGMENT + 100 * MIB);
	assert_int_equal(a->block.size, MIB);
	assert_int_equal(a->block.made.line, 10);
	assert_null(a->block.freed.file);
	end(&s);
}

static void freed__has_the_lines_of_the_tensor_and_of_the_segment(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	call(&s, ALLOC, 100, 0, SEGMENT, 5);
	freed(&s, SEGMENT + 512, 1024, 10, 200, 300);
	freed(&s, SEGMENT + 512, 1024, 20, 400, 500);
	call(&s, FREE, 600, SEGMENT, 2 * MIB, 30);
	freed(&s, SEGMENT + 512, 1024, 40, 2100, 2200);	/* after the fault */
	a = fault_at(&s, SEGMENT + 600);
	assert_string_equal(a->in, "freed");
	assert_int_equal(a->block.made.line, 20);
	assert_int_equal(a->block.freed.line, 21);
	assert_int_equal(a->segment.made.line, 5);
	assert_int_equal(a->segment.freed.line, 30);
	a = fault_at(&s, SEGMENT + MIB);
	assert_false(a->block.known);
	assert_int_equal(a->segment.size, 2 * MIB);
	end(&s);
}

/* The table remembers longer than the ring of calls: many calls have passed since. */
static void freed__the_drivers_memory_long_ago(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	freed(&s, SEGMENT, 2 * MIB, 10, 100, 200);
	((struct cw_freed *)(s.freed + 1))->kind = CW_MEM_DEVICE;
	a = fault_at(&s, SEGMENT + 600);
	assert_string_equal(a->in, "freed");
	assert_false(a->block.known);
	assert_int_equal(a->segment.made.line, 10);
	assert_int_equal(a->segment.freed.line, 11);
	end(&s);
}

/* The tensor was live when the kernel was launched; it and its segment were freed while the kernel ran. */
static void freed__while_the_kernel_ran(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	call(&s, ALLOC, 100, 0, SEGMENT, 5);
	freed(&s, SEGMENT, 1024, 10, 200, 1100);
	call(&s, FREE, 1200, SEGMENT, 2 * MIB, 30);
	pointer(&s, 0, SEGMENT);
	a = fault_at(&s, SEGMENT + 16);
	assert_string_equal(a->in, "freed");
	assert_int_equal(a->block.freed.line, 11);
	end(&s);
}

static void overflow__of_an_index_is_known_by_pointer_and_size(void **state)
{
	static const struct { uint64_t size; int64_t offset; unsigned width; bool wraps, sure; } rows[] = {
		{10 * GIB, -(int64_t)(8 * GIB), 4, true, true}, /* index 2^31, the first that overflows */
		{10 * GIB, -(int64_t)(7 * GIB), 4, true, true},
		{8 * GIB, -(int64_t)(8 * GIB), 4, false, false},      /* the tensor has no element 2^31 */
		{10 * GIB, -(int64_t)(8 * GIB) - 4, 4, false, false}, /* below the smallest index */
		{10 * GIB, -(int64_t)(5 * GIB), 4, false, false},     /* the intended element is past the end */
		{30 * GIB, -(int64_t)(8 * GIB), 4, true, true},
		{48 * GIB, -(int64_t)(1 * MIB), 4, true, false}, /* may also be a small negative index */
		{48 * GIB, -4, 4, false, false},		 /* certainly one */
		{5 * GIB, -(int64_t)(4 * GIB), 2, true, true},
		{3 * GIB, -(int64_t)(2 * GIB), 1, true, true},
		{3 * GIB, -(int64_t)(2 * GIB), 4, true, false},	      /* bytes were counted in 32 bits */
		{10 * GIB, -(int64_t)(8 * GIB), 16, true, false},     /* a vector of four elements */
		{10 * GIB, -(int64_t)(8 * GIB) + 2, 4, false, false}, /* between two elements */
		{10 * GIB, (int64_t)(12 * GIB), 4, false, false},     /* past the end */
	};
	struct stage s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct address *a;

		begin(&s);
		segment(&s, SEGMENT, rows[i].size, 0, CW_MEM_DEVICE);
		block(&s, SEGMENT, rows[i].size, 10, 100);
		pointer(&s, 0, SEGMENT);
		s.culprit.insn.width = rows[i].width;
		a = fault_at(&s, SEGMENT + (uint64_t)rows[i].offset);
		if (a->wraps != rows[i].wraps || a->wraps_sure != rows[i].sure)
			fail_msg("row %zu: %d %d", i, a->wraps, a->wraps_sure);
		assert_string_equal(a->in, "near");
		end(&s);
	}
}

/* An index of 6,442,450,944 (3 * 2^31) that becomes negative is too small by 2^33. */
static void overflow__may_go_round_more_than_once(void **state)
{
	struct stage s;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 25 * GIB, 0, CW_MEM_DEVICE);
	pointer(&s, 0, SEGMENT + 2 * GIB);
	assert_true(fault_at(&s, SEGMENT + 2 * GIB - 8 * GIB)->wraps_sure);
	end(&s);
}

static void overflow__without_a_pointer_is_not_sure(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 10 * GIB, 0, CW_MEM_DEVICE);
	a = fault_at(&s, SEGMENT - 8 * GIB);
	assert_true(a->wraps && !a->wraps_sure && !a->param_sure);
	end(&s);
}

static void device__of_the_memory_is_not_the_kernels(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 1, CW_MEM_DEVICE);
	pointer(&s, 0, SEGMENT);
	a = fault_at(&s, SEGMENT + 64);
	assert_string_equal(a->in, "other-device");
	assert_true(a->param_sure && a->device_sure);
	assert_int_equal(a->device, 0);
	assert_int_equal(a->segment.device, 1);
	s.culprit.device = 3;		/* the dump numbers devices differently */
	assert_false(fault_at(&s, SEGMENT + 64)->device_sure);
	s.launch.flags = 0;		/* not known */
	assert_string_equal(fault_at(&s, SEGMENT + 64)->in, "live");
	s.launch.flags = CW_LAUNCH_ON(0);
	s.culprit.address_doubtful = true;
	a = fault_at(&s, 0);		/* the parameter alone */
	assert_string_equal(a->in, "other-device");
	assert_false(a->param_sure);
	end(&s);
}

static void device__with_peer_access_is_no_reason(void **state)
{
	struct stage s;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 1, CW_MEM_DEVICE);
	s.b.h->peers[0] = 1u << 1;
	assert_string_equal(fault_at(&s, SEGMENT + 64)->in, "live");
	end(&s);
}

#define HEAP	0x7f1200000000ull

static void host__memory_that_a_parameter_points_to(void **state)
{
	struct stage s;
	const struct address *a;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	segment(&s, HEAP + 8 * MIB, MIB, -1, CW_MEM_REGISTERED);	/* a part of it that the GPU may use */
	s.ranges[0] = (struct cw_range){HEAP, HEAP + 64 * MIB};
	pointer(&s, 0, SEGMENT);
	pointer(&s, 1, HEAP + MIB);
	a = fault_at(&s, HEAP + MIB + 128);
	assert_string_equal(a->in, "host");
	assert_int_equal(a->param_byte, 8);
	assert_true(a->param_sure);
	a = fault_at(&s, HEAP + 8 * MIB);
	assert_string_equal(a->in, "live");
	end(&s);
}

static void host__a_stray_address_is_no_host_pointer(void **state)
{
	struct stage s;

	(void)state;
	begin(&s);
	segment(&s, SEGMENT, 20 * MIB, 0, CW_MEM_DEVICE);
	s.ranges[0] = (struct cw_range){HEAP, HEAP + 64 * MIB};
	pointer(&s, 0, SEGMENT);	/* all its arguments are device memory */
	assert_string_equal(fault_at(&s, HEAP + MIB)->in, "near");
	pointer(&s, 0, 0);
	assert_string_equal(fault_at(&s, HEAP + MIB)->in, "host");
	assert_false(s.a.param_sure);
	assert_string_equal(fault_at(&s, HEAP + 64 * MIB)->in, "near");
	end(&s);
}

/* The driver maps device memory into the process, too. */
static void host__where_the_driver_allocates_is_not_the_hosts(void **state)
{
	struct stage s;

	(void)state;
	begin(&s);
	segment(&s, HEAP + 2 * MIB, MIB, 0, CW_MEM_DEVICE);
	s.ranges[0] = (struct cw_range){HEAP, HEAP + 64 * MIB};
	assert_string_equal(fault_at(&s, HEAP + 10 * MIB)->in, "near");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address__in_live_memory_contradicts_the_fault),
		cmocka_unit_test(address__that_was_not_decoded_is_left_alone),
		cmocka_unit_test(address__of_the_lane_that_left_the_memory_counts),
		cmocka_unit_test(near__the_block_that_the_kernel_was_given_counts),
		cmocka_unit_test(near__the_pointer_that_the_code_used_counts),
		cmocka_unit_test(near__without_pointers_the_nearest_counts),
		cmocka_unit_test(near__the_tensors_are_those_of_the_launch),
		cmocka_unit_test(freed__has_the_lines_of_the_tensor_and_of_the_segment),
		cmocka_unit_test(freed__the_drivers_memory_long_ago),
		cmocka_unit_test(freed__while_the_kernel_ran),
		cmocka_unit_test(overflow__of_an_index_is_known_by_pointer_and_size),
		cmocka_unit_test(overflow__may_go_round_more_than_once),
		cmocka_unit_test(overflow__without_a_pointer_is_not_sure),
		cmocka_unit_test(device__of_the_memory_is_not_the_kernels),
		cmocka_unit_test(device__with_peer_access_is_no_reason),
		cmocka_unit_test(host__memory_that_a_parameter_points_to),
		cmocka_unit_test(host__a_stray_address_is_no_host_pointer),
		cmocka_unit_test(host__where_the_driver_allocates_is_not_the_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
