/* SPDX-License-Identifier: Apache-2.0
 * The rules of the model in sizes.h.
 */
#include "sim/cudnn/sizes.h"

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t parts_of(size_t n, size_t unit)
{
	return (n + unit - 1) / unit;
}

/* The smallest power of two times `least` that is not below n; at most `most`. */
static size_t power_of_two(size_t n, size_t least, size_t most)
{
	size_t power = least;

	while (power < n && power < most)
		power *= 2;
	return power;
}

/* A convolution as the rules see it. Channels are those of one group. */
struct problem {
	enum dnn_pass pass;
	size_t element, groups, batch, inputs, outputs;
	size_t taps;	/* elements of a filter per channel */
	size_t x_points, y_points;	/* batch times space */
	size_t mflop, sms;
	bool channels_last, single, volume, unit_stride, rounds;
};

static size_t points(const struct dnn_shape *s)
{
	return (size_t)(dnn_elements(s) / s->dim[1]);
}

static struct problem problem_of(const struct dnn_conv *c, const struct dnn_device *d)
{
	struct problem p = {.pass = c->pass,
			    .element = (size_t)dnn_type_bits(c->x.type) / 8,
			    .groups = (size_t)c->groups,
			    .batch = (size_t)c->x.dim[0],
			    .inputs = (size_t)c->w.dim[1],
			    .outputs = (size_t)(c->w.dim[0] / c->groups),
			    .taps = (size_t)(dnn_elements(&c->w) / c->w.dim[0] / c->w.dim[1]),
			    .x_points = points(&c->x),
			    .y_points = points(&c->y),
			    .sms = (size_t)d->sms,
			    .channels_last = dnn_channels_last(&c->x),
			    .single = c->x.type == DNN_FLOAT,
			    .volume = c->spatial == 3,
			    .unit_stride = true,
			    .rounds = d->capability >= ROUNDED_CAPABILITY};

	for (int i = 0; i < c->spatial; i++)
		p.unit_stride = p.unit_stride && c->stride[i] == 1;
	p.mflop = 2 * p.y_points * (size_t)dnn_elements(&c->w) / 1000000;
	return p;
}

static size_t padded(const struct problem *p, size_t channels)
{
	return round_up(channels, CHANNEL_BYTES / p->element);
}

enum { COPY_X = 1, COPY_W = 2, COPY_Y = 4 };

static size_t copies(const struct problem *p, int which, size_t inputs, size_t outputs)
{
	size_t elements = 0;

	if (which & COPY_X)
		elements += p->x_points * inputs;
	if (which & COPY_W)
		elements += p->taps * inputs * outputs;
	if (which & COPY_Y)
		elements += p->y_points * outputs;
	return which ? elements * p->groups * p->element + COPY_TAIL : 0;
}

/* Copies that tensors with channels last need because their channels are not as many. */
static int padding_copies(const struct problem *p, size_t inputs, size_t outputs)
{
	int which = 0;

	if (inputs != p->inputs)
		which |= COPY_X | COPY_W;
	if (outputs != p->outputs)
		which |= COPY_Y | COPY_W;
	return which;
}

/* Whole gradients: as many as there are multiprocessors for one. */
static size_t gradients(const struct problem *p, size_t tile_outputs, size_t tile_inputs, size_t terms)
{
	size_t inputs = padded(p, p->inputs), outputs = padded(p, p->outputs);
	size_t tiles = parts_of(outputs, tile_outputs) * parts_of(inputs * p->taps, tile_inputs);
	size_t parts = smaller(p->sms / tiles, p->y_points / terms);

	return parts > 1 ? parts * p->groups * inputs * outputs * p->taps * sizeof(float) : 0;
}

/* Tiles of a gradient, and how many parts there are of each. */
struct split {
	size_t tiles, parts, tile;
};

/* Float: a tile has outputs in one direction, and channels of one or two elements of the filter in the other. */
static struct split split_single(const struct problem *p, size_t inputs, size_t outputs)
{
	size_t height = power_of_two(outputs, SPLIT_TILE_MIN, SPLIT_TILE);
	size_t across = inputs <= SPLIT_CHANNELS ? parts_of(p->taps, 2) : p->taps * parts_of(inputs, SPLIT_TILE);
	size_t tiles = parts_of(outputs, height) * across;

