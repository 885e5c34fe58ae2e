/* SPDX-License-Identifier: Apache-2.0
 * How much device memory cuDNN takes, or asks the program for: every constant of the model is here.
 *
 * It is a MODEL: cuDNN documents neither which engine it picks nor what the engine needs. The workspaces of convolutions are fitted to
 * those of 270 random ones on an H200 with torch 2.11 and cuDNN 9.19 (tests/gpu/cudnn_workspaces.py --count 60 --seed 1 and 2, --count 150
 * --seed 11), never to a listed shape. What an engine needs is known well: almost every size is, to a few bytes, the sum of copies of x, w
 * and y, and of partial sums. Which engine is picked is not: cuDNN estimates times, here it is a few thresholds. Of 210 other random ones
 * (seeds 3 and 12), 75 % of the outputs, 78 % of the input gradients and 41 % of the weight gradients are within 1 % of the size of
 * the tensors: the number of partial sums is only roughly right. Other GPUs were not measured.
 */
#ifndef CUWHY_SIM_CUDNN_SIZES_H
#define CUWHY_SIM_CUDNN_SIZES_H

#include "sim/cudnn/cudnn.h"

enum {
	/* cudnnCreate: not known. On an H200 with torch 2.11, the first step of ResNet-50 adds 152 MiB (fp32) and 148 MiB (bf16) outside of
	 * PyTorch's allocator: the code of cuDNN, cuBLAS and PyTorch's kernels together, and this. Not measured apart: 0. */
	HANDLE_BYTES = 0,

	/* A workspace with copies has this much on top of them. Copies follow each other without a gap. */
	COPY_TAIL = 16,

	/* Tensor cores read 16 bytes of channels at once, so channels are padded to a multiple: of 8 for 16-bit types, of 4 for float.
	 * Documented (cuDNN developer guide, tensor core operations), and what is measured. */
	CHANNEL_BYTES = 16,

	/* Convolutions in groups run as one whose groups have this many channels at least and at most, a power of two, or as they are. */
	GROUP_CHANNELS_MIN = 8,
	GROUP_CHANNELS_MAX = 128,
	/* 16-bit types: up to this many channels, the former */
	GROUP_CHANNELS_MERGED = 16,

	/* Channels first, output: so few input channels need no copies, whatever the type. 3 do not, 4 do (the peak of a U-Net). */
	DIRECT_CHANNELS = 3,
	/* Nor does a 1x1 filter with strides and this many points of the output: 5 of 5 from 1444 on, 0 of 6 up to 1024. */
	DIRECT_POINTS = 1200,
	/* Channels first, float, at most two dimensions of space: with less work than this, in millions of operations, the tensors are used
	 * as they are. For the output only with fewer input channels than the third one; with more, and the last one's outputs, y is not copied. */
	DIRECT_MFLOP_FPROP = 500,
	DIRECT_MFLOP_DGRAD = 250,
	DIRECT_INPUTS_FPROP = 64,
	DIRECT_OUTPUTS_FPROP = 16,

	/* Channels last, float, Hopper and later: the engine for TF32 reads rounded copies of its inputs. It is taken for filters with so
	 * many elements per channel (7x7), in space with three dimensions, and with few channels. */
	ROUNDED_CAPABILITY = 90,
	ROUNDED_TAPS = 49,
	ROUNDED_CHANNELS = 48,
	ROUNDED_INPUTS_FPROP = 128,
	ROUNDED_OUTPUTS_WGRAD = 256,
	ROUNDED_MFLOP_FPROP = 100,

	/* A weight gradient sums over batch and space. When the gradient has fewer tiles than the GPU has multiprocessors, the sum is split
	 * so that there is one part for each multiprocessor, and each part writes its tile or its gradient in float. A tile is at most this
	 * large in each direction; for float, it has at least SPLIT_TILE_MIN outputs. All parts together are at most so many gradients. */
	SPLIT_TILE = 128,
	SPLIT_TILE_MIN = 32,
	SPLIT_MAX = 32,
	/* Up to so many channels, a tile has two elements of the filter, or is half as large. */
	SPLIT_CHANNELS = 64,
	/* The sum is split from this much work on (float) or this many terms (other types); a part has this many terms at least. */
	SPLIT_MFLOP = 500,
	SPLIT_TERMS = 20000,
	SPLIT_TERMS_GROUPED = 2000,
	SPLIT_PART = 64,
	SPLIT_PART_GROUPED = 256,
	SPLIT_PART_16_BIT = 1024,	/* 1x1 filters */

