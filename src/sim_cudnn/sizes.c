/* SPDX-License-Identifier: Apache-2.0
 * The rules of the model in sizes.h.
 */
#include "sim_cudnn/sizes.h"

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A copy of a tensor with channels last and padded. */
static size_t padded_copy(const struct dnn_shape *s, bool pad_batch)
{
	size_t unit = CHANNEL_BYTES * 8 / (size_t)dnn_type_bits(s->type);
	size_t elements = round_up((size_t)s->dim[1], unit);

	/* the batch of a filter is the channels of the output */
	elements *= pad_batch ? round_up((size_t)s->dim[0], unit) : (size_t)s->dim[0];
	for (int i = 2; i < s->dims; i++)
		elements *= (size_t)s->dim[i];
	return round_up(elements * (size_t)dnn_type_bits(s->type) / 8, PART_ALIGNMENT);
}

static bool is_padded(const struct dnn_shape *s)
{
	return (size_t)s->dim[1] * (size_t)dnn_type_bits(s->type) / 8 % CHANNEL_BYTES == 0;
}

/* Tensor cores need channels last: what is not, or has channels that must be padded, is copied before or after. */
static size_t copies(const struct dnn_conv *c)
{
	bool other_order = !dnn_channels_last(&c->x);
	size_t bytes = 0;

	if (other_order || !is_padded(&c->x))
		bytes += padded_copy(&c->x, false);
	if (other_order || !is_padded(&c->w))
		bytes += padded_copy(&c->w, true);
	if (other_order || !is_padded(&c->y))
		bytes += padded_copy(&c->y, false);
	return bytes;
}

static int64_t tiles(int64_t n)
{
	return (n + SPLIT_TILE - 1) / SPLIT_TILE;
}

/* Gradients of the weights that are summed up at the end. */
static size_t partial_sums(const struct dnn_conv *c, const struct dnn_device *d)
{
	int64_t per_filter = dnn_elements(&c->w) / c->w.dim[0];
	int64_t whole = tiles(c->w.dim[0]) * tiles(per_filter);
	int64_t terms = dnn_elements(&c->y) / c->y.dim[1];
	int64_t splits = whole ? min64(min64(d->sms / whole, tiles(terms)), SPLIT_MAX) : 1;

	return splits > 1 ? (size_t)splits * round_up((size_t)dnn_elements(&c->w) * sizeof(float), PART_ALIGNMENT) : 0;
}

size_t dnn_conv_offsets(const struct dnn_conv *c)
{
	return round_up((size_t)(dnn_elements(&c->w) / c->w.dim[0]) * OFFSET_BYTES, PART_ALIGNMENT);
}

size_t dnn_conv_matrix(const struct dnn_conv *c)
{
	size_t rows = (size_t)(dnn_elements(&c->w) / c->w.dim[0]);
	size_t columns = (size_t)(dnn_elements(&c->y) / c->y.dim[0] / c->y.dim[1]);

	return round_up(rows * columns * (size_t)dnn_type_bits(c->x.type) / 8, PART_ALIGNMENT);
}

size_t dnn_conv_workspace(const struct dnn_conv *c, enum dnn_engine engine, const struct dnn_device *d)
{
	size_t sums = c->pass == DNN_WGRAD ? partial_sums(c, d) : 0;

	return engine == DNN_ENGINE_TENSOR_CORE ? copies(c) + sums : 0;
}

size_t dnn_batch_norm_workspace(const struct dnn_shape *x)
{
	if (!dnn_channels_last(x))
		return 0;
	return round_up((size_t)x->dim[1] * BATCH_NORM_SUMS * BATCH_NORM_GROUPS * sizeof(float), PART_ALIGNMENT);
}
