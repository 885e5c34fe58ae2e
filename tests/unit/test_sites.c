/* SPDX-License-Identifier: Apache-2.0
 * What the recorder keeps about memory, compared with a simple model: sites, totals, peaks and the timeline, written
 * by the recorder's own code and read back by the reader of recordings.
 */
#include "rec_make.h"

#include "base/err.h"
#include "read/recording/events.h"

#define STACKS	 40
#define DEVICES	 3
#define LIVE_MAX 2000

static struct {
	struct { uint64_t addr, size; int stack, device; bool backward; } live[LIVE_MAX];
	size_t n;
	uint64_t held[DEVICES][STACKS][2], most[DEVICES][STACKS][2], at_peak[DEVICES][STACKS][2];
	uint64_t total[DEVICES][STACKS][2], allocated[DEVICES], peak[DEVICES];
	uint64_t next;
} model;

static void model_make(int stack, int device, bool backward, uint64_t size, uint64_t addr)
{
	uint64_t *held = &model.held[device][stack][backward], *most = &model.most[device][stack][backward];

	model.live[model.n].addr = addr;
	model.live[model.n].size = size;
	model.live[model.n].stack = stack;
	model.live[model.n].device = device;
	model.live[model.n++].backward = backward;
	*held += size;
	*most = *held > *most ? *held : *most;
	model.total[device][stack][backward] += size;
	model.allocated[device] += size;
	if (model.allocated[device] > model.peak[device]) {
		model.peak[device] = model.allocated[device];
		memcpy(model.at_peak[device], model.held[device], sizeof(model.held[device]));
	}
}

static void make_one(void)
{
	int stack = rand() % STACKS, device = rand() % DEVICES;
	bool backward = rand() % 4 == 0;
	uint64_t size = 512u * (uint64_t)(1 + rand() % 64), addr = 0x7f0000000000ull + model.next++ * 65536;
	struct cw_allocation a = { .addr = addr, .size = size, .ticks = ++clock_ns, .stack = 4096 + (uint32_t)stack * 8,
				  .kind = CW_MEM_TORCH,
				  .device = (int16_t)device};

	thread.node_depth = backward;
	a.site = site_number(&thread, &a, 0);
	assert_true(a.site > 0);
	assert_true(live_put(&blocks, &a));
	model_make(stack, device, backward, size, addr);
	totals_torch(device, model.allocated[device], 1u << 30, a.ticks);
}

static void free_one(void)
{
	size_t i = (size_t)rand() % model.n;
	int device = model.live[i].device;

	live_remove(&blocks, live_find(&blocks, model.live[i].addr), clock_ns);
	model.held[device][model.live[i].stack][model.live[i].backward] -= model.live[i].size;
	model.allocated[device] -= model.live[i].size;
	model.live[i] = model.live[--model.n];
	totals_torch(device, model.allocated[device], 1u << 30, ++clock_ns);
}

static void compare(struct trace *t)
{
	uint64_t sum[DEVICES] = {0}, now[DEVICES] = {0};
	const struct cw_site *s;
	size_t n = trace_sites(t, &s);

	for (size_t i = 1; i < n; i++) {
		int stack = (int)(s[i].stack - 4096) / 8, d = s[i].device, backward = s[i].flags == CW_SITE_BACKWARD;

		assert_int_equal(s[i].live, model.held[d][stack][backward]);
		assert_int_equal(s[i].peak, model.most[d][stack][backward]);
		assert_int_equal(s[i].total, model.total[d][stack][backward]);
		assert_int_equal(trace_site_at_peak(t, &s[i]), model.at_peak[d][stack][backward]);
		sum[d] += trace_site_at_peak(t, &s[i]);
		now[d] += s[i].live;
	}
	for (int d = 0; d < DEVICES; d++) {
		assert_int_equal(trace_memory(t, d)->peak_allocated, model.peak[d]);
		assert_int_equal(sum[d], model.peak[d]);
		assert_int_equal(now[d], trace_memory(t, d)->allocated);
	}
}