	return (struct split){tiles, p->sms / tiles, height * SPLIT_TILE};
}

/* Other types: two elements of the filter have a tile where neither side has many channels; otherwise each has tiles of its own. There are
 * multiprocessors for an even number of them. */
static struct split split_16_bit(const struct problem *p, size_t inputs, size_t outputs)
{
	size_t per_tap = parts_of(outputs, SPLIT_TILE) * parts_of(inputs, SPLIT_TILE), pairs = parts_of(p->taps, 2);
	size_t half = SPLIT_TILE / 2 * SPLIT_TILE;

	if (inputs <= SPLIT_CHANNELS && outputs <= SPLIT_CHANNELS)
		return (struct split){pairs, p->sms / (2 * round_up(pairs, 2)), half};
	return (struct split){per_tap * p->taps, p->sms / (per_tap * 2 * pairs),
			      inputs <= SPLIT_CHANNELS || outputs <= SPLIT_CHANNELS ? half : 2 * half};
}

/* Tiles may be larger than what they cover. */
static size_t gradient_tiles(const struct problem *p)
{
	size_t inputs = padded(p, p->inputs), outputs = padded(p, p->outputs);
	struct split s = p->single ? split_single(p, inputs, outputs) : split_16_bit(p, inputs, outputs);
	size_t most = SPLIT_MAX * inputs * outputs * p->taps;

	return s.parts > 1 ? smaller(s.parts * s.tiles * s.tile, most) * sizeof(float) : 0;
}

static size_t sums(const struct problem *p)
{
	bool large = p->single ? p->mflop >= SPLIT_MFLOP
			       : p->y_points >= SPLIT_TERMS && !(p->volume && p->channels_last);

	return p->pass == DNN_WGRAD && large ? gradient_tiles(p) : 0;
}

/* The weights with channels first: one product per image, in float. That it is not so where copies are smaller follows from the peak of
 * ResNet-50 in float: it would be 106 MiB higher. */
static size_t products_per_image(const struct problem *p)
{
	size_t products = p->batch > 1 ? p->batch * p->inputs * p->outputs * sizeof(float) : 0;
	size_t copied = copies(p, COPY_X | COPY_Y, padded(p, p->inputs), padded(p, p->outputs));

	return p->single && products > copied ? copied + gradient_tiles(p) : products;
}

/* A matrix product, which reads any layout. */
static size_t pointwise(const struct problem *p)
{
	if (p->pass != DNN_WGRAD)
		return 0;
	if (!p->channels_last)
		return products_per_image(p);
	return p->single ? gradients(p, SPLIT_TILE, 2 * SPLIT_TILE, SPLIT_PART)
			 : gradients(p, 2 * SPLIT_TILE, SPLIT_TILE, SPLIT_PART_16_BIT);
}

/* All groups as one convolution: each has the same power of two of channels. */
static size_t merged_groups(const struct problem *p, size_t channels)
{
	int which = p->channels_last ? padding_copies(p, channels, channels) : COPY_X | COPY_W | COPY_Y;

	return copies(p, which, channels, channels);
}

static size_t grouped(const struct problem *p)
{
	size_t larger = p->inputs > p->outputs ? p->inputs : p->outputs;
	size_t channels = power_of_two(larger, GROUP_CHANNELS_MIN, GROUP_CHANNELS_MAX);
	size_t inputs = padded(p, p->inputs), outputs = padded(p, p->outputs);
	bool merged = p->single ? p->pass == DNN_FPROP : p->pass != DNN_WGRAD && channels <= GROUP_CHANNELS_MERGED;

	if (p->pass == DNN_FPROP && p->single && p->taps == 1)
		return 0;
	if (p->pass == DNN_WGRAD && p->y_points < SPLIT_TERMS_GROUPED)
		return 0;
	if (p->volume || merged)
		return merged_groups(p, channels);
	if (p->pass == DNN_DGRAD && p->single)
		return copies(p, COPY_X | COPY_Y, p->inputs, p->outputs);
	return copies(p, p->taps > 1 || padding_copies(p, inputs, outputs) ? COPY_X | COPY_W | COPY_Y : COPY_X | COPY_Y,
		      inputs, outputs) +
	       (p->pass == DNN_WGRAD ? gradients(p, SPLIT_TILE, SPLIT_TILE, SPLIT_PART_GROUPED) : 0);
}

