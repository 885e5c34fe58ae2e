/* SPDX-License-Identifier: Apache-2.0
 * What sites held over time, against a model that remembers every event: written by the recorder's own code, read back
 * by the reader of recordings.
 */
#include "rec_make.h"

#define STACKS	 30
#define DEVICES	 2
#define LIVE_MAX 3000
#define EVENTS	 60000

static struct {
	struct { uint64_t addr, size; int stack, device; } live[LIVE_MAX];
	struct { uint64_t ticks; int64_t change; int stack, device; } event[EVENTS];
	size_t n, events;
	uint64_t allocated[DEVICES], next;
} model;

static void log_event(int64_t change, int stack, int device)
{
	model.event[model.events].ticks = clock_ns;
	model.event[model.events].change = change;
	model.event[model.events].stack = stack;
	model.event[model.events++].device = device;
	model.allocated[device] += (uint64_t)change;
}

static void make_of(int stack, int device, uint64_t size, uint64_t after)
{
	struct cw_allocation a = { .addr = 0x7f0000000000ull + model.next++ * 65536, .size = size,
				  .stack = 4096 + (uint32_t)stack * 8,
				  .kind = CW_MEM_TORCH,
				  .device = (int16_t)device};

	clock_ns += after;
	a.ticks = clock_ns;
	a.site = site_number(&thread, &a, 0);
	assert_true(a.site > 0 && live_put(&blocks, &a));
	model.live[model.n].addr = a.addr;
	model.live[model.n].size = size;
	model.live[model.n].stack = stack;
	model.live[model.n++].device = device;
	log_event((int64_t)size, stack, device);
	totals_torch(device, model.allocated[device], 1u << 30, clock_ns);
}

static void free_at(size_t i, uint64_t after)
{
	int device = model.live[i].device;

	clock_ns += after;
	live_remove(&blocks, live_find(&blocks, model.live[i].addr), clock_ns);
	log_event(-(int64_t)model.live[i].size, model.live[i].stack, device);
	model.live[i] = model.live[--model.n];
	totals_torch(device, model.allocated[device], 1u << 30, clock_ns);
}

/* Waves of different heights: `pause` is the longest time between two events. */
static void run(int events, uint64_t pause)
{
	for (int i = 0, up = 60; i < events; i++) {
		uint64_t after = 1 + (uint64_t)rand() % pause;

		if (i % 1500 == 0)
			up = 30 + rand() % 40;
		if (model.n < LIVE_MAX && (!model.n || rand() % 100 < up))
			make_of(rand() % STACKS, rand() % DEVICES, 512u * (uint64_t)(1 + rand() % 64), after);
		else
			free_at((size_t)rand() % model.n, after);
	}
}

struct read {
	const struct cw_epoch *epoch;
	size_t n;
	uint64_t held[STACKS][CW_EPOCHS];
};

static void read_device(struct read *r, struct trace *t, int device)
{
	const struct cw_site *s;
	size_t n = trace_sites(t, &s);
	uint64_t held[CW_EPOCHS];

	memset(r, 0, sizeof(*r));
	trace_epochs(t, device, &r->epoch, &r->n);
	for (size_t i = 1; i < n; i++) {
		if (s[i].device != device)
			continue;
		assert_true(trace_site_held(t, i, held));
		for (size_t e = 0; e < r->n; e++)
			r->held[(s[i].stack - 4096) / 8][e] += held[e];
	}
}

/* Replays the events. At an epoch's moment each site holds what its history says, and it never holds more during the
 * epoch. */
static void compare_device(const struct read *r, int device)
{
	uint64_t held[STACKS] = {0}, sum = 0;
	size_t e = 0, seen = 0;

	for (size_t i = 0; i < model.events; i++) {
		if (model.event[i].device != device)
			continue;
		held[model.event[i].stack] += (uint64_t)model.event[i].change;
		sum += (uint64_t)model.event[i].change;
		while (e + 1 < r->n && model.event[i].ticks >= r->epoch[e + 1].begin)
			e++;
		assert_true(sum <= r->epoch[e].allocated);
		if (model.event[i].ticks != r->epoch[e].at)
			continue;
		assert_int_equal(sum, r->epoch[e].allocated);
		for (int stack = 0; stack < STACKS; stack++)
			assert_int_equal(held[stack], r->held[stack][e]);
		seen++;
	}
	assert_int_equal(seen, r->n);
}

static size_t compare(struct trace *t)
{
	static struct read r;
	size_t most = 0;

	for (int device = 0; device < DEVICES; device++) {
		read_device(&r, t, device);
		assert_true(r.n > 0 || !model.allocated[device]);
		compare_device(&r, device);
		most = r.n > most ? r.n : most;
	}
	return most;
}

static void epochs__are_exact_however_long_the_run(void **state)
{
	static const uint64_t pauses[] = {1, 1000, 100000, 1000000, 3000000, 40000000};
	const struct cw_epoch *list;
	struct trace *t;
	size_t n;

	for (unsigned int k = 0; k < sizeof(pauses) / sizeof(pauses[0]); k++) {
		if (k)
			start(state);
		srand(k);
		memset(&model, 0, sizeof(model));
		run(30000, pauses[k]);
		t = finished();
		assert_int_equal(trace_epochs(t, 0, &list, &n)->lost, 0);
		assert_int_equal(trace_epochs(t, 0, &list, &n)->now >> 32 > 3, pauses[k] >= 1000000);	/* it was halved */
		n = compare(t);
		assert_true(pauses[k] < 1000000 || n >= CW_EPOCHS / 2);
		trace_free(t);
	}
}

