/* SPDX-License-Identifier: Apache-2.0
 * Descriptors of tensors, filters, convolutions, activations and pooling: made, set, read, freed.
 */
#include "sim/cudnn/descriptors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTOR(name, structure)                                                      \
	DNN(cudnnCreate##name##Descriptor, (struct structure * *descriptor))             \
	{                                                                                \
		DNN_NEEDS(descriptor);                                                   \
		*descriptor = calloc(1, sizeof(**descriptor));                           \
		DNN_REQUIRE(*descriptor, DNN_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);     \
		return DNN_SUCCESS;                                                      \
	}                                                                                \
	DNN(cudnnDestroy##name##Descriptor, (struct structure * descriptor))             \
	{                                                                                \
		free(descriptor);                                                        \
		return DNN_SUCCESS;                                                      \
	}
#include "sim/cudnn/descriptors.def"
#undef DESCRIPTOR

/* Dimensions of a tensor that this interface can describe: at most 2^31 elements. */
static int check_dims(int type, int count, const int *dims)
{
	int64_t elements = 1;

	DNN_REQUIRE(dnn_type_bits(type), DNN_BAD_PARAM);
	DNN_NEEDS(dims);
	/* documented as at least 4, but PyTorch's CTC loss and RNN use 3, and work */
	DNN_REQUIRE(count >= 3 && count <= DNN_DIMS_MAX, DNN_NOT_SUPPORTED);
	for (int i = 0; i < count; i++) {
		DNN_REQUIRE(dims[i] > 0, DNN_BAD_PARAM);
		elements *= dims[i];
		DNN_REQUIRE(elements <= (int64_t)INT_MAX + 1, DNN_NOT_SUPPORTED);
	}
	return DNN_SUCCESS;
}

static void set_dims(struct dnn_shape *s, int type, int count, const int *dims)
{
	*s = (struct dnn_shape){.type = type, .dims = count};
	for (int i = 0; i < count; i++)
		s->dim[i] = dims[i];
}

DNN(cudnnSetTensorNdDescriptor, (struct dnn_shape * s, int type, int count, const int *dims, const int *strides))
{
	int status = check_dims(type, count, dims);

	DNN_NEEDS(s);
	DNN_NEEDS(strides);
	if (status)
		return status;
	set_dims(s, type, count, dims);
	for (int i = 0; i < count; i++)
		s->stride[i] = strides[i];
	return DNN_SUCCESS;
}

static void get_some(const int64_t *from, int have, int wanted, int *to)
{
	for (int i = 0; to && i < have && i < wanted; i++)
		to[i] = (int)from[i];
}

DNN(cudnnGetTensorNdDescriptor,
    (const struct dnn_shape *s, int wanted, int *type, int *count, int *dims, int *strides))
{
	DNN_NEEDS(s);
	DNN_NEEDS(type);
	DNN_NEEDS(count);
	DNN_REQUIRE(wanted >= 0, DNN_BAD_PARAM);
	*type = s->type;
	*count = s->dims;
	get_some(s->dim, s->dims, wanted, dims);
	get_some(s->stride, s->dims, wanted, strides);
	return DNN_SUCCESS;
}

/* cudnnTensorFormat_t */
enum { FORMAT_NCHW, FORMAT_NHWC, FORMAT_NCHW_VECT_C };

DNN(cudnnSetFilterNdDescriptor, (struct dnn_shape * s, int type, int format, int count, const int *dims))
{
	int status = check_dims(type, count, dims);

	DNN_NEEDS(s);
	DNN_REQUIRE(format >= FORMAT_NCHW && format <= FORMAT_NCHW_VECT_C, DNN_BAD_PARAM);
	if (status)
		return status;
	set_dims(s, type, count, dims);
	dnn_pack(s, format == FORMAT_NHWC);
	return DNN_SUCCESS;
}

DNN(cudnnGetFilterNdDescriptor,
    (const struct dnn_shape *s, int wanted, int *type, int *format, int *count, int *dims))
{
	DNN_NEEDS(s);
	DNN_NEEDS(type);
	DNN_NEEDS(format);
	DNN_NEEDS(count);
	*type = s->type;
	*format = dnn_channels_last(s) ? FORMAT_NHWC : FORMAT_NCHW;
	*count = s->dims;
	get_some(s->dim, s->dims, wanted, dims);
	return DNN_SUCCESS;
}

DNN(cudnnSetConvolutionNdDescriptor, (struct dnn_convolution * c, int spatial, const int *pad, const int *stride,
				      const int *dilation, int mode, int type))
{
	struct dnn_convolution set = {.spatial = spatial, .mode = mode, .type = type, .groups = 1};

	DNN_NEEDS(c);
	DNN_NEEDS(pad);
	DNN_NEEDS(stride);
	DNN_NEEDS(dilation);
	DNN_REQUIRE(spatial >= 0, DNN_BAD_PARAM);
	DNN_REQUIRE(spatial <= DNN_SPATIAL_MAX, DNN_NOT_SUPPORTED);
	DNN_REQUIRE(mode == 0 || mode == 1, DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_type_bits(type), DNN_BAD_PARAM);
	for (int i = 0; i < spatial; i++) {
		DNN_REQUIRE(pad[i] >= 0 && stride[i] > 0 && dilation[i] > 0, DNN_BAD_PARAM);
		set.pad[i] = pad[i];
		set.stride[i] = stride[i];
		set.dilation[i] = dilation[i];
	}
	*c = set;
	return DNN_SUCCESS;
}

DNN(cudnnSetConvolutionGroupCount, (struct dnn_convolution * c, int groups))
{
	DNN_NEEDS(c);
	DNN_REQUIRE(groups > 0, DNN_BAD_PARAM);
	c->groups = groups;
	return DNN_SUCCESS;
}

DNN(cudnnSetConvolutionMathType, (struct dnn_convolution * c, int math))
{
	DNN_NEEDS(c);
	DNN_REQUIRE(math >= DNN_MATH_DEFAULT && math <= DNN_MATH_FMA, DNN_BAD_PARAM);
	c->math = math;
	return DNN_SUCCESS;
}

DNN(cudnnSetActivationDescriptor, (struct dnn_activation * a, int mode, int nan, double limit))
{
	DNN_NEEDS(a);
	DNN_REQUIRE(mode >= 0 && mode <= 6 && (nan == 0 || nan == 1), DNN_BAD_PARAM);
	*a = (struct dnn_activation){mode, nan, limit};
	return DNN_SUCCESS;
}

DNN(cudnnSetPooling2dDescriptor, (struct dnn_pooling * p, int mode, int nan, int height, int width, int pad_height,
				  int pad_width, int stride_height, int stride_width))
{
	DNN_NEEDS(p);
	DNN_REQUIRE(mode >= 0 && mode <= 3 && (nan == 0 || nan == 1), DNN_BAD_PARAM);
	DNN_REQUIRE(height > 0 && width > 0 && stride_height > 0 && stride_width > 0, DNN_BAD_PARAM);
	DNN_REQUIRE(pad_height >= 0 && pad_width >= 0, DNN_BAD_PARAM);
	*p = (struct dnn_pooling){
		mode, {height, width}, {pad_height, pad_width}, {stride_height, stride_width}};
	return DNN_SUCCESS;
}

static int64_t pooled(const struct dnn_pooling *p, int64_t size, int i)
{
	return (size + 2 * p->pad[i] - p->window[i]) / p->stride[i] + 1;
}

DNN(cudnnPoolingForward,
    (struct dnn_handle * h, const struct dnn_pooling *p, const void *alpha, const struct dnn_shape *x,
     const void *x_data, const void *beta, const struct dnn_shape *y, void *y_data))
{
	DNN_NEEDS(h);
	DNN_NEEDS(p && x && y && alpha && beta);
	DNN_NEEDS(x_data && y_data);
	DNN_REQUIRE(x->dims == 4 && y->dims == 4 && x->type == y->type, DNN_BAD_PARAM);
	DNN_REQUIRE(x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1], DNN_BAD_PARAM);
	DNN_REQUIRE(pooled(p, x->dim[2], 0) == y->dim[2] && pooled(p, x->dim[3], 1) == y->dim[3], DNN_BAD_PARAM);
	return dnn_launch(h, "pooling_fprop", x->type, dnn_channels_last(x) ? "nhwc" : "nchw");
}
