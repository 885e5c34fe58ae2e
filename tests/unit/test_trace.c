/* SPDX-License-Identifier: Apache-2.0
 * The reader of recordings: finds what is there, and survives what is not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fs.h"
#include "compat/cuda_errors.h"
#include "formats/demangle.h"
#include "read/recording/trace_memory.h"
#include "trace_make.h"

/* A copy of the trace, so that the sanitizer detects a read beyond `len`. */
static struct trace *open_cut(const struct make *m, size_t len, struct err *e)
{
	void *copy = malloc(len ? len : 1);

	memcpy(copy, m->data, len);
	return trace_from_bytes(copy, len, e);
}

static struct trace *open_made(const struct make *m)
{
	struct trace *t = open_cut(m, m->used, NULL);

	assert_non_null(t);
	return t;
}

static void walk_memory(struct trace *t)
{
	const struct cw_sample *sample;
	const struct trace_node *node;
	const struct cw_site *s;
	size_t i, n = trace_sites(t, &s);
	int device;

	for (i = 0; i < n; i++) {
		trace_stack(t, s[i].stack);
		trace_site_at_peak(t, &s[i]);
	}
	for (device = -1; device <= CW_MAX_DEVICES; device++)
		trace_timeline(t, device, &sample, &n);
	n = trace_nodes(t, &node);
	for (i = 0; i < n; i++)
		trace_stack(t, node[i].stack);
}

/* Uses everything in a trace. */
static void walk(struct trace *t)
{
	const struct cw_failure *const *f;
	const struct cw_launch *const *l;
	const struct cw_call *const *c;
	const struct cw_allocation *const *a;
	size_t i, n;

	n = trace_failures(t, &f);
	for (i = 0; i < n; i++)
		trace_stack(t, f[i]->stack);
	n = trace_launches(t, &l);
	for (i = 0; i < n; i++)
		trace_function_name(t, l[i]->func);
	n = trace_calls(t, &c);
	for (i = 0; i < n; i++)
		api_name(c[i]->api);
	trace_allocations(t, &a);
	walk_memory(t);
}

static void trace__what_was_written_is_found(void **state)
{
	const struct cw_failure *const *f;
	const struct cw_call *const *c;
	const struct cw_allocation *const *a;
	const struct cw_stack *s;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	make_usual(&m);
	t = open_made(&m);
	assert_int_equal(trace_header(t)->pid, 4242);
	assert_int_equal(trace_failures(t, &f), 1);
	assert_int_equal(f[0]->grid[1], 70000);
	s = trace_stack(t, f[0]->stack);
	assert_non_null(s);
	assert_string_equal(trace_string(t, s->frame[0].file), "train.py");
	assert_int_equal(s->frame[0].line, 32);
	assert_string_equal(trace_function_name(t, f[0]->func), "fill(float*, long)");
	assert_int_equal(trace_calls(t, &c), 2);
	assert_string_equal(api_name(c[1]->api), "cuMemAlloc_v2");
	assert_int_equal(trace_allocations(t, &a), 1);
	assert_int_equal(a[0]->size, 4096);
	trace_free(t);
	free(m.data);
}

static void trace__a_file_is_read_like_bytes(void **state)
{
	char path[] = "/tmp/cuwhy-test-XXXXXX";
	int fd = mkstemp(path);
	struct err e = {0};
	struct trace *t;
	struct make m;

	(void)state;
	assert_true(fd >= 0);
	make_init(&m);
	make_usual(&m);
	assert_int_equal(fs_write(path, m.data, m.used, NULL), 0);
	t = trace_open(path, &e);
	assert_non_null(t);
	trace_free(t);
	assert_int_equal(fs_write(path, "something else", 14, NULL), 0);
	assert_null(trace_open(path, &e));
	assert_non_null(strstr(e.msg, "not a cuwhy recording"));
	unlink(path);
	close(fd);
	assert_null(trace_open(path, &e));
	assert_int_equal(e.code, -ENOENT);
	assert_null(trace_open("/", &e));
	free(m.data);
}

