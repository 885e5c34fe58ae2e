/* SPDX-License-Identifier: Apache-2.0
 * The cards that can be simulated, as a list (see cards.h).
 */
#include "find/memory/cards.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/memory/replay.h"

#define KIB 1024u
#define CODE_KIB_PER_SM 714u	/* with the first kernel: src/sim/README.md */

const struct card_model card_models[CARDS] = {
#define SIM_MODEL(id, name, major, minor, memory_kib, context_kib, sms, ...) \
	{#id, name, (uint64_t)(memory_kib)*KIB, ((uint64_t)(context_kib) + CODE_KIB_PER_SM * (sms)) * KIB},
#include "sim/cuda/sim_models.def"
#undef SIM_MODEL
};

static int by_memory(const void *x, const void *y)
{
	const struct card_model *a = x, *b = y;

	return a->memory != b->memory ? (a->memory > b->memory) - (a->memory < b->memory) : strcmp(a->id, b->id);
}

/* Of a card with two names, the later row has the newer one. */
static bool named_again(size_t row)
{
	for (size_t i = row + 1; i < CARDS; i++)
		if (strcmp(card_models[i].name, card_models[row].name) == 0)
			return true;
	return false;
}

size_t cards_all(const struct card_model **list)
{
	static struct card_model once[CARDS];
	size_t n = 0;

	for (size_t i = 0; i < CARDS; i++)
		if (!named_again(i) && strcmp(card_models[i].id, "tiny") != 0)
			once[n++] = card_models[i];
	xsort(once, n, sizeof(once[0]), by_memory);
	*list = once;
	return n;
}

#define CARD_UNSURE ((uint64_t)128 << 20)	/* how far the context of a card that was not measured may be off */

void card_ask(struct replay_question *q, const char *recorded, const struct card_model *card)
{
	const struct card_model *own = card_named(recorded);

	q->total = card->memory;
	if (!card->name)		/* the recorded card, with another amount of memory */
		return;
	if (own && !strcmp(own->name, card->name))	/* what its context takes was recorded */
		return;
	q->outside_more = own ? (int64_t)card->context - (int64_t)own->context : 0;
	q->unsure = CARD_UNSURE;
}

/* 24 GiB of one card are a little less than those of another. */
#define TWICE(bytes) ((bytes)*2 - (bytes) / 10)

/* "rtx4060" and "rtx4090" are. */
static bool same_kind(const struct card_model *a, const struct card_model *b)
{
	size_t n = strcspn(a->id, "0123456789");

	return n == strcspn(b->id, "0123456789") && !strncmp(a->id, b->id, n);
}

const struct card_model *card_twice(const char *recorded, uint64_t memory)
{
	const struct card_model *own = card_named(recorded), *all, *any = NULL;
	size_t n = cards_all(&all);

	for (size_t i = 0; i < n; i++) {
		if (all[i].memory < TWICE(memory))
			continue;
		if (own && same_kind(own, &all[i]))
			return &all[i];
		any = any ? any : &all[i];
	}
	return any;
}

const struct card_model *card_named(const char *name)
{
	for (size_t i = 0; i < CARDS; i++)
		if (strcmp(card_models[i].name, name) == 0)
			return &card_models[i];
	return NULL;
}
