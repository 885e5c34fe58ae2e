/* SPDX-License-Identifier: Apache-2.0
 * Replaying a memory trace: what was live at a moment, who held it, and what became of it; hostile ones, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"
#include "find/memory/playback.h"
#include "case/ledger.h"
#include "base/pool.h"
#include "memory_make.h"
#include "show/torchsnap.h"
#include "dice.h"
#include "events_make.h"

#define PLACES 700

static void playback__is_what_a_simple_account_says(void **state)
{
	static uint64_t size[PLACES], sum;
	struct playback_step s;
	struct playback h;
	struct trace *t;
	struct em em;
	struct mm m;
	size_t n = 0;

	(void)state;
	mm_init(&m);
	mm_site(&m, tb_stack(&m.b, USER, NULL), 0, CW_MEM_TORCH, 0);
	t = tb_trace(&m.b);
	em_init(&em);
	for (int i = 0; i < 40000; i++) {
		size_t k = roll(PLACES);

		if (size[k])
			em_event(&em, CW_EVENT_FREED, 0, (uint64_t)(i + 1) * 64, 4096 * k, 0, 0);
		else
			em_event(&em, CW_EVENT_MADE, 0, (uint64_t)(i + 1) * 64, 4096 * k, 512 * (1 + roll(8)), 1);
		sum += size[k] ? 0 - size[k] : em.size;
		n += size[k] ? -1 : 1;
		size[k] = size[k] ? 0 : em.size;
	}
	assert_int_equal(playback_begin(&h, t, em.data, em.len, NULL), 0);
	while (playback_next(&h, &s))
		if (s.event.kind == CW_EVENT_FREED)
			assert_true(s.went.piece.size > 0);
	assert_int_equal(h.n, 40000);
	assert_int_equal(h.torch.n, n);
	for (size_t i = 0; i < h.torch.n; i++) {
		const struct piece *p = &h.torch.list[i].piece;

		assert_int_equal(p->size, size[p->addr / 4096]);
		sum -= p->size;
	}
	assert_int_equal(sum, 0);
	playback_release(&h);
	em_release(&em);
	trace_free(t);
}

/* Two lines and a library; one line's tensor is freed again. */
static void make_story(struct em *em, struct mm *m)
{
	uint32_t first = mm_site(m, tb_stack(&m->b, "a.py:1:f", NULL), 0, CW_MEM_TORCH, 0);
	uint32_t second = mm_site(m, tb_stack(&m->b, "b.py:2:g", NULL), 0, CW_MEM_TORCH, 0);
	uint32_t c10 = mm_site(m, 0, 0, CW_MEM_DEVICE, 0), nccl = mm_site(m, 0, 0, CW_MEM_DEVICE, 8);
	uint32_t pinned = mm_site(m, 0, 0, CW_MEM_PINNED, 0);

	m->site[c10].library = m->c10;
	m->site[nccl].library = tb_string(&m->b, "/x/libnccl.so.2");
	em_init(em);
	em_event(em, CW_EVENT_GAVE, 0, 64 * 1000, 1 << 30, 20 * MIB, c10);
	em_event(em, CW_EVENT_GAVE, 0, 64 * 1001, 1 << 29, 3 * MIB, nccl);
	em_event(em, CW_EVENT_GAVE, -1, 64 * 1002, 1 << 28, 5 * MIB, pinned);
	em_event(em, CW_EVENT_MADE, 0, 64 * 2000, 1 << 30, 2 * MIB, first);
	em_event(em, CW_EVENT_MADE, 0, 64 * 3000, (1 << 30) + 4 * MIB, 8 * MIB, second);
	em_event(em, CW_EVENT_FREED, 0, 64 * 4000, (1 << 30) + 4 * MIB, 0, 0);
	em_event(em, CW_EVENT_OOM, 0, 64 * 5000, 0, GIB, 0);
	em_event(em, CW_EVENT_TOOK, 0, 64 * 6000, 1 << 29, 0, 0);
}

static void at_moment(struct ledger *l, struct trace *t, const struct em *em, uint64_t ticks, struct pool *pool)
{
	struct playback h;

	assert_int_equal(playback_begin(&h, t, em->data, em->len, NULL), 0);
	playback_until(&h, ticks);
	ledger_build_at(l, t, 0, ticks, &h, pool);
	playback_release(&h);
}