	/* The precomputed implicit GEMM has a table of offsets: one int per element of a filter. Not measured. */
	OFFSET_BYTES = 4,

	/* Such tables and matrices, and the sums of a batch norm, are rounded up to this. Not measured. */
	PART_ALIGNMENT = 256,

	/* Batch norm, channels last: partial sums per channel and multiprocessor group. Channels first: none. Not measured; the peak of ResNet-50
	 * on an H200 is met within 0.13 % without any. */
	BATCH_NORM_SUMS = 2,
	BATCH_NORM_GROUPS = 16,

	/* RNN. Fitted to 60 random networks and 31 large ones on an H200 with torch 2.11 and cuDNN 9.19 (tests/gpu/cudnn_rnn.py --count 60 --seed 1,
	 * and --large): every reserve is met to the byte, 89 of the 91 workspaces too, the others within 0.03 %. Of 60 others (seed 2), 46
	 * workspaces are met to the byte and 58 within 1 %; the worst is 2.8 % too large. Their reserves only showed that these are rounded up.
	 * The reserve: per element of a layer's output, these, then the outputs of all layers but the last, and a bit per element and
	 * direction where dropout is applied. */
	RNN_RESERVE_PLAIN = 1,
	RNN_RESERVE_LSTM = 5,
	RNN_RESERVE_GRU = 6,
	RNN_ALIGNMENT = 32,
	RNN_TAIL = 256,
	/* The workspace: this much per layer and direction, the matrices, so much per sequence if not packed, and the larger one of what
	 * the forward and the backward pass need. Both need copies of what is not packed; the backward pass twice, for the gradients. */
	RNN_LAYER_BYTES = 8 << 20,
	RNN_LENGTH_BYTES = 8,
	/* Forward: the gates of one layer for at most this many steps, the input of the next layer where dropout is applied, and so many states
	 * (batch times hidden of all layers). Both directions: the gates of all steps, and two outputs and states more. */
	RNN_GATE_STEPS = 256,
	RNN_STATES_PLAIN = 1,
	RNN_STATES_LSTM = 6,
	RNN_STATES_GRU = 3,
	RNN_REVERSED = 2,
	/* Backward, the same for all cells but for states: a gradient as wide as the widest of input and output, and what a layer
	 * hands to the one below: of one direction, at least so many steps, and so many rows, for each layer and one more. */
	RNN_GRADIENT_STATES = 1,
	RNN_GRADIENT_STATES_LSTM = 3,
	RNN_WAVE_STEPS = 8,
	RNN_WAVE_ROWS = 128,
	/* The algorithm for small hidden layers: so many more outputs of one direction, forward per gate, and backward; there also the
	 * states once more if there is one direction. Forward was the larger one of LSTMs only. */
	RNN_SMALL_GATES = 4,
	RNN_SMALL_PLAIN = 9,
	RNN_SMALL_LSTM = 12,
	RNN_SMALL_GRU = 14,

	/* The state of cuRAND's XORWOW generator, one per resident thread. Documented size of curandState; not measured here. */
	DROPOUT_STATE_BYTES = 48,

	/* CTC: alpha and beta of every step, in float. From the algorithm; not measured. */
	CTC_TABLES = 2,
};

/* The engines of a convolution. cuDNN has dozens; these are the ones that matter for memory and for PyTorch's filters. */
enum dnn_engine { DNN_ENGINE_FMA, DNN_ENGINE_TENSOR_CORE, DNN_ENGINES };

size_t dnn_conv_workspace(const struct dnn_conv *c, enum dnn_engine engine, const struct dnn_device *d);
/* The table of offsets of the precomputed implicit GEMM, and the matrix of the explicit one (im2col). */
size_t dnn_conv_offsets(const struct dnn_conv *c);
size_t dnn_conv_matrix(const struct dnn_conv *c);
size_t dnn_batch_norm_workspace(const struct dnn_shape *x);

#endif
