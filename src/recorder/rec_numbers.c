/* SPDX-License-Identifier: Apache-2.0
 * NaN and infinity among the single values that the program copies from a GPU to the host: its loss, a norm, a score.
 *
 * Which type a value has is not known here. Kept is what NVIDIA's GPUs and processors write for NaN and infinity in one of the formats
 * of that size; readers decide by the kernel that made it. A value in pinned memory arrives with the next wait for its stream, and is read
 * then only if this thread called nothing else in between: the memory could be gone. Another thread may have freed it all the same, so that
 * it is read with care. What is not pinned is there when the copy returns.
 */
#include <string.h>

#include "rec.h"

static struct {
	struct spin lock;
	struct cw_number *table;	/* NULL: none yet, or no room for it */
	uint32_t generation;		/* of the process image that has it */
} numbers;
LOCK_LISTED(numbers, numbers.lock);

static bool is_one_of(uint64_t value, const uint64_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == value)
			return true;
	return false;
}

#define AMONG(value, ...) is_one_of(value, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Other NaNs exist, with other bits set. They are left out: as integers, most of them are small negative numbers. */
static bool is_suspect(uint64_t value, uint64_t bytes)
{
	switch (bytes) {
	case 2:		/* half precision, then bfloat16 */
		return AMONG(value, 0x7fff, 0xffff, 0x7e00, 0xfe00, 0x7c00, 0xfc00, 0x7fc0, 0xffc0, 0x7f80, 0xff80);
	case 4:
		return AMONG(value, 0x7fffffff, 0xffffffff, 0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000);
	default:
		return AMONG(value, 0xfff8000000000000, 0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000000);
	}
}

static bool is_given(const struct cw_launch *l, uint64_t address)
{
	uint64_t word;

	for (uint32_t at = 0; at + sizeof(word) <= l->n_param; at += sizeof(word)) {
		memcpy(&word, l->params + at, sizeof(word));
		if (word == address)
			return true;
	}
	return false;
}

/* The launches that may have written it, since PyTorch made its block. PyTorch's reductions have more arguments than are recorded: what the line that
 * allocated the block launched is taken as well, until something is known to have its address. Which one was the first is not known of memory
 * that is not PyTorch's, where other arrays may have been before, and where another thread made the block, as backward() does. */
static void find_makers(struct cw_number *to, const struct cw_ring *r, const struct cw_allocation *block)
{
	uint64_t i = r->head > r->n_slots ? r->head - r->n_slots : 0;
	const struct cw_launch *first = NULL, *last = NULL, *made;
	uint32_t stack = block->stack & ~CW_FREED_AFTER;

	for (; i < r->head; i++) {
		const struct cw_launch *l = (const struct cw_launch *)(r + 1) + (i & (r->n_slots - 1));
		bool given = l->seq && l->ticks >= block->ticks && is_given(l, to->from);

		if (given || (!first && stack && l->seq && l->ticks >= block->ticks && l->stack == stack))
			last = l;
		if (!first)
			first = last;
	}
	if (!first)
		return;
	made = block->addr && (stack || !first->stack) ? first : NULL;
	to->maker = made ? made->func : last->func;
	to->maker_stack = made && made->stack ? made->stack : made ? made->forward_stack : 0;
	to->user = last->func;
	to->user_stack = last->stack ? last->stack : last->forward_stack;
}

static struct cw_number *table_now(void)
{
	if (numbers.generation != rec.generation) {
		numbers.generation = rec.generation;
		numbers.table = chunk_new(CW_CHUNK_NUMBERS, CW_NUMBERS * sizeof(*numbers.table), 0);
	}
	return numbers.table;
}

static void fill(struct cw_number *to, const struct cw_number *seen)
{
	struct cw_allocation block = {0};

	*to = *seen;
	to->stack = 0;
	to->ticks = rec_ticks();
	if (torch_block_at(seen->from, &block))
		to->block_ticks = block.ticks;
	else
		block = (struct cw_allocation){0};
	if (rec_self->launches)
		find_makers(to, rec_self->launches, &block);
	to->count = 1;
	to->n = turns_now(rec_self, to->at, CW_LOOP_TURNS);
	shared_set(&to->stack, seen->stack);
}

/* Called with the lock held. */
static void keep(struct cw_number *table, const struct cw_number *seen)
{
	uint32_t i = 0;

	while (i < CW_NUMBERS && table[i].stack && table[i].stack != seen->stack)
		i++;
	if (i < CW_NUMBERS && table[i].stack)
		shared_add(&table[i].count, 1);
	else if (i < CW_NUMBERS)
		fill(&table[i], seen);
}

static __attribute__((noinline, cold)) void suspect(const struct cw_number *seen)
{
	struct cw_number *table;

	if (!seen->stack || !spin_try(&numbers.lock))
		return;
	table = table_now();
	if (table)
		keep(table, seen);
	spin_done(&numbers.lock);
}

static void look(uint64_t to, uint64_t from, uint64_t bytes, uint32_t stack, bool pinned)
{
	struct cw_number seen = {.stack = stack, .bytes = (uint32_t)bytes, .from = from};

	if (pinned && !rec_read_memory(&seen.value, (const void *)(uintptr_t)to, bytes))
		return;
	if (!pinned)
		memcpy(&seen.value, (const void *)(uintptr_t)to, bytes);
	if (unlikely(is_suspect(seen.value, bytes)))
		suspect(&seen);
}

static uint64_t calls_so_far(void)
{
	return rec_self->calls ? rec_self->calls->head : 0;
}

void number_copied(const struct copied *c, bool arrived)
{
	uint32_t stack = stack_before() & ~CW_FREED_AFTER;
	enum memory_at to;

	rec_self->awaited.bytes = 0;
	if (unlikely(atomic_load(&rec.captures)) && capture_of(c->stream))
		return;
	to = memory_at(c->to);
	if (to != MEMORY_OF_HOST && to != MEMORY_PINNED)
		return;
	if (!c->from_gpu && memory_at(c->from) != MEMORY_OF_GPU)
		return;
	if (to == MEMORY_OF_HOST || (to == MEMORY_PINNED && arrived)) {
		look(c->to, c->from, c->bytes, stack, to == MEMORY_PINNED);
	} else {
		rec_self->awaited.to = c->to;
		rec_self->awaited.from = c->from;
		rec_self->awaited.stream = c->stream;
		rec_self->awaited.bytes = (uint32_t)c->bytes;
		rec_self->awaited.stack = stack;
		rec_self->awaited.calls = calls_so_far();
	}
}

void number_waited(uint64_t stream)
{
	uint64_t bytes = rec_self->awaited.bytes;

	rec_self->awaited.bytes = 0;
	if (rec_self->awaited.stream == stream && rec_self->awaited.calls + 1 == calls_so_far())
		look(rec_self->awaited.to, rec_self->awaited.from, bytes, rec_self->awaited.stack, true);
}