static void at__a_moment_the_ledger_is_exact(void **state)
{
	static const struct { uint64_t at, tensors, cache_used, cache_free, library, pinned; size_t lines; } want[] = {
		{0, 0, 0, 0, 0, 0, 0},
		{64 * 1000, 0, 0, 20 * MIB, 0, 0, 0},
		{64 * 2500, 2 * MIB, 18 * MIB, 0, 3 * MIB, 5 * MIB, 2},
		{64 * 3000, 10 * MIB, 10 * MIB, 0, 3 * MIB, 5 * MIB, 3},
		{64 * 4000, 2 * MIB, 18 * MIB, 0, 3 * MIB, 5 * MIB, 2},
		{64 * 9000, 2 * MIB, 18 * MIB, 0, 0, 5 * MIB, 1}};
	struct pool pool = {0};
	struct ledger l;
	struct trace *t;
	struct em em;
	struct mm m;

	(void)state;
	mm_init(&m);
	make_story(&em, &m);
	t = tb_trace(&m.b);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		at_moment(&l, t, &em, want[i].at, &pool);
		assert_int_equal(l.part[PART_TENSORS], want[i].tensors);
		assert_int_equal(l.part[PART_CACHE_USED], want[i].cache_used);
		assert_int_equal(l.part[PART_CACHE_FREE], want[i].cache_free);
		assert_int_equal(l.part[PART_LIBRARIES], want[i].library);
		assert_int_equal(l.pinned, want[i].pinned);
		assert_int_equal(l.n, want[i].lines);
		assert_true(!l.sampled && !l.missing && l.lines_complete);
	}
	at_moment(&l, t, &em, 64 * 3000, &pool);
	assert_string_equal(l.line[0].place.file, "b.py");
	assert_int_equal(l.line[0].bytes, 8 * MIB);
	pool_release(&pool);
	em_release(&em);
	trace_free(t);
}

static void at__missing_events_are_told_of(void **state)
{
	struct pool pool = {0};
	struct ledger l;
	struct trace *t;
	struct em em;
	struct mm m;

	(void)state;
	mm_init(&m);
	make_story(&em, &m);
	em_lost(&em, 7);
	em_event(&em, CW_EVENT_MADE, 0, 64 * 8000, (1 << 30) + 4 * MIB, 8 * MIB, 99);	/* a site that is not there */
	t = tb_trace(&m.b);
	at_moment(&l, t, &em, 64 * 5000, &pool);
	assert_int_equal(l.missing, 0);
	at_moment(&l, t, &em, 64 * 8000, &pool);
	assert_int_equal(l.missing, 7);
	assert_int_equal(l.part[PART_TENSORS], 10 * MIB);
	pool_release(&pool);
	em_release(&em);
	trace_free(t);
}

static void at__without_a_trace_the_samples_count(void **state)
{
	struct cw_timeline *line;
	struct cw_sample *s;
	struct pool pool = {0};
	struct ledger l;
	struct trace *t;
	struct mm m;

	(void)state;
	mm_init(&m);
	line = (void *)(m.b.data + tb_chunk(&m.b, CW_CHUNK_TIMELINE, sizeof(*line) + 4 * sizeof(*s)));
	*line = (struct cw_timeline){.device = 0, .n = 2, .n_max = 4, .every = 100};
	s = (struct cw_sample *)(line + 1);
	s[0] = (struct cw_sample){1000, 2 * MIB, 20 * MIB, 25 * MIB};
	s[1] = (struct cw_sample){2000, 4 * MIB, 20 * MIB, 30 * MIB};
	t = tb_trace(&m.b);
	ledger_build_at(&l, t, 0, 1999, NULL, &pool);
	assert_true(l.sampled);
	assert_int_equal(l.part[PART_TENSORS], 2 * MIB);
	assert_int_equal(l.part[PART_CACHE_USED] + l.part[PART_CACHE_FREE], 18 * MIB);
	assert_int_equal(l.part[PART_LIBRARIES], 5 * MIB);
	assert_int_equal(l.n, 0);
	ledger_build_at(&l, t, 0, 5000, NULL, &pool);
	assert_int_equal(l.part[PART_TENSORS], 4 * MIB);
	ledger_build_at(&l, t, 0, 10, NULL, &pool);
	assert_int_equal(l.part[PART_TENSORS] + l.part[PART_LIBRARIES], 0);
	pool_release(&pool);
	trace_free(t);
}