static void sites__are_exact_now_and_at_the_peak(void **state)
{
	struct trace *t;

	for (unsigned int round = 0; round < 20; round++) {
		srand(round);
		memset(&model, 0, sizeof(model));
		if (round)
			start(state);
		/* waves: memory grows to a peak and falls again, several times and to different heights */
		for (int wave = 0, up = 60; wave < 6; wave++, up = 40 + rand() % 40)
			for (int i = 0; i < 2000; i++)
				if (model.n < LIVE_MAX && (!model.n || rand() % 100 < (i < 1200 ? up : 30)))
					make_one();
				else
					free_one();
		assert_int_equal(rec.h->lost_sites, 0);
		t = finished();
		compare(t);
		trace_free(t);
	}
}

static struct cw_allocation one(uint64_t addr, uint64_t size, uint16_t kind, uint32_t stack)
{
	struct cw_allocation a = {.addr = addr, .size = size, .ticks = ++clock_ns, .stack = stack, .kind = kind};

	a.library = library_asking(&thread);
	a.site = site_number(&thread, &a, 0);
	return a;
}

static void sites__what_does_a_site_apart(void **state)
{
	struct cw_allocation a = {.kind = CW_MEM_TORCH, .stack = 8};
	uint32_t plain = site_number(&thread, &a, 0);

	(void)state;
	assert_int_equal(site_number(&thread, &a, 0), plain);
	assert_int_not_equal(site_number(&thread, &a, 16), plain);
	a.device = 1;
	assert_int_not_equal(site_number(&thread, &a, 0), plain);
	a.device = 0;
	a.kind = CW_MEM_DEVICE;
	assert_int_not_equal(site_number(&thread, &a, 0), plain);
	a.kind = CW_MEM_TORCH;
	a.library = 8;
	assert_int_not_equal(site_number(&thread, &a, 0), plain);
	a.library = 0;
	rec.captures = 1;
	assert_int_not_equal(site_number(&thread, &a, 0), plain);
	rec.captures = 0;
	thread.node_depth = 1;
	assert_int_not_equal(site_number(&thread, &a, 0), plain);
	thread.node[0].accumulates = true;
	assert_int_equal(site_number(&thread, &a, 0), 8);
	thread.node_depth = 0;
	assert_int_equal(site_number(&thread, &a, 0), plain);
	free(rec.base);
}

static void sites__a_block_that_nobody_saw_go_is_replaced(void **state)
{
	struct cw_allocation a = one(0x1000, 512, CW_MEM_TORCH, 8), b = one(0x1000, 4096, CW_MEM_TORCH, 16);
	const struct cw_site *s;
	struct trace *t;

	(void)state;
	assert_true(live_put(&blocks, &a) && live_put(&blocks, &b));
	t = finished();
	assert_int_equal(trace_sites(t, &s), 3);
	assert_int_equal(s[1].live, 0);
	assert_int_equal(s[1].live_count, 0);
	assert_int_equal(s[2].live, 4096);
	trace_free(t);
}

/* More than the first table holds go to the second; more than both hold are counted. */
static void sites__more_than_fit_are_counted(void **state)
{
	struct cw_allocation a = {.kind = CW_MEM_TORCH, .size = 512};
	const struct cw_site *s;
	uint64_t lost = 0;
	struct trace *t;
	size_t n;

	(void)state;
	for (uint32_t i = 1; i <= 40000; i++) {
		a.stack = i * 8;
		a.addr = i * 512ull;
		a.ticks = i;
		a.site = site_number(&thread, &a, 0);
		lost += !a.site;
		assert_true(live_put(&blocks, &a));
	}
	assert_int_equal(rec.h->lost_sites, lost);
	assert_true(lost > 0);
	t = finished();
	n = trace_sites(t, &s);
	assert_int_equal(n - 1 + lost, 40000);
	assert_true(n > 20000);
	for (size_t i = 1; i < n; i++)
		assert_true(s[i].stack > s[i - 1].stack && s[i].live == 512);
	trace_free(t);
}

static void sites__without_memory_the_first_table_goes_on(void **state)
{
	struct cw_allocation a = {.kind = CW_MEM_TORCH, .size = 512};
	uint32_t known = 0;

	(void)state;
	room = (uint32_t)rec.h->used;
	for (uint32_t i = 1; i <= 10000; i++) {
		a.stack = i * 8;
		known += site_number(&thread, &a, 0) != 0;
	}
	assert_int_equal(known, 8191);
	assert_int_equal(rec.h->lost_sites, 10000 - 8191);
	free(rec.base);
}