static void trace__launches_are_in_order_of_time(void **state)
{
	const struct cw_launch *const *l;
	struct trace *t;
	struct make m;
	size_t i;

	(void)state;
	make_init(&m);
	make_usual(&m);
	t = open_made(&m);
	assert_int_equal(trace_launches(t, &l), 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(l[i]->seq, i + 3);
	trace_free(t);
	free(m.data);
}

static void ring__a_slot_left_busy_is_skipped(void **state)
{
	const struct cw_launch *const *list;
	struct cw_launch *l;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	l = make_ring(&m, CW_CHUNK_LAUNCHES, 4, sizeof(*l), 7);
	l[0].seq = 5;
	l[1].seq = 0;		/* being written when the writer was killed */
	l[2].seq = 3;		/* from the previous round: 7 was claimed but not started */
	l[3].seq = 4;
	t = open_made(&m);
	assert_int_equal(trace_launches(t, &list), 2);
	assert_int_equal(list[0]->seq + list[1]->seq, 9);
	trace_free(t);
	free(m.data);
}

static void ring__nonsense_gives_nothing(void **state)
{
	static const struct { uint32_t slots, size; uint64_t head; } bad[] = {
		{3, sizeof(struct cw_launch), 3}, {0, sizeof(struct cw_launch), 3},
		{4, 8, 3}, {4, sizeof(struct cw_launch) + 1, 3}, {4, UINT32_MAX, UINT64_MAX},
		{0x80000000u, sizeof(struct cw_launch), UINT64_MAX},
	};
	const struct cw_launch *const *list;
	struct cw_ring *r;
	struct trace *t;
	struct make m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_init(&m);
		r = (struct cw_ring *)make_ring(&m, CW_CHUNK_LAUNCHES, 4, sizeof(**list), 0) - 1;
		r->n_slots = bad[i].slots;
		r->slot_size = bad[i].size;
		r->head = bad[i].head;
		t = open_made(&m);
		assert_int_equal(trace_launches(t, &list), 0);
		trace_free(t);
		free(m.data);
	}
}

static void trace__a_captured_launch_is_listed_once(void **state)
{
	const struct cw_launch *const *list;
	struct cw_launch *l;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	l = make_ring(&m, CW_CHUNK_LAUNCHES, 2, sizeof(*l), 1);
	l[0] = (struct cw_launch){.seq = 1, .ticks = 9, .tid = 3, .flags = CW_LAUNCH_CAPTURED};
	l = make_ring(&m, CW_CHUNK_GRAPHS, 2, sizeof(*l), 2);
	l[0] = (struct cw_launch){.seq = 1, .ticks = 5, .tid = 3, .flags = CW_LAUNCH_CAPTURED};
	l[1] = (struct cw_launch){.seq = 2, .ticks = 9, .tid = 3, .flags = CW_LAUNCH_CAPTURED};
	t = open_made(&m);
	assert_int_equal(trace_launches(t, &list), 2);
	assert_int_equal(list[0]->ticks, 5);
	trace_free(t);
	free(m.data);
}

static void trace__the_newest_of_two_blocks_at_one_address_counts(void **state)
{
	const struct cw_allocation *const *list;
	struct cw_allocation *a;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	a = (struct cw_allocation *)(m.data + make_chunk(&m, CW_CHUNK_ALLOCATIONS, 6 * sizeof(*a)));
	a[0] = (struct cw_allocation){.addr = 0x2000, .size = 1, .ticks = 5};
	a[1] = (struct cw_allocation){.addr = 0x1000, .size = 2, .ticks = 1};
	a[3] = (struct cw_allocation){.addr = 0x2000, .size = 3, .ticks = 9};
	a[4] = (struct cw_allocation){.addr = UINT64_MAX, .size = 4096, .ticks = 9};
	t = open_made(&m);
	assert_int_equal(trace_allocations(t, &list), 2);
	assert_int_equal(list[0]->addr, 0x1000);
	assert_int_equal(list[1]->size, 3);
	trace_free(t);
	free(m.data);
}

