/* SPDX-License-Identifier: Apache-2.0
 * Where PyTorch keeps the address of a tensor's memory (see holders_tensors.h).
 *
 * Three pointers lead there, each at a small distance. All ways within a window are tried for many tensors. A storage's address is exactly
 * that of a block, so a wrong way leads to blocks in use only by accident, and then not for the same tensors again and again.
 */
#include "find/memory/holders_tensors.h"

#include <string.h>

#include "cuwhy/format.h"

#define IMPL_FROM	16u	/* behind the object's head */
#define IMPL_TO		40u
#define STORAGE_FROM	8u	/* behind the table of functions */
#define STORAGE_TO	48u
#define DATA_TO		48u
#define WAYS		8u	/* words of a window */

static size_t block_at(const struct tensor_layout *l, uint64_t address)
{
	size_t low = 0, high = l->n_blocks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->block[middle]->addr < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n_blocks && l->block[low]->addr == address ? low : SIZE_MAX;
}

static bool pointer(const struct tensor_layout *l, uint64_t at, uint64_t *to)
{
	return remote_word(l->r, at, to) && *to >= REMOTE_PAGE && *to % 8 == 0 && *to < 1ull << 56;
}

typedef uint32_t votes[WAYS][WAYS][WAYS];

/* Counts each way that leads to a block. */
static bool vote(const struct tensor_layout *l, uint64_t object, votes v)
{
	bool any = false;

	for (uint32_t a = IMPL_FROM; a < IMPL_TO; a += 8) {
		uint64_t impl, storage, data;

		if (!pointer(l, object + a, &impl))
			continue;
		for (uint32_t b = STORAGE_FROM; b < STORAGE_TO; b += 8) {
			if (!pointer(l, impl + b, &storage))
				continue;
			for (uint32_t c = STORAGE_FROM; c < DATA_TO; c += 8) {
				if (!pointer(l, storage + c, &data) || block_at(l, data) == SIZE_MAX)
					continue;
				v[a / 8][b / 8][c / 8]++;
				any = true;
			}
		}
	}
	return any;
}

static void learn_table(struct tensor_layout *l, uint64_t object)
{
	uint64_t table = 0;

	if (tensor_block(l, object) == SIZE_MAX || !pointer(l, tensor_impl(l, object), &table))
		return;
	for (size_t i = 0; i < l->n_tables; i++)
		if (l->table[i] == table)
			return;
	if (l->n_tables < TENSOR_TABLES)
		l->table[l->n_tables++] = table;
}

void tensor_layout_learn(struct tensor_layout *l, struct remote *r, const struct cw_allocation *const *block,
			 size_t n_blocks, const uint64_t *object, size_t n)
{
	votes v;

	memset(v, 0, sizeof(v));
	*l = (struct tensor_layout){.r = r, .block = block, .n_blocks = n_blocks};
	for (size_t i = 0; i < n; i++)
		l->seen += vote(l, object[i], v);
	for (uint32_t a = 0; a < WAYS; a++)
		for (uint32_t b = 0; b < WAYS; b++)
			for (uint32_t c = 0; c < WAYS; c++)
				if (v[a][b][c] > l->agree) {
					l->agree = v[a][b][c];
					l->impl = a * 8;
					l->storage = b * 8;
					l->data = c * 8;
				}
	/* one way for all of them; a tensor without it has its memory in some other fashion */
	l->known = l->agree && l->agree >= l->seen - l->seen / 8;
	for (size_t i = 0; i < n; i++)
		learn_table(l, object[i]);
}

uint64_t tensor_impl(const struct tensor_layout *l, uint64_t object)
{
	uint64_t impl;

	return l->known && pointer(l, object + l->impl, &impl) ? impl : 0;
}

size_t tensor_impl_block(const struct tensor_layout *l, uint64_t impl)
{
	uint64_t storage, data;

	if (!impl || !pointer(l, impl + l->storage, &storage) || !pointer(l, storage + l->data, &data))
		return SIZE_MAX;
	return block_at(l, data);
}

size_t tensor_block(const struct tensor_layout *l, uint64_t object)
{
	return tensor_impl_block(l, tensor_impl(l, object));
}
