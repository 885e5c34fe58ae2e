/* SPDX-License-Identifier: Apache-2.0
 * The newest allocator events: written by the recorder's own code, read back, and compared with all events that there were. What was
 * live before the oldest one must be exactly what it was.
 */
#include "rec_make.h"

#include "allocator/card.h"
#include "base/buf.h"
#include "base/err.h"
#include "dice.h"
#include "read/recording/event_log.h"
#include "read/recording/events.h"
#include "find/memory/replay.h"
#include "find/memory/room_played.h"

#define LIVE	 700
#define SEGMENTS 40
#define STREAMS	 5
#define MANY	 1000000

struct truth {
	enum cw_event kind;
	uint64_t addr, size, asked, stream, pool;
	uint32_t site;
	bool later;
};

static struct {
	struct truth *list;
	size_t n;
	struct truth block[LIVE], segment[SEGMENTS];	/* size 0: free */
	uint64_t used;			/* addresses */
} all;

static struct truth *remember(enum cw_event kind, const struct truth *t)
{
	assert_true(all.n < MANY);
	all.list[all.n] = *t;
	all.list[all.n].kind = kind;
	return &all.list[all.n++];
}

static struct cw_allocation allocation(const struct truth *t, enum cw_memory kind)
{
	return (struct cw_allocation){.addr = t->addr,
				      .size = t->size,
				      .ticks = ++clock_ns,
				      .stack = 4096 + 8 * (uint32_t)roll(20),
				      .kind = (uint16_t)kind,
				      .device = 0};
}

static void block_toggle(struct truth *t)
{
	struct cw_allocation a;

	if (t->size) {
		t->later = roll(9) == 0;
		event_log.freed = t->later ? CW_SLOT_LATER : CW_EVENT_FREED;
		remember(CW_EVENT_FREED, t);
		live_remove(&blocks, live_find(&blocks, t->addr), ++clock_ns);
		t->size = 0;
		return;
	}
	stream_now = roll(7) ? 0 : 1 + roll(STREAMS);
	pool_now = roll(50) ? 0 : 1 + (uint32_t)roll(3);
	t->size = CW_EVENT_UNIT * (1 + roll(100000));
	t->asked = t->size - (roll(3) ? 0 : roll(t->size / CW_EVENT_UNIT < 2048 ? t->size / CW_EVENT_UNIT : 2048) * CW_EVENT_UNIT);
	t->stream = stream_now;
	t->pool = pool_now;
	if (!t->addr || roll(4) == 0)	/* most addresses are used again */
		t->addr = 0x7f0000000000ull + (all.used++ << 26);
	a = allocation(t, CW_MEM_TORCH);
	a.site = t->site = site_number(&thread, &a, 0);
	a.library = event_log_detail(&(struct events_block){.asked = t->asked, .stream = t->stream, .pool = pool_now},
				     t->size);
	assert_true(live_put(&blocks, &a));
	remember(CW_EVENT_MADE, t);
}

static void segment_toggle(struct truth *t)
{
	struct cw_allocation a;

	if (t->size) {
		remember(CW_EVENT_TOOK, t);
		live_remove(&driver, live_find(&driver, t->addr), ++clock_ns);
		t->size = 0;
		return;
	}
	t->size = 1 + roll(1 << 30);
	t->addr = t->addr ? t->addr : 0x700000000000ull + (all.used++ << 26);
	a = allocation(t, CW_MEM_DEVICE);
	a.site = t->site = site_number(&thread, &a, 0);
	a.extra = event_log_lane(0);
	t->stream = stream_now;
	t->pool = pool_now;
	assert_true(live_put(&driver, &a));
	remember(CW_EVENT_GAVE, t);
}

static void one_event(void)
{
	if (roll(40)) {
		block_toggle(&all.block[roll(LIVE)]);
	} else if (roll(3)) {
		segment_toggle(&all.segment[roll(SEGMENTS)]);
	} else {
		struct truth t = {.size = roll(1ull << 40)};

		if (roll(2)) {
			events_oom(0, t.size);
			remember(CW_EVENT_OOM, &t);
		} else {
			events_more(CW_MORE_REFUSED, 0, t.size);
			remember(CW_EVENT_MORE, &t);
		}
	}
}

static void all_reset(uint64_t cap)
{
	start(NULL);
	rec.h->cap = cap;
	rec.h->minor = CW_MINOR;
	memset(&all, 0, sizeof(all));
	all.list = calloc(MANY, sizeof(*all.list));
	assert_non_null(all.list);
}