/* Whether an engine that reads channels first runs a convolution. */
static bool is_direct(const struct problem *p)
{
	bool small = p->single && !p->volume;

	switch (p->pass) {
	case DNN_FPROP:
		if (p->inputs <= DIRECT_CHANNELS)
			return true;
		if (p->taps == 1)
			return p->y_points >= DIRECT_POINTS;
		return small && p->mflop < DIRECT_MFLOP_FPROP && p->inputs < DIRECT_INPUTS_FPROP;
	case DNN_DGRAD:
		return small && p->mflop < DIRECT_MFLOP_DGRAD;
	case DNN_WGRAD:
		break;
	}
	return false;
}

/* Tensor cores need channels last: everything else is copied before or after, unless that takes longer than doing without. */
static int channels_first_copies(const struct problem *p)
{
	bool padding = padding_copies(p, padded(p, p->inputs), padded(p, p->outputs)) != 0;

	if (is_direct(p))
		return 0;
	if (p->pass == DNN_FPROP && p->single && p->taps > 1 && p->mflop < DIRECT_MFLOP_FPROP &&
	    p->outputs >= DIRECT_OUTPUTS_FPROP)
		return COPY_X | COPY_W;
	return p->taps > 1 || padding ? COPY_X | COPY_W | COPY_Y : COPY_X | COPY_Y;
}

/* Whether the engine with rounded copies runs a convolution of float with channels last. */
static bool is_rounded(const struct problem *p)
{
	bool large_filter = p->taps >= ROUNDED_TAPS || p->volume;

	switch (p->pass) {
	case DNN_FPROP:
		return large_filter || (p->taps > 1 && p->outputs <= ROUNDED_CHANNELS &&
					p->inputs <= ROUNDED_INPUTS_FPROP && p->mflop >= ROUNDED_MFLOP_FPROP);
	case DNN_DGRAD:
		return p->inputs <= ROUNDED_CHANNELS && p->outputs <= ROUNDED_CHANNELS && p->unit_stride;
	case DNN_WGRAD:
		break;
	}
	return large_filter || (p->taps > 1 && p->inputs <= ROUNDED_CHANNELS && p->outputs < ROUNDED_OUTPUTS_WGRAD);
}

static size_t channels_last(const struct problem *p)
{
	size_t inputs = padded(p, p->inputs), outputs = padded(p, p->outputs);
	int padding = padding_copies(p, inputs, outputs);
	bool rounded = p->single && p->rounds && is_rounded(p);

	if (p->pass == DNN_WGRAD && p->single && !padding && p->mflop < SPLIT_MFLOP)
		return 0;
	if (p->pass == DNN_WGRAD && rounded)
		return copies(p, COPY_X | COPY_Y, inputs, outputs) + gradients(p, SPLIT_TILE, SPLIT_TILE, SPLIT_PART);
	if (rounded && !padding)
		padding = p->pass == DNN_DGRAD ? COPY_W | COPY_Y : COPY_X | COPY_W | (p->volume ? COPY_Y : 0);
	return copies(p, padding, inputs, outputs) + sums(p);
}

size_t dnn_conv_workspace(const struct dnn_conv *c, enum dnn_engine engine, const struct dnn_device *d)
{
	struct problem p = problem_of(c, d);

	if (engine != DNN_ENGINE_TENSOR_CORE)
		return 0;
	if (p.groups > 1)
		return grouped(&p);
	if (p.taps == 1 && p.unit_stride)
		return pointwise(&p);
	if (p.channels_last)
		return channels_last(&p);
	return copies(&p, channels_first_copies(&p), padded(&p, p.inputs), padded(&p, p.outputs)) + sums(&p);
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

size_t dnn_batch_norm_workspace(const struct dnn_shape *x)
{
	if (!dnn_channels_last(x))
		return 0;
	return round_up((size_t)x->dim[1] * BATCH_NORM_SUMS * BATCH_NORM_GROUPS * sizeof(float), PART_ALIGNMENT);
}