/* PyTorch's blocks are inside the driver's allocations, so they have their own list. */
static void trace__blocks_are_listed_apart(void **state)
{
	const struct cw_allocation *const *list;
	struct cw_allocation *a;
	struct make m;
	struct trace *t;

	(void)state;
	make_init(&m);
	make_usual(&m);
	a = (struct cw_allocation *)(m.data + make_chunk(&m, CW_CHUNK_BLOCKS, 4 * sizeof(*a)));
	a[1] = (struct cw_allocation){.addr = 0x7000200, .size = 512, .kind = CW_MEM_TORCH};
	a[3] = (struct cw_allocation){.addr = 0x7000000, .size = 512, .kind = CW_MEM_TORCH};
	t = trace_from_bytes(m.data, MAKE_BYTES, NULL);
	assert_int_equal(trace_allocations(t, &list), 1);
	assert_int_equal(list[0]->size, 4096);
	assert_int_equal(trace_blocks(t, &list), 2);
	assert_int_equal(list[0]->addr, 0x7000000);
	assert_int_equal(list[1]->addr, 0x7000200);
	trace_free(t);
}

static void trace__freed_blocks_come_in_order_and_whole(void **state)
{
	const struct cw_freed *const *list;
	struct cw_freed *f;
	struct make m;
	struct trace *t;

	(void)state;
	make_init(&m);
	f = make_ring(&m, CW_CHUNK_FREED, 4, sizeof(*f), 6);
	f[0] = (struct cw_freed){.seq = 5, .addr = 0x5000, .size = 1};
	f[1] = (struct cw_freed){.seq = 0, .addr = 0x6000, .size = 1};	/* its writer was killed */
	f[2] = (struct cw_freed){.seq = 3, .addr = 0x3000, .size = 1};
	f[3] = (struct cw_freed){.seq = 4, .addr = 0x4000, .size = UINT64_MAX};
	t = trace_from_bytes(m.data, MAKE_BYTES, NULL);
	assert_int_equal(trace_freed(t, &list), 2);
	assert_int_equal(list[0]->addr, 0x3000);
	assert_int_equal(list[1]->addr, 0x5000);
	trace_free(t);
}

static void trace__ranges_end_where_the_writer_stopped(void **state)
{
	const struct cw_range *list;
	struct cw_range *r;
	struct make m;
	struct trace *t;

	(void)state;
	make_init(&m);
	r = (struct cw_range *)(m.data + make_chunk(&m, CW_CHUNK_RANGES, 8 * sizeof(*r)));
	r[0] = (struct cw_range){0x1000, 0x2000};
	r[1] = (struct cw_range){0x5000, 0x9000};
	t = trace_from_bytes(m.data, MAKE_BYTES, NULL);
	assert_int_equal(trace_ranges(t, &list), 2);
	assert_int_equal(list[1].end, 0x9000);
	trace_free(t);
	make_init(&m);
	t = trace_from_bytes(m.data, MAKE_BYTES, NULL);
	assert_int_equal(trace_ranges(t, &list), 0);
	trace_free(t);
}

static void trace__memory_is_found_by_site_time_and_node(void **state)
{
	const struct cw_timeline *l;
	const struct cw_sample *sample;
	const struct trace_node *node;
	const struct cw_epoch *epoch;
	uint64_t held[CW_EPOCHS];
	const struct cw_site *s;
	struct trace *t;
	struct make m;
	size_t n;

	(void)state;
	make_init(&m);
	make_memory(&m, 8);
	t = open_made(&m);
	assert_int_equal(trace_sites(t, &s), 3);
	assert_int_equal(s[0].kind, 0);
	assert_int_equal(trace_site_at_peak(t, &s[1]), 4096);	/* nothing has happened to it since */
	assert_int_equal(trace_site_at_peak(t, &s[2]), 2048);
	assert_int_equal(trace_site_at_peak(t, &s[1]) + trace_site_at_peak(t, &s[2]), trace_memory(t, 0)->peak_allocated);
	l = trace_timeline(t, 0, &sample, &n);
	assert_non_null(l);
	assert_int_equal(n, 3);
	assert_int_equal(sample[1].allocated, 6144);
	assert_null(trace_timeline(t, 1, &sample, &n));
	assert_int_equal(n, 0);
	assert_null(trace_memory(t, -1));
	assert_null(trace_memory(t, CW_MAX_DEVICES));
	assert_non_null(trace_epochs(t, 0, &epoch, &n));
	assert_int_equal(n, 2);
	assert_true(trace_site_held(t, 1, held) && held[0] == 4096 && held[1] == 4096);
	assert_true(trace_site_held(t, 2, held) && held[0] == 1024 && held[1] == 2048);	/* as the halving chose */
	assert_false(trace_site_held(t, 3, held));
	assert_null(trace_epochs(t, 1, &epoch, &n));
	assert_null(trace_epochs(t, CW_MAX_DEVICES, &epoch, &n));
	assert_int_equal(trace_nodes(t, &node), 2);
	assert_true(node[0].has_run && node[0].stack == 8 && node[0].sequence == 4);
	assert_true(!node[1].has_run && node[1].stack == 8 && node[1].sequence == 5);
	trace_free(t);
	free(m.data);
}