static void all_begin(uint64_t cap)
{
	all_reset(cap);
	event_log_start();
	assert_true(event_log_on());
}

static struct truth *live_at(struct truth *list, size_t *n, const struct event *v, bool block)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].addr == v->addr && (list[i].kind == CW_EVENT_MADE) == block)
			return &list[i];
	return NULL;
}

/* What was live after the first `n` events. */
static size_t state_after(size_t n, struct truth *live)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		const struct truth *t = &all.list[i];
		bool block = t->kind == CW_EVENT_MADE || t->kind == CW_EVENT_FREED;
		struct truth *old;

		if (t->kind == CW_EVENT_MADE || t->kind == CW_EVENT_GAVE) {
			live[k++] = *t;
		} else if (t->kind == CW_EVENT_FREED || t->kind == CW_EVENT_TOOK) {
			old = live_at(live, &k, &(struct event){.addr = t->addr}, block);
			assert_non_null(old);
			*old = live[--k];
		}
	}
	return k;
}

static void assert_same(const struct truth *t, const struct event *v)
{
	bool block = v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_FREED,
	     came = v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_GAVE;

	assert_int_equal(v->kind, t->kind);
	if (block || v->kind == CW_EVENT_GAVE || v->kind == CW_EVENT_TOOK)
		assert_int_equal(v->addr, t->addr);
	if (came || v->kind == CW_EVENT_OOM || v->kind == CW_EVENT_MORE)
		assert_int_equal(v->size, t->size);
	if (came) {
		assert_int_equal(v->site, t->site);
		assert_int_equal(v->stream, t->stream);
		assert_int_equal(v->pool, t->pool);
	}
	if (v->kind == CW_EVENT_MADE)
		assert_int_equal(v->asked, t->asked);
	if (v->kind == CW_EVENT_FREED)
		assert_int_equal(v->later, t->later);
}

/* Changes of the pool are events of their own, which the blocks repeat. */
static bool next_event(struct events *e, struct event *v)
{
	while (events_next(e, v))
		if (v->kind != CW_EVENT_MORE || v->more != CW_MORE_POOL)
			return true;
	return false;
}

static size_t count_events(struct events e)
{
	struct event v;
	size_t n = 0;

	while (next_event(&e, &v))
		n++;
	return n;
}

/* How many slots were overwritten. */
static uint64_t assert_all_same(struct trace *t)
{
	static struct truth live[LIVE + SEGMENTS];
	size_t n_live = 0, n_start = 0, first;
	struct events events, ahead;
	uint64_t before = 0;
	struct event v = {0};
	struct buf b;

	buf_init(&b, (size_t)1 << 30);
	assert_int_equal(event_log_pack(&b, t), 0);
	assert_int_equal(events_begin(&ahead, b.data, b.len, NULL), 0);
	events = ahead;
	while (next_event(&ahead, &v) && (v.kind != CW_EVENT_MORE || v.more != CW_MORE_START))
		n_start++;
	assert_int_equal(v.more, CW_MORE_START);
	before = v.size;
	first = all.n - count_events(ahead);
	n_live = state_after(first, live);
	assert_int_equal(n_start, n_live);
	for (size_t i = 0; i < n_start; i++) {
		struct truth *one;

		assert_true(next_event(&events, &v));
		one = live_at(live, &n_live, &v, v.kind == CW_EVENT_MADE);
		assert_non_null(one);
		assert_same(one, &v);
	}
	assert_true(next_event(&events, &v));	/* where they begin */
	for (size_t i = first; i < all.n; i++) {
		assert_true(next_event(&events, &v));
		assert_same(&all.list[i], &v);
	}
	assert_false(next_event(&events, &v));
	buf_release(&b);
	return before;
}

static uint64_t compare(uint64_t cap, size_t n, uint32_t memory)
{
	struct trace *t;
	uint64_t before;

	all_begin(cap);
	room = (uint32_t)rec.h->used + memory;
	for (size_t i = 0; i < n; i++)
		one_event();
	t = finished();
	before = assert_all_same(t);
	trace_free(t);
	free(all.list);
	return before;
}

static void log__events_that_fit_are_all_there(void **state)
{
	(void)state;
	assert_int_equal(compare(64u << 20, 0 + 1, BYTES / 2), 0);
	assert_int_equal(compare(64u << 20, 300, BYTES / 2), 0);
	assert_int_equal(compare(64u << 20, 100000, BYTES / 2), 0);	/* in several chunks */
}