static void totals__reserved_follows_segments_that_go_without_a_block(void **state)
{
	struct cw_allocation segment, other;
	struct trace *t;

	(void)state;
	thread.runtime_caller = (void *)0x1500;
	segment = one(0x100000, 20 << 20, CW_MEM_DEVICE, 8);
	totals_driver(&segment, true, 1);
	assert_int_equal(rec.h->memory[0].reserved, 0);		/* PyTorch has not reported anything yet */
	totals_torch(0, 512, 20 << 20, 2);
	totals_torch(0, 0, 20 << 20, 3);
	thread.runtime_caller = NULL;
	thread.caller = (void *)0x2500;
	other = one(0x200000, 1 << 20, CW_MEM_DEVICE, 8);
	totals_driver(&other, true, 4);
	assert_int_equal(rec.h->memory[0].reserved, 20 << 20);
	assert_int_equal(rec.h->memory[0].driver, 21 << 20);
	totals_driver(&segment, false, 5);			/* empty_cache() */
	assert_int_equal(rec.h->memory[0].reserved, 0);
	assert_int_equal(rec.h->memory[0].driver, 1 << 20);
	totals_driver(&other, false, 6);
	assert_int_equal(rec.h->memory[0].driver, 0);
	assert_int_equal(rec.h->live_device_bytes, 0);
	assert_int_equal(rec.h->peak_device_bytes, 21 << 20);
	asked_loader = 0;
	assert_int_equal(library_asking(&thread), other.library);
	assert_int_equal(asked_loader, 0);
	t = finished();
	assert_int_equal(trace_memory(t, 0)->peak_reserved, 20 << 20);
	assert_int_equal(trace_memory(t, 0)->driver_peak, 21 << 20);
	assert_string_equal(trace_string(t, segment.library), "/site/torch/lib/libc10_cuda.so");
	assert_string_equal(trace_string(t, other.library), "/site/libnccl.so.2");
	trace_free(t);
}

static void totals__host_memory_and_failures(void **state)
{
	struct cw_allocation a = {.size = 4096, .kind = CW_MEM_PINNED, .device = -1};
	struct cw_allocation b = {.size = 100, .kind = CW_MEM_REGISTERED, .device = -1};

	(void)state;
	totals_driver(&a, true, 1);
	totals_driver(&b, true, 2);
	totals_driver(&a, false, 3);
	assert_int_equal(rec.h->pinned_bytes, 100);
	assert_int_equal(rec.h->pinned_peak_bytes, 4196);
	assert_int_equal(rec.h->live_device_bytes, 0);
	totals_torch_gave_up(1, 7, 9);
	totals_torch_gave_up(77, 7, 9);
	assert_int_equal(rec.h->memory[1].n_oom, 1);
	assert_int_equal(rec.h->memory[1].allocated, 7);
	assert_int_equal(rec.h->memory[1].reserved, 9);
	free(rec.base);
}

/* A program without PyTorch has a peak, too. */
static void totals__without_pytorch_the_peak_is_the_drivers(void **state)
{
	struct cw_allocation a = one(0x1000, 4096, CW_MEM_DEVICE, 8), b = one(0x3000, 512, CW_MEM_DEVICE, 16);
	const struct cw_site *s;
	struct trace *t;

	(void)state;
	assert_true(live_put(&driver, &a));
	totals_driver(&a, true, 1);
	live_remove(&driver, live_find(&driver, a.addr), 2);
	totals_driver(&a, false, 2);
	assert_true(live_put(&driver, &b));
	totals_driver(&b, true, 3);
	t = finished();
	assert_int_equal(trace_sites(t, &s), 3);
	assert_int_equal(trace_site_at_peak(t, &s[1]), 4096);
	assert_int_equal(trace_site_at_peak(t, &s[2]), 0);
	trace_free(t);
}