/* Killed while neighbors were being merged; a wrong length; an impossible device. */
static void trace__samples_out_of_order_are_dropped(void **state)
{
	const struct cw_sample *sample;
	const struct cw_site *s;
	struct cw_timeline *l;
	struct cw_site *made;
	struct cw_sample *p;
	struct trace *t;
	struct make m;
	size_t n;

	(void)state;
	make_init(&m);
	l = (struct cw_timeline *)(m.data + make_chunk(&m, CW_CHUNK_TIMELINE, sizeof(*l) + 4 * sizeof(*p)));
	*l = (struct cw_timeline){.device = 2, .n = UINT32_MAX, .n_max = 4};
	p = (struct cw_sample *)(l + 1);
	p[0] = (struct cw_sample){.ticks = 100, .allocated = 1};
	p[1] = (struct cw_sample){.ticks = 300, .allocated = 2};
	p[2] = (struct cw_sample){.ticks = 200, .allocated = 3};
	p[3] = (struct cw_sample){.ticks = 400, .allocated = 4};
	made = (struct cw_site *)(m.data + make_chunk(&m, CW_CHUNK_SITES, 4 * sizeof(*made)));
	made[1] = (struct cw_site){.kind = CW_MEM_DEVICE, .device = 700, .live = 5};
	t = open_made(&m);
	assert_non_null(trace_timeline(t, 2, &sample, &n));
	assert_int_equal(n, 3);
	assert_int_equal(sample[1].ticks, 300);
	assert_int_equal(sample[2].ticks, 400);
	assert_int_equal(trace_sites(t, &s), 2);
	assert_int_equal(s[1].device, -1);
	assert_int_equal(trace_site_at_peak(t, &s[1]), 5);
	trace_free(t);
	free(m.data);
}

static void trace__a_layout_is_whole_or_none(void **state)
{
	struct cw_function f = {.layout = 0};
	struct cw_layout *l;
	uint32_t off;
	struct make m;
	struct trace *t;

	(void)state;
	make_init(&m);
	off = make_chunk(&m, CW_CHUNK_HEAP, 64);
	l = (struct cw_layout *)(m.data + off);
	l->n = 2;
	l->param[1].off = 8;
	t = trace_from_bytes(m.data, MAKE_BYTES, NULL);
	assert_null(trace_layout(t, NULL));
	assert_null(trace_layout(t, &f));
	f.layout = off;
	assert_int_equal(trace_layout(t, &f)->param[1].off, 8);
	l->n = UINT32_MAX;
	assert_null(trace_layout(t, &f));
	f.layout = MAKE_BYTES;
	assert_null(trace_layout(t, &f));
	trace_free(t);
}

static void trace__failures_come_in_the_order_they_were_noticed(void **state)
{
	const struct cw_failure *const *list;
	struct cw_failure *f;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	f = (struct cw_failure *)(m.data + make_chunk(&m, CW_CHUNK_FAILURES, 5 * sizeof(*f)));
	f[0].seq = 9;
	f[2].seq = 2;
	f[3].seq = 9;
	f[4].seq = 4;
	f[4].n_args = 4000;
	memset(f[4].text, 'x', sizeof(f[4].text));
	t = open_made(&m);
	assert_int_equal(trace_failures(t, &list), 3);
	assert_int_equal(list[0]->seq, 2);
	assert_int_equal(list[1]->n_args, CW_MAX_ARGS);
	assert_int_equal(strlen(list[1]->text), sizeof(f[4].text) - 1);
	trace_free(t);
	free(m.data);
}