static void log__what_was_live_before_the_oldest_event_is_exact(void **state)
{
	(void)state;
	for (size_t n = 3900; n < 9000; n += 397)
		compare(0, n, 0);
	assert_true(compare(0, 60000, 0) > 0);
	assert_true(compare(8u << 20, 200000, 4u << 20) > 0);
}

static void log__a_chunk_that_finds_no_room_makes_it_a_ring(void **state)
{
	(void)state;
	assert_true(compare(64u << 20, 250000, 2u << 20) > 0);
}

static void log__what_was_live_before_the_first_event_is_there(void **state)
{
	struct trace *t;

	(void)state;
	stream_now = 0;
	pool_now = 0;
	all_reset(0);	/* PyTorch is loaded later */
	for (int i = 0; i < 100; i++)
		segment_toggle(&all.segment[i % SEGMENTS]);
	event_log_start();
	for (int i = 0; i < 500; i++)
		block_toggle(&all.block[roll(LIVE)]);
	t = finished();
	assert_int_equal(assert_all_same(t), 0);
	trace_free(t);
	free(all.list);
}

static void log__without_pytorch_there_is_none(void **state)
{
	struct trace *t;
	struct buf b;

	(void)state;
	start(NULL);
	t = finished();
	buf_init(&b, 4096);
	assert_int_equal(event_log_pack(&b, t), 1);
	buf_release(&b);
	trace_free(t);
}

static void log__lanes_beyond_the_last_one_are_shared(void **state)
{
	struct cw_event_log *h;

	(void)state;
	all_begin(0);
	for (uint64_t i = 0; i < 2 * CW_LANES; i++)
		event_log_detail(&(struct events_block){.stream = i}, 512);
	h = event_log.h;
	assert_int_equal(h->n_lanes, CW_LANES);
	assert_int_equal(h->full, 1);
	trace_free(finished());
	free(all.list);
}

/* A signal handler jumps out of the recorder after a slot was passed and before it is counted. */
static void log__a_jump_out_of_an_event_costs_no_other(void **state)
{
	struct cw_event_slot *first;

	(void)state;
	all_begin(0);
	first = event_log.at - 1;
	for (int i = 0; i < 20; i++) {
		for (uint64_t k = roll(300); k > 0; k--)
			one_event();
		event_log.h->head -= event_log.h->head > 1;
		assert_true(event_log.at > first && event_log.at < first + 4096 && (event_log.at - first) % CW_LOG_PAGE);
	}
	for (int i = 0; i < 600; i++)
		one_event();
	assert_int_equal(event_log.h->head % 4096, event_log.at - first);
	trace_free(finished());
	free(all.list);
}

#define MIB ((uint64_t)1 << 20)

static struct allocator_driver real;

static uint64_t gives(void *of, uint64_t size, uint64_t stream)
{
	struct cw_allocation a = {.kind = CW_MEM_DEVICE, .library = intern_string("/x/libc10_cuda.so", 17)};

	a.addr = real.alloc(real.of, size, stream);
	if (!a.addr) {
		events_more(CW_MORE_REFUSED, 0, size);
		return 0;
	}
	(void)of;
	a.size = size;
	a.ticks = ++clock_ns;
	a.site = site_number(&thread, &a, 0);
	a.extra = event_log_lane(0);
	assert_true(live_put(&driver, &a));
	return a.addr;
}

static void takes(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	real.free(real.of, addr, size);
	live_remove(&driver, live_find(&driver, addr), ++clock_ns);
}

static struct allocator_block *gets(struct allocator *a, uint64_t size)
{
	struct allocator_block *b = allocator_alloc(a, size, 0, (struct allocator_pool_id){0, 0});
	struct cw_allocation one = {.kind = CW_MEM_TORCH, .ticks = ++clock_ns};

	if (!b) {
		events_oom(0, size);
		return NULL;
	}
	one.addr = allocator_block_addr(b);
	one.size = allocator_block_size(b);
	one.library = event_log_detail(&(struct events_block){.asked = size}, one.size);
	assert_true(live_put(&blocks, &one));
	return b;
}

static void gives_back(struct allocator *a, struct allocator_block *b)
{
	uint64_t addr = allocator_block_addr(b);

	event_log.freed = CW_EVENT_FREED;
	allocator_delete(a, b);
	live_remove(&blocks, live_find(&blocks, addr), ++clock_ns);
}

