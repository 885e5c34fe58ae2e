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

/* A tensor's shape is one piece: how many dimensions, room for five sizes and five strides, where in the storage it begins, how many
 * elements it has, the number of their type. */
#define SHAPE_FROM	40u
#define SHAPE_TO	128u
#define DIMENSIONS	5u
#define SHAPE_ELEMENTS	96u
#define SHAPE_TYPE	104u
#define SHAPES_LEAST	2u	/* tensors of more than one element that agree */

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

/* Elements of a tensor if its shape is there: their number is the product of its sizes. */
static uint64_t elements_at(const struct tensor_layout *l, uint64_t impl, uint32_t shape)
{
	uint64_t word[1 + DIMENSIONS], n = 1, all = 0;

	if (!remote_read(l->r, impl + shape, word, sizeof(word)) || word[0] > 64 ||
	    !remote_word(l->r, impl + shape + SHAPE_ELEMENTS, &all) || !all || all > 1ull << 48)
		return 0;
	for (uint64_t i = 0; word[0] <= DIMENSIONS && i < word[0]; i++)
		if (!word[1 + i] || __builtin_mul_overflow(n, word[1 + i], &n))
			return 0;
	return word[0] > DIMENSIONS || n == all ? all : 0;
}

static unsigned element_size(uint16_t type)
{
	static const uint8_t size[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
				       2, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1,	 1, 2, 4, 8};

	return type < sizeof(size) ? size[type] : 0;
}

static uint64_t elements_bytes(const struct tensor_layout *l, uint64_t impl, uint32_t shape)
{
	uint64_t n = elements_at(l, impl, shape);
	uint16_t type = UINT16_MAX;

	return n && remote_read(l->r, impl + shape + SHAPE_TYPE, &type, sizeof(type)) ? n * element_size(type) : 0;
}

uint64_t tensor_elements(const struct tensor_layout *l, uint64_t impl)
{
	return l->shape && impl ? elements_bytes(l, impl, l->shape) : 0;
}

/* The place at which all tensors have a shape that fits into their memory. Expanded ones have more elements than that. */
static void learn_shape(struct tensor_layout *l, const uint64_t *object, size_t n)
{
	for (uint32_t shape = SHAPE_FROM; shape < SHAPE_TO; shape += 8) {
		size_t fit = 0, seen = 0;

		for (size_t i = 0; i < n; i++) {
			uint64_t impl = tensor_impl(l, object[i]), bytes;
			size_t block = tensor_impl_block(l, impl);

			if (block == SIZE_MAX || elements_at(l, impl, shape) == 1)
				continue;
			bytes = elements_bytes(l, impl, shape);
			seen++;
			fit += bytes && bytes <= l->block[block]->size;
		}
		if (fit >= SHAPES_LEAST && fit >= seen - seen / 8)
			l->shape = shape;
	}
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
	if (l->known)
		learn_shape(l, object, n);
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