static void trace__cut_short_at_any_byte_it_opens_or_says_why(void **state)
{
	struct err e;
	struct trace *t;
	struct make m;
	size_t len;

	(void)state;
	make_init(&m);
	make_usual(&m);
	make_memory(&m, 8);
	for (len = 0; len < m.used; len += len < 256 ? 1 : 97) {
		e = (struct err){0};
		t = open_cut(&m, len, &e);
		if (t)
			walk(t);
		else
			assert_true(e.code < 0 && e.msg[0]);
		trace_free(t);
	}
	free(m.data);
}

static void trace__a_chunk_list_full_of_garbage_is_survived(void **state)
{
	struct trace *t;
	struct make m;
	unsigned int round, i;
	uint32_t *words;

	(void)state;
	srand(1);
	for (round = 0; round < 200; round++) {
		make_init(&m);
		make_usual(&m);
		make_memory(&m, 8);
		make_header(&m)->n_chunks = (uint32_t)rand();
		words = (uint32_t *)make_header(&m)->chunk;
		for (i = 0; i < 3; i++)
			words[rand() % 60] = (uint32_t)rand() >> (rand() % 31);
		t = open_made(&m);
		walk(t);
		trace_free(t);
		free(m.data);
	}
}

static void trace__offsets_that_lead_nowhere_give_nothing(void **state)
{
	static const uint32_t offs[] = {0, 1, 2, 3, 65000, MAKE_BYTES, UINT32_MAX, UINT32_MAX - 3};
	struct trace *t;
	struct make m;
	size_t i;

	(void)state;
	make_init(&m);
	make_usual(&m);
	t = open_made(&m);
	for (i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
		assert_string_equal(trace_string(t, offs[i]), "");
		assert_null(trace_stack(t, offs[i]));
	}
	assert_null(trace_function(t, 0));
	assert_null(trace_function(t, 2));
	assert_null(trace_function(t, UINT32_MAX));
	assert_string_equal(trace_function_name(t, 99), "");
	trace_free(t);
	free(m.data);
}

static void trace__an_older_header_is_filled_up_with_unknown(void **state)
{
	const struct cw_header *h;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	make_header(&m)->header_size = offsetof(struct cw_header, rank);
	t = open_made(&m);
	h = trace_header(t);
	assert_int_equal(h->pid, 4242);
	assert_true(h->rank == CW_UNKNOWN && h->device_count == CW_UNKNOWN);
	assert_int_equal(h->device[0].attr[0], -1);
	trace_free(t);
	free(m.data);
}

static void trace__a_newer_format_is_refused_with_a_reason(void **state)
{
	struct err e = {0};
	struct make m;

	(void)state;
	make_init(&m);
	make_header(&m)->major = CW_MAJOR + 1;
	assert_null(open_cut(&m, m.used, &e));
	assert_non_null(strstr(e.msg, "format 2"));
	free(m.data);
}

static void trace__ticks_become_nanoseconds(void **state)
{
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);		/* 1000 ticks took 500 ns */
	t = open_made(&m);
	assert_int_equal(trace_ns(t, 1200), 100);
	assert_int_equal(trace_ns(t, 5), 0);
	trace_free(t);
	free(m.data);
}

static void demangle__names_for_people(void **state)
{
	char *s;

	(void)state;
	s = demangle("_Z4fillPfl");
	assert_string_equal(s, "fill(float*, long)");
	free(s);
	assert_null(demangle("triton_poi_fused_add_0"));
	assert_null(demangle("_Z"));
	assert_null(demangle("_ZZZZZZ"));
}

