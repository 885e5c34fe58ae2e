/* SPDX-License-Identifier: Apache-2.0
 * How long a memory trace of ten million events takes to be read, and to be played back with one setting (make bench-replay).
 *
 * The events are those of a training step, again and again: activations come in the order of the layers and go in the reverse
 * order, with temporaries in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "allocator/card.h"
#include "base/str.h"
#include "dice.h"
#include "events_make.h"
#include "find/memory/replay.h"
#include "memory_make.h"

#define EVENTS	10000000u
#define LAYERS	400
#define TOTAL	(80 * GIB)

static struct em em;
static uint64_t ticks, written;
static uint32_t segment_site, block_site;
static struct allocator_driver real;

static void note(enum cw_event kind, uint64_t addr, uint64_t size, uint32_t site)
{
	ticks += 64;
	written++;
	em_event(&em, kind, 0, ticks, addr, size, site);
}

static uint64_t note_alloc(void *of, uint64_t size, uint64_t stream)
{
	uint64_t addr = real.alloc(of, size, stream);

	if (addr)
		note(CW_EVENT_GAVE, addr, size, segment_site);
	return addr;
}

static struct allocator_block *make_block(struct allocator *a, uint64_t size)
{
	struct allocator_block *b = allocator_alloc(a, size, 0, (struct allocator_pool_id){0, 0});

	if ((size + 511) / 512 * 512 != allocator_block_size(b))
		em_asked(&em, 0, (size + 511) / 512 * 512);
	note(CW_EVENT_MADE, allocator_block_addr(b), allocator_block_size(b), block_site);
	return b;
}

static void free_block(struct allocator *a, struct allocator_block *b)
{
	note(CW_EVENT_FREED, allocator_block_addr(b), 0, 0);
	allocator_delete(a, b);
}

static void training_step(struct allocator *a, const uint64_t *size)
{
	struct allocator_block *kept[LAYERS], *temporary;

	for (int i = 0; i < LAYERS; i++) {
		temporary = make_block(a, size[i] / 2 + 1);
		kept[i] = make_block(a, size[i]);
		free_block(a, temporary);
	}
	for (int i = LAYERS; i-- > 0;) {
		temporary = make_block(a, size[i]);
		free_block(a, kept[i]);
		free_block(a, temporary);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	static const char *const words[] = {"", "expandable_segments:True", "max_split_size_mb:64"};
	struct allocator_settings settings;
	struct allocator_driver driver;
	struct replay_question q;
	struct replay_answer answer;
	uint64_t size[LAYERS];
	struct replay *r;
	struct card card;
	double began;
	struct mm m;

	mm_init(&m);
	m.b.h->device[0].total_bytes = TOTAL;
	str_copy(m.b.h->torch_version, sizeof(m.b.h->torch_version), "2.11.0");
	segment_site = mm_site(&m, 0, 0, CW_MEM_DEVICE, 0);
	m.site[segment_site].library = m.c10;
	block_site = mm_site(&m, tb_stack(&m.b, USER, NULL), 0, CW_MEM_TORCH, 0);
	em_init(&em);
	em_more(&em, CW_MORE_FREE, 0, TOTAL);
	card_init(&card, TOTAL, false);
	real = driver = card_driver(&card);
	driver.alloc = note_alloc;
	allocator_settings_init(&settings);
	struct allocator *a = allocator_new(allocator_release_find(2, 11), &settings, &driver, TOTAL);

	for (int i = 0; i < LAYERS; i++)
		size[i] = roll(3) ? 1 + roll(512 << 10) : 1 + roll(64 << 20);
	while (written < EVENTS)
		training_step(a, size);
	began = seconds();
	r = replay_new(tb_trace(&m.b), em.data, em.len, 0, NULL);
	printf("%.1f million events, %.0f MB: read and played back with its own settings in %.2f s\n",
	       (double)written / 1e6, (double)em.len / 1e6, seconds() - began);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		q = replay_same(r);
		replay_settings(r, words[i], &q.settings, NULL);
		began = seconds();
		replay_ask(r, &q, &answer);
		printf("%-26s %.2f s, both orders of addresses; peak %.2f GiB, %s\n",
		       *words[i] ? words[i] : "as recorded", seconds() - began,
		       (double)answer.peak_reserved / (double)GIB, answer.doubts ? "not exact" : "exact");
	}
	return 0;
}