static void playback__has_the_events_of_pytorch_alone(void **state)
{
	static const struct { enum torchsnap_action action; uint64_t addr, size; } want[] = {
		{TORCHSNAP_SEGMENT_ALLOC, 1 << 30, 20 * MIB}, {TORCHSNAP_ALLOC, 1 << 30, 2 * MIB},
		    {TORCHSNAP_ALLOC, (1 << 30) + 4 * MIB, 8 * MIB},
		    {TORCHSNAP_FREE_REQUESTED, (1 << 30) + 4 * MIB, 8 * MIB},
		    {TORCHSNAP_FREE_COMPLETED, (1 << 30) + 4 * MIB, 8 * MIB},
		    {TORCHSNAP_OOM, 5 * MIB, GIB},
		    {TORCHSNAP_SEGMENT_MAP, 1ull << 40, 4 * MIB},
		    {TORCHSNAP_SEGMENT_MAP, (1ull << 40) + 4 * MIB, 4 * MIB},
		    {TORCHSNAP_ALLOC, (1ull << 40) + 3 * MIB, 2 * MIB}};
	struct torchsnap s;
	struct playback h;
	struct trace *t;
	struct em em;
	struct mm m;
	uint32_t vmm, block;

	(void)state;
	mm_init(&m);
	make_story(&em, &m);
	vmm = mm_site(&m, 0, 0, CW_MEM_VMM, 0);
	block = mm_site(&m, tb_stack(&m.b, "a.py:1:f", NULL), 0, CW_MEM_TORCH, 0);
	em_event(&em, CW_EVENT_GAVE, 0, 64 * 7000, 1ull << 40, 4 * MIB, vmm);	/* who owns them is known later */
	em_event(&em, CW_EVENT_GAVE, 0, 64 * 7001, (1ull << 40) + 4 * MIB, 4 * MIB, vmm);
	em_event(&em, CW_EVENT_GAVE, 0, 64 * 7002, (1ull << 40) + 8 * MIB, 4 * MIB, vmm);
	em_event(&em, CW_EVENT_MADE, 0, 64 * 7003, (1ull << 40) + 3 * MIB, 2 * MIB, block);
	em_event(&em, CW_EVENT_MADE, 0, 64 * 7004, 1ull << 41, 512, block);	/* in memory that was never recorded */
	em_event(&em, CW_EVENT_FREED, 0, 64 * 7005, 1ull << 41, 0, 0);
	em_event(&em, CW_EVENT_FREED, 0, 64 * 7006, 1ull << 42, 0, 0);	/* never existed */
	mm_oom(&m, GIB, 5 * MIB, tb_stack(&m.b, USER, NULL));
	t = tb_trace(&m.b);
	assert_int_equal(playback_begin(&h, t, em.data, em.len, NULL), 0);
	torchsnap_build(&s, t, &h);
	assert_int_equal(s.n_events, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < s.n_events; i++) {
		assert_int_equal(s.event[i].action, want[i].action);
		assert_int_equal(s.event[i].addr, want[i].addr);
		assert_int_equal(s.event[i].size, want[i].size);
		assert_int_equal(s.event[i].stack != 0,
				 want[i].action == TORCHSNAP_ALLOC || want[i].action == TORCHSNAP_OOM);
	}
	torchsnap_release(&s);
	playback_release(&h);
	em_release(&em);
	trace_free(t);
}

static void playback__survives_anything(void **state)
{
	struct trace *t;
	struct err e = {0};
	struct playback h;
	struct em em;
	struct mm m;

	(void)state;
	mm_init(&m);
	make_story(&em, &m);
	t = tb_trace(&m.b);
	assert_true(playback_begin(&h, t, "CUWHYREC", 8, &e) < 0 && e.msg[0]);
	for (int round = 0; round < 3000; round++) {
		size_t at = sizeof(struct cw_events_file) + roll(em.len - sizeof(struct cw_events_file));
		uint8_t was = em.data[at];
		struct torchsnap snap;
		struct ledger l;
		struct pool pool = {0};

		em.data[at] = (uint8_t)roll(256);
		assert_int_equal(playback_begin(&h, t, em.data, em.len - roll(4), NULL), 0);
		playback_until(&h, UINT64_MAX);
		ledger_build_at(&l, t, 0, UINT64_MAX, &h, &pool);
		playback_release(&h);
		pool_release(&pool);
		assert_int_equal(playback_begin(&h, t, em.data, em.len, NULL), 0);
		torchsnap_build(&snap, t, &h);
		torchsnap_release(&snap);
		playback_release(&h);
		em.data[at] = was;
	}
	em_release(&em);
	trace_free(t);
}

static void times__are_read(void **state)
{
	static const struct { const char *text; uint64_t ms; } good[] = {
		{"0s", 0}, {"12.5s", 12500}, {"90s", 90000}, {"250ms", 250}, {"5m", 300000}, {"1.5h", 5400000}};
	static const char *const bad[] = {"",	   "5",	  "s",	"-1s",	"1e3s",	    "12.5.1s",
					  "0x10s", "5 s", "1d", "infs", "99999999h"};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(str_time(good[i].text, &ns));
		assert_int_equal(ns, good[i].ms * 1000000);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(str_time(bad[i], &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(playback__is_what_a_simple_account_says),
		cmocka_unit_test(at__a_moment_the_ledger_is_exact),
		cmocka_unit_test(at__missing_events_are_told_of),
		cmocka_unit_test(at__without_a_trace_the_samples_count),
		cmocka_unit_test(playback__has_the_events_of_pytorch_alone),
		cmocka_unit_test(playback__survives_anything),
		cmocka_unit_test(times__are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