static void demangle__a_name_that_explodes_is_given_up(void **state)
{
	char name[4096] = "_Z1fI1XE", *p = name + strlen(name), *s;
	int i;

	(void)state;
	/* Every parameter refers to the previous one twice. */
	p += snprintf(p, 64, "v1AI1XS0_E");
	for (i = 1; i < 60; i++)
		p += snprintf(p, 64, "1AIS%d_S%d_E", i, i);
	s = demangle(name);
	free(s);
	/* Deep instead of wide. */
	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z1f", 4);
	name[sizeof(name) - 2] = 'i';
	name[sizeof(name) - 1] = '\0';
	s = demangle(name);
	free(s);
}

static void demangle__long_names_are_demangled_too(void **state)
{
	static const char type[] = "N2ns9SomethingE";
	char name[2048] = "_Z1f", *s;
	size_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		memcpy(name + 4 + i * (sizeof(type) - 1), type, sizeof(type));
	s = demangle(name);
	assert_non_null(s);
	assert_memory_equal(s, "f(ns::Something, ns::Something, ", 32);
	free(s);
}

static void cuda_errors__names_texts_and_stickiness(void **state)
{
	(void)state;
	assert_string_equal(cuda_error_name(700), "CUDA_ERROR_ILLEGAL_ADDRESS");
	assert_string_equal(cuda_error_runtime_name(700), "cudaErrorIllegalAddress");
	assert_string_equal(cuda_error_text(700), "an illegal memory access was encountered");
	assert_true(cuda_error_sticky(700));
	assert_string_equal(cuda_error_name(9), "cudaErrorInvalidConfiguration");
	assert_string_equal(cuda_error_driver_name(9), "");
	assert_string_equal(cuda_error_runtime_name(916), "");
	assert_false(cuda_error_sticky(2));
	assert_false(cuda_error_sticky(4));
	assert_string_equal(cuda_error_name(12345), "");
	assert_string_equal(cuda_error_text(12345), "");
}

static void api__rows_have_names_and_gaps_do_not(void **state)
{
	(void)state;
	assert_string_equal(api_name(60), "cuLaunchKernel");
	assert_true(api_does(120, DOES_GIVE) && api_does(120, DOES_HOST | DOES_REQUEST));
	assert_false(api_does(120, DOES_TAKE) || api_does(99999, ~0u));
	assert_int_equal(api_n_args(10), 4);
	assert_non_null(strstr(api_args(60), "grid_y:u"));
	assert_string_equal(api_name(0), "");
	assert_string_equal(api_name(99999), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace__what_was_written_is_found),
		cmocka_unit_test(trace__a_file_is_read_like_bytes),
		cmocka_unit_test(trace__launches_are_in_order_of_time),
		cmocka_unit_test(ring__a_slot_left_busy_is_skipped),
		cmocka_unit_test(ring__nonsense_gives_nothing),
		cmocka_unit_test(trace__a_captured_launch_is_listed_once),
		cmocka_unit_test(trace__the_newest_of_two_blocks_at_one_address_counts),
		cmocka_unit_test(trace__blocks_are_listed_apart),
		cmocka_unit_test(trace__freed_blocks_come_in_order_and_whole),
		cmocka_unit_test(trace__ranges_end_where_the_writer_stopped),
		cmocka_unit_test(trace__memory_is_found_by_site_time_and_node),
		cmocka_unit_test(trace__samples_out_of_order_are_dropped),
		cmocka_unit_test(trace__a_layout_is_whole_or_none),
		cmocka_unit_test(trace__failures_come_in_the_order_they_were_noticed),
		cmocka_unit_test(trace__cut_short_at_any_byte_it_opens_or_says_why),
		cmocka_unit_test(trace__a_chunk_list_full_of_garbage_is_survived),
		cmocka_unit_test(trace__offsets_that_lead_nowhere_give_nothing),
		cmocka_unit_test(trace__an_older_header_is_filled_up_with_unknown),
		cmocka_unit_test(trace__a_newer_format_is_refused_with_a_reason),
		cmocka_unit_test(trace__ticks_become_nanoseconds),
		cmocka_unit_test(demangle__names_for_people),
		cmocka_unit_test(demangle__a_name_that_explodes_is_given_up),
		cmocka_unit_test(demangle__long_names_are_demangled_too),
		cmocka_unit_test(cuda_errors__names_texts_and_stickiness),
		cmocka_unit_test(api__rows_have_names_and_gaps_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
