/* SPDX-License-Identifier: Apache-2.0
 * What the descriptors of cuDNN's older interface hold.
 */
#ifndef CUWHY_SIM_CUDNN_DESCRIPTORS_H
#define CUWHY_SIM_CUDNN_DESCRIPTORS_H

#include "sim/cudnn/cudnn.h"

/* cudnnMathType_t */
enum { DNN_MATH_DEFAULT, DNN_MATH_TENSOR_OP, DNN_MATH_TENSOR_OP_CONVERSION, DNN_MATH_FMA };

struct dnn_convolution {
	int spatial, pad[DNN_SPATIAL_MAX], stride[DNN_SPATIAL_MAX], dilation[DNN_SPATIAL_MAX];
	int mode, type, groups, math;
};

struct dnn_activation {
	int mode, nan;
	double limit;
};

struct dnn_pooling {
	int mode, window[2], pad[2], stride[2];
};

struct dnn_dropout {
	float rate;
	void *states;
	size_t bytes;
};

struct dnn_rnn {
	int algorithm, cell, bias, direction, input_mode, type, math_type, math, input, hidden, projection, layers;
	unsigned int flags;
	bool dropout;
};

struct dnn_rnn_data {
	int type, layout, steps, batch, width;
	int64_t total;	/* steps of all sequences, without padding */
};

struct dnn_ctc {
	int type, normalization, gradient, longest_label;
};

#endif
