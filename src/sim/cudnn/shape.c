/* SPDX-License-Identifier: Apache-2.0
 * Shapes of tensors, and of convolutions.
 */
#include "sim/cudnn/cudnn.h"

int64_t dnn_elements(const struct dnn_shape *s)
{
	int64_t n = 1;

	for (int i = 0; i < s->dims; i++)
		n *= s->dim[i];
	return n;
}

size_t dnn_bytes(const struct dnn_shape *s)
{
	return (size_t)dnn_elements(s) * (size_t)dnn_type_bits(s->type) / 8;
}

/* Also right where one channel or one pixel makes both orders the same bytes: the strides still tell what the program meant. */
bool dnn_channels_last(const struct dnn_shape *s)
{
	return s->dims >= 3 && s->stride[1] == 1 && s->stride[s->dims - 1] >= s->dim[1];
}

bool dnn_same_dims(const struct dnn_shape *a, const struct dnn_shape *b)
{
	bool same = a->dims == b->dims;

	for (int i = 0; same && i < a->dims; i++)
		same = a->dim[i] == b->dim[i];
	return same;
}

void dnn_pack(struct dnn_shape *s, bool channels_last)
{
	int64_t stride = channels_last && s->dims > 1 ? s->dim[1] : 1;

	for (int i = s->dims - 1; i >= 0; i--) {
		if (channels_last && i == 1) {
			s->stride[i] = 1;
			continue;
		}
		s->stride[i] = stride;
		stride *= s->dim[i];
	}
}

static int64_t output_size(const struct dnn_conv *c, int i)
{
	int64_t window = (c->w.dim[2 + i] - 1) * c->dilation[i] + 1;
	int64_t room = c->x.dim[2 + i] + c->pad[i] + c->post_pad[i] - window;

	return room < 0 ? 0 : room / c->stride[i] + 1;
}

int dnn_conv_check(const struct dnn_conv *c)
{
	int dims = c->spatial + 2;

	DNN_REQUIRE(c->x.dims == dims && c->w.dims == dims && c->y.dims == dims, DNN_BAD_PARAM_SHAPE_MISMATCH);
	DNN_REQUIRE(c->groups > 0 && c->x.dim[1] == c->w.dim[1] * c->groups, DNN_BAD_PARAM_SHAPE_MISMATCH);
	DNN_REQUIRE(c->w.dim[0] % c->groups == 0 && c->y.dim[1] == c->w.dim[0], DNN_BAD_PARAM_SHAPE_MISMATCH);
	DNN_REQUIRE(c->x.dim[0] == c->y.dim[0], DNN_BAD_PARAM_SHAPE_MISMATCH);
	for (int i = 0; i < c->spatial; i++)
		DNN_REQUIRE(output_size(c, i) == c->y.dim[2 + i], DNN_BAD_PARAM_SHAPE_MISMATCH);
	return DNN_SUCCESS;
}

static bool is_float(int type)
{
	return type == DNN_FLOAT || type == DNN_DOUBLE || type == DNN_HALF || type == DNN_BFLOAT16;
}

/* By the support matrix in cuDNN's documentation. */
int dnn_conv_supported(const struct dnn_conv *c, const struct dnn_device *d)
{
	int type = c->x.type;

	DNN_REQUIRE(c->w.type == type, DNN_NOT_SUPPORTED_DATA_TYPE);
	DNN_REQUIRE(is_float(type) || (c->pass == DNN_FPROP && dnn_type_bits(type) == 8), DNN_NOT_SUPPORTED_DATA_TYPE);
	DNN_REQUIRE(type != DNN_BFLOAT16 || d->capability >= 80, DNN_NOT_SUPPORTED_ARCH_MISMATCH);
	DNN_REQUIRE((type != DNN_FP8_E4M3 && type != DNN_FP8_E5M2) || d->capability >= 89,
		    DNN_NOT_SUPPORTED_ARCH_MISMATCH);
	DNN_REQUIRE(c->spatial >= 1 && c->spatial <= 3, DNN_NOT_SUPPORTED_SHAPE);
	return DNN_SUCCESS;
}

bool dnn_conv_tensor_cores(const struct dnn_conv *c, const struct dnn_device *d)
{
	/* one channel per group (depthwise) has no matrix to multiply */
	if (c->groups > 1 && c->w.dim[1] == 1)
		return false;
	switch (c->x.type) {
	case DNN_FLOAT:
	case DNN_BFLOAT16:
		return d->capability >= 80;
	case DNN_HALF:
		return d->capability >= 70;
	case DNN_DOUBLE:
		return false;
	}
	return d->capability >= 72;
}

int dnn_conv_launch(const struct dnn_conv *c, const struct dnn_handle *h)
{
	static const char *const names[] = {
		[DNN_FPROP] = "conv_fprop", [DNN_DGRAD] = "conv_dgrad", [DNN_WGRAD] = "conv_wgrad"};
	static const char *const layouts[2][2] = {{"nchw", "nhwc"}, {"ncdhw", "ndhwc"}};

	return dnn_launch(h, names[c->pass], c->x.type, layouts[c->spatial > 2][dnn_channels_last(&c->x)]);
}