static void timeline__covers_any_run_with_its_maxima(void **state)
{
	static const int events[] = {1, 100, 5000, 2000000};
	const struct cw_timeline *l;
	const struct cw_sample *s;
	uint64_t peak = 0, seen = 0, first = 0;
	struct trace *t;
	size_t n;

	for (size_t k = 0; k < sizeof(events) / sizeof(events[0]); k++) {
		if (k)
			start(state);
		peak = seen = 0;
		first = clock_ns + 1000;
		for (int i = 0; i < events[k]; i++) {
			uint64_t bytes = (uint64_t)(rand() % 100000) * 512;

			clock_ns += i ? (uint64_t)(rand() % 100000) : 1000;
			peak = bytes > peak ? bytes : peak;
			totals_torch(0, bytes, 1u << 30, clock_ns);
		}
		t = finished();
		l = trace_timeline(t, 0, &s, &n);
		assert_non_null(l);
		assert_true(n >= 1 && n <= l->n_max && n == l->n);
		assert_true(events[k] < 2000000 || n >= l->n_max / 2);
		assert_int_equal(s[0].ticks, first);
		assert_true(clock_ns - s[n - 1].ticks < l->every);
		for (size_t i = 0; i < n; i++) {
			seen = s[i].allocated > seen ? s[i].allocated : seen;
			assert_true(i == 0 || s[i].ticks - s[i - 1].ticks >= l->every / 2);
		}
		assert_int_equal(seen, peak);
		assert_int_equal(seen, trace_memory(t, 0)->peak_allocated);
		trace_free(t);
	}
}

#define FILE_MAX (8u << 20)
#define EVENTS	 200000

/* What `cuwhy run` does. */
static size_t empty_ring(uint8_t *file, size_t len)
{
	struct cw_events *r = events_ring;

	for (; r->tail < r->head; r->tail++) {
		assert_true(len < FILE_MAX);
		file[len++] = ((uint8_t *)(r + 1))[r->tail & (r->size - 1)];
	}
	return len;
}

static size_t begin_file(uint8_t *file)
{
	struct cw_events_file h = {.major = CW_MAJOR};

	memcpy(h.magic, CW_EVENTS_MAGIC, sizeof(h.magic));
	memcpy(file, &h, sizeof(h));
	return sizeof(h);
}

static void random_event(struct cw_allocation *a, bool *came)
{
	static const uint16_t kinds[] = {CW_MEM_TORCH, CW_MEM_TORCH, CW_MEM_TORCH, CW_MEM_DEVICE, CW_MEM_RESERVED};

	*came = rand() % 2;
	*a = (struct cw_allocation){.addr = 0x7f0000000000ull + (uint64_t)(rand() % (1 << 26)) * 512,
				    .size = 512u * (uint64_t)(1 + rand() % 40000),
				    .kind = kinds[rand() % 5],
				    .device = (int16_t)(rand() % 40 - 1),
				    .site = (uint32_t)(rand() % 3000)};
	a->addr += a->kind == CW_MEM_RESERVED;
	a->size += rand() % 20 == 0;
	/* about 20 us apart at 2.5 GHz; threads may overtake each other */
	clock_ns += (uint64_t)(rand() % 100000);
	a->ticks = rand() % 50 ? clock_ns : clock_ns - 5000;
}

static void same_event(const struct event *e, const struct cw_allocation *a, bool came)
{
	bool torch = a->kind == CW_MEM_TORCH;

	assert_int_equal(e->kind,
			 came ? (torch ? CW_EVENT_MADE : CW_EVENT_GAVE) : (torch ? CW_EVENT_FREED : CW_EVENT_TOOK));
	assert_int_equal(e->addr, a->addr);
	assert_int_equal(e->ticks, a->ticks / CW_EVENT_TICKS * CW_EVENT_TICKS);
	assert_int_equal(e->device, a->device < 31 ? a->device : -1);
	assert_int_equal(e->size, came ? a->size : 0);
	assert_int_equal(e->site, came ? a->site : 0);
}

static void events__come_back_as_they_went(void **state)
{
	struct { struct cw_allocation a; bool came; } *sent = calloc(EVENTS, sizeof(*sent));
	uint8_t *file = malloc(FILE_MAX);
	size_t len = begin_file(file);
	struct events r;
	struct event e;

	(void)state;
	srand(5);
	for (int i = 0; i < EVENTS; i++) {
		random_event(&sent[i].a, &sent[i].came);
		events_write(&sent[i].a, sent[i].came, sent[i].a.ticks);
		if (i % 5000 == 0)
			len = empty_ring(file, len);
	}
	len = empty_ring(file, len);
	assert_int_equal(events_ring->n, EVENTS);
	assert_int_equal(events_ring->lost, 0);
	assert_true(len < 12ull * EVENTS);
	assert_int_equal(events_begin(&r, file, len, NULL), 0);
	for (int i = 0; i < EVENTS; i++) {
		assert_true(events_next(&r, &e));
		same_event(&e, &sent[i].a, sent[i].came);
	}
	assert_false(events_next(&r, &e));
	/* truncated anywhere: complete entries are read, the rest is not */
	for (size_t cut = 0; cut < 300; cut++) {
		int n = 0;

		if (events_begin(&r, file, cut, NULL) != 0)
			continue;
		while (events_next(&r, &e))
			same_event(&e, &sent[n].a, sent[n].came), n++;
	}
	free(sent);
	free(file);
	free(rec.base);
}