/* Blocks of 40 MiB in segments of 60: each leaves 20, of which no two are side by side. */
static struct trace *gaps(uint64_t request)
{
	struct allocator_settings settings;
	struct allocator_driver told;
	struct allocator *a;
	struct card card;

	all_begin(64u << 20);
	rec.h->device[0].total_bytes = 700 * MIB;
	strcpy(rec.h->torch_version, "2.11.0");
	card_init(&card, 700 * MIB, false);
	events_more(CW_MORE_FREE, 0, card.free);
	real = told = card_driver(&card);
	told.alloc = gives;
	told.free = takes;
	allocator_settings_init(&settings);
	a = allocator_new(allocator_release_find(2, 11), &settings, &told, 700 * MIB);
	for (int i = 0; i < 10; i++) {
		gives_back(a, gets(a, 60 * MIB));
		assert_non_null(gets(a, 40 * MIB));
	}
	assert_null(gets(a, request));
	allocator_free(a);
	card_release(&card);
	free(all.list);
	return finished();
}

static bool played(struct trace *t, int device, const char *words, int64_t *spare)
{
	struct replay *r = room_open(t, device);
	bool known = r && room_played(r, words, spare);

	replay_free(r);
	return known;
}

static void played__a_setting_that_helps_has_its_number(void **state)
{
	struct trace *t = gaps(200 * MIB);
	int64_t spare = 0;

	(void)state;
	assert_true(played(t, 0, "expandable_segments:True", &spare));
	assert_int_equal(spare, 100 * MIB);	/* ten of 40, and 200 */
	assert_false(played(t, 0, "max_split_size_mb:nonsense", &spare));
	assert_false(played(t, 1, "expandable_segments:True", &spare));
	trace_free(t);
}

static void played__a_setting_that_does_not_help_says_how_much_is_missing(void **state)
{
	struct trace *t = gaps(400 * MIB);
	int64_t spare = 0;

	(void)state;
	assert_true(played(t, 0, "expandable_segments:True", &spare));
	assert_int_equal(spare, -100 * (int64_t)MIB);
	trace_free(t);
}

static void played__events_that_are_missing_leave_it_unknown(void **state)
{
	struct trace *t = gaps(200 * MIB);
	struct cw_header *h = (struct cw_header *)(uintptr_t)trace_header(t);
	int64_t spare;

	(void)state;
	h->lost_blocks = 1;
	assert_false(played(t, 0, "expandable_segments:True", &spare));
	trace_free(t);
}

/* The slots of any bytes: what is read is within them, and reading ends. */
static void log__damaged_slots_are_passed_over(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct cw_event_slot *s;
		struct events e;
		struct event v;
		struct trace *t;
		struct buf b;

		all_begin(0);
		s = event_log.at - 1;
		for (int k = 0; k < 5000; k++)
			one_event();
		for (int k = 0; k < 400; k++)
			s[roll(4096)] = (struct cw_event_slot){roll(UINT64_MAX), roll(UINT64_MAX)};
		event_log.h->head = i % 5 ? event_log.h->head : roll(UINT64_MAX);
		event_log.h->n_lanes = (uint32_t)roll(UINT32_MAX);
		t = finished();
		buf_init(&b, (size_t)1 << 30);
		if (event_log_pack(&b, t) == 0) {
			assert_int_equal(events_begin(&e, b.data, b.len, NULL), 0);
			while (events_next(&e, &v))
				;
		}
		buf_release(&b);
		trace_free(t);
		free(all.list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__events_that_fit_are_all_there),
		cmocka_unit_test(log__what_was_live_before_the_oldest_event_is_exact),
		cmocka_unit_test(log__a_chunk_that_finds_no_room_makes_it_a_ring),
		cmocka_unit_test(log__what_was_live_before_the_first_event_is_there),
		cmocka_unit_test(log__without_pytorch_there_is_none),
		cmocka_unit_test(log__lanes_beyond_the_last_one_are_shared),
		cmocka_unit_test(log__a_jump_out_of_an_event_costs_no_other),
		cmocka_unit_test(played__a_setting_that_helps_has_its_number),
		cmocka_unit_test(played__a_setting_that_does_not_help_says_how_much_is_missing),
		cmocka_unit_test(played__events_that_are_missing_leave_it_unknown),
		cmocka_unit_test(log__damaged_slots_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