/* Some sites are busy early, some late, some only at the ends: each follows the halving when it changes next. */
static void epochs__sites_that_sleep_catch_up(void **state)
{
	struct trace *t;

	(void)state;
	srand(7);
	memset(&model, 0, sizeof(model));
	for (int i = 0; i < 20; i++)
		make_of(i, 0, 4096, 1000);
	for (int i = 0; i < 8000; i++) {
		make_of(20 + i / 2000, 0, 512, 2000000);
		if (model.n > 60)
			free_at(20 + (size_t)rand() % (model.n - 20), 2000000);
		if (i % 2500 == 2499)
			make_of(i / 2500, 0, 512, 1000);
	}
	for (size_t i = 0; i < 20; i += 2)
		free_at(i, 1000000);
	t = finished();
	compare(t);
	trace_free(t);
}

/* Whatever was written when the process was killed can be read safely; nothing else is damaged. */
static void epochs__a_history_that_was_being_changed_is_left_out(void **state)
{
	uint64_t held[CW_EPOCHS], before[CW_EPOCHS];
	const struct cw_epoch *list;
	const struct cw_site *s;
	size_t n, bad = 0, sites;
	struct trace *t;

	(void)state;
	memset(&model, 0, sizeof(model));
	run(30000, 1000000);
	t = trace_from_bytes(rec.base, BYTES, NULL);
	trace_epochs(t, 0, &list, &n);
	for (uint32_t i = 0; i < rec.h->n_chunks; i++)
		if (rec.h->chunk[i].kind == CW_CHUNK_HISTORIES)
			((struct cw_history *)(rec.base + rec.h->chunk[i].off))[3].scale = CW_HISTORY_BAD;
	sites = trace_sites(t, &s);
	for (size_t i = 1; i < sites; i++)
		bad += !trace_site_held(t, i, i % 2 ? held : before);
	assert_int_equal(bad, 1);
	assert_false(trace_site_held(t, sites, held));
	assert_false(trace_site_held(t, 0, held));
	rec.base = NULL;
	trace_free(t);
}

static void make_many(uint32_t sites)
{
	struct cw_allocation a = {.kind = CW_MEM_TORCH, .size = 512};
	uint64_t allocated = 0;

	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 1; i <= sites; i++) {
			a.stack = i * 8;
			a.addr = (round * 100000ull + i) * 512;
			a.ticks = clock_ns += 4000;
			a.site = site_number(&thread, &a, 0);
			assert_true(live_put(&blocks, &a));
			totals_torch(0, allocated += 512, 1u << 30, clock_ns);
		}
}

/* The sum over all sites is what PyTorch reported, or less where there was no room for a history; then that is
 * counted. */
static void compare_sums(struct trace *t, bool all)
{
	uint64_t held[CW_EPOCHS], sum[CW_EPOCHS] = {0};
	const struct cw_epochs *epochs;
	const struct cw_epoch *list;
	const struct cw_site *s;
	size_t n, sites = trace_sites(t, &s);

	epochs = trace_epochs(t, 0, &list, &n);
	assert_true(epochs && n > 2);
	for (size_t i = 1; i < sites; i++)
		if (trace_site_held(t, i, held))
			for (size_t e = 0; e < n; e++)
				sum[e] += held[e];
	for (size_t e = 0; e < n; e++)
		assert_true(all ? sum[e] == list[e].allocated : sum[e] <= list[e].allocated);
	assert_int_equal(sum[n - 1], list[n - 1].allocated);
	assert_int_equal(epochs->lost == 0, all);
	trace_free(t);
}

static void epochs__many_sites(void **state)
{
	make_many(7000);
	compare_sums(finished(), true);
	start(state);
	make_many(12000);
	compare_sums(finished(), false);
}

static void epochs__without_memory_there_are_none(void **state)
{
	const struct cw_epoch *list;
	struct trace *t;
	size_t n;

	room = (uint32_t)rec.h->used + 17 * 4096;	/* only for the timeline */
	make_many(300);
	t = finished();
	assert_null(trace_epochs(t, 0, &list, &n));
	assert_int_equal(n, 0);
	trace_free(t);
	start(state);
	room = (uint32_t)rec.h->used + 21 * 4096;	/* and for the epochs, but not for a history */
	make_many(3000);
	compare_sums(finished(), false);
}

static void epochs__without_pytorch_they_follow_the_driver(void **state)
{
	struct cw_allocation a = {.addr = 0x1000, .size = 1000, .kind = CW_MEM_DEVICE, .stack = 8};
	const struct cw_epoch *list;
	uint64_t held[CW_EPOCHS];
	struct trace *t;
	size_t n;

	(void)state;
	a.site = site_number(&thread, &a, 0);
	assert_true(live_put(&driver, &a));
	totals_driver(&a, true, clock_ns);
	live_remove(&driver, live_find(&driver, a.addr), clock_ns += 20000000);
	totals_driver(&a, false, clock_ns);
	assert_true(live_put(&driver, &a));
	totals_driver(&a, true, clock_ns += 1000);
	t = finished();
	assert_non_null(trace_epochs(t, 0, &list, &n));
	assert_int_equal(n, 2);
	assert_int_equal(list[1].driver, 1000);
	assert_true(trace_site_held(t, a.site, held));
	assert_int_equal(held[0], 1024);	/* whole units */
	assert_int_equal(held[1], 1000);
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(epochs__are_exact_however_long_the_run, start),
		cmocka_unit_test_setup(epochs__sites_that_sleep_catch_up, start),
		cmocka_unit_test_setup(epochs__a_history_that_was_being_changed_is_left_out, start),
		cmocka_unit_test_setup(epochs__many_sites, start),
		cmocka_unit_test_setup(epochs__without_memory_there_are_none, start),
		cmocka_unit_test_setup(epochs__without_pytorch_they_follow_the_driver, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