static void events__what_is_lost_is_counted_where_it_is_missing(void **state)
{
	struct cw_allocation a = {.addr = 512, .size = 512, .kind = CW_MEM_TORCH, .ticks = 64, .site = 1};
	uint8_t *file = malloc(FILE_MAX);
	size_t len = begin_file(file);
	uint64_t written = 0, missing = 0;
	struct events r;
	struct event e;

	(void)state;
	while (!events_ring->lost) {
		events_write(&a, true, a.ticks += 64);
		a.addr += 512;
	}
	for (int i = 0; i < 9; i++)
		events_write(&a, true, a.ticks += 64);
	assert_int_equal(events_ring->lost, 10);
	len = empty_ring(file, len);
	a.addr += 512;
	events_write(&a, true, a.ticks += 64);
	events_oom(3, 4096);
	len = empty_ring(file, len);
	assert_int_equal(events_begin(&r, file, len, NULL), 0);
	while (events_next(&r, &e) && e.kind == CW_EVENT_MADE)
		written++;
	assert_int_equal(e.kind, CW_EVENT_LOST);
	missing = e.lost;
	assert_true(events_next(&r, &e));
	same_event(&e, &a, true);
	assert_true(events_next(&r, &e));
	assert_true(e.kind == CW_EVENT_OOM && e.device == 3 && e.size == 4096);
	assert_false(events_next(&r, &e));
	assert_int_equal(missing, 10);
	assert_int_equal(written + 2, events_ring->n);
	free(file);
	free(rec.base);
}

static void events__bad_files_are_refused_or_end(void **state)
{
	uint8_t file[4096];
	struct err err = {0};
	struct events r;
	struct event e;

	(void)state;
	assert_int_not_equal(events_begin(&r, "CUWHYREC", 8, &err), 0);
	assert_non_null(strstr(err.msg, "not a cuwhy memory trace"));
	srand(9);
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < sizeof(file); i++)
			file[i] = (uint8_t)rand();
		begin_file(file);
		assert_int_equal(events_begin(&r, file, 24 + (size_t)rand() % (sizeof(file) - 24), NULL), 0);
		while (events_next(&r, &e))
			assert_true(e.device >= -1 && e.device < CW_MAX_DEVICES);
	}
	((struct cw_events_file *)file)->major++;
	assert_int_not_equal(events_begin(&r, file, sizeof(file), &err), 0);
	assert_non_null(strstr(err.msg, "format"));
	free(rec.base);
}

static int start_traced(void **state)
{
	traced = true;
	start(state);
	traced = false;
	assert_non_null(events_ring);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sites__are_exact_now_and_at_the_peak, start),
		cmocka_unit_test_setup(sites__what_does_a_site_apart, start),
		cmocka_unit_test_setup(sites__a_block_that_nobody_saw_go_is_replaced, start),
		cmocka_unit_test_setup(sites__more_than_fit_are_counted, start),
		cmocka_unit_test_setup(sites__without_memory_the_first_table_goes_on, start),
		cmocka_unit_test_setup(totals__reserved_follows_segments_that_go_without_a_block, start),
		cmocka_unit_test_setup(totals__host_memory_and_failures, start),
		cmocka_unit_test_setup(totals__without_pytorch_the_peak_is_the_drivers, start),
		cmocka_unit_test_setup(timeline__covers_any_run_with_its_maxima, start),
		cmocka_unit_test_setup(events__come_back_as_they_went, start_traced),
		cmocka_unit_test_setup(events__what_is_lost_is_counted_where_it_is_missing, start_traced),
		cmocka_unit_test_setup(events__bad_files_are_refused_or_end, start_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
