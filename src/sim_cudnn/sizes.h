/* SPDX-License-Identifier: Apache-2.0
 * How much device memory cuDNN takes, or asks the program for: every constant of the model is here.
 *
 * It is a MODEL. cuDNN documents neither which engine it picks nor what the engine needs; the rules below follow from what is
 * documented about the algorithms. No single workspace was compared with a card yet. Two totals were, on an H200 with torch 2.11:
 * ResNet-50, batch 64, channels first: PyTorch's reserved memory is 0.6 % above the card's in float and 1.1 % below in bfloat16 (5.9 and
 * 5.2 % below without workspaces); an LSTM: see below. tests/gpu/cudnn_workspaces.py prints the workspaces of random convolutions, on a
 * GPU and on the simulated one, and compares the two: fit the constants to that, never to a listed shape.
 */
#ifndef CUWHY_SIM_CUDNN_SIZES_H
#define CUWHY_SIM_CUDNN_SIZES_H

#include "sim_cudnn/cudnn.h"

/* --- constants -------------------------------------------------------------------------------- */

enum {
	/* cudnnCreate: not known. On an H200 with torch 2.11, the first step of ResNet-50 adds 152 MiB (fp32) and 148 MiB (bf16) outside of
	 * PyTorch's allocator: the code of cuDNN, cuBLAS and PyTorch's kernels together, and this. Not measured apart: 0. */
	HANDLE_BYTES = 0,

	/* Each part of a workspace begins at a multiple of this. Not measured. */
	PART_ALIGNMENT = 256,

	/* Tensor cores read 16 bytes of channels at once, so channels are padded to a multiple: of 8 for 16-bit types, of 4 for float.
	 * Documented (cuDNN developer guide, tensor core operations). */
	CHANNEL_BYTES = 16,

	/* A weight gradient sums over batch and space. When the gradient has fewer tiles than the GPU has multiprocessors, the sum is split,
	 * and each part writes its own gradient in float. Tile and limit: not measured. */
	SPLIT_TILE = 128,
	SPLIT_MAX = 32,

	/* The precomputed implicit GEMM has a table of offsets: one int per element of a filter. Not measured. */
	OFFSET_BYTES = 4,

	/* Batch norm, channels last: partial sums per channel and multiprocessor group. Channels first: none. Not measured; the peak of ResNet-50
	 * on an H200 is met within 0.13 % without any. */
	BATCH_NORM_SUMS = 2,
	BATCH_NORM_GROUPS = 16,

	/* RNN, training: per element of a layer's output, the reserve has its gates and these; the workspace has the gates of one layer, and
	 * the weights. Fitted to one number, the peak of LSTM(512, 512, 2 layers) with 100 steps, batch 64, float on an H200: reserve and workspace
	 * are 247 MiB together there, 241 here. */
	RNN_RESERVE_EXTRA = 3,

	/* The state of cuRAND's XORWOW generator, one per resident thread. Documented size of curandState; not measured here. */
	DROPOUT_STATE_BYTES = 48,

	/* CTC: alpha and beta of every step, in float. From the algorithm; not measured. */
	CTC_TABLES = 2,
};

/* --- rules ------------------------------------------------------------------------------------ */

/* The engines of a convolution. cuDNN has dozens; these are the ones that matter for memory and for PyTorch's filters. */
enum dnn_engine { DNN_ENGINE_FMA, DNN_ENGINE_TENSOR_CORE, DNN_ENGINES };

size_t dnn_conv_workspace(const struct dnn_conv *c, enum dnn_engine engine, const struct dnn_device *d);
/* The table of offsets of the precomputed implicit GEMM, and the matrix of the explicit one (im2col). */
size_t dnn_conv_offsets(const struct dnn_conv *c);
size_t dnn_conv_matrix(const struct dnn_conv *c);
size_t dnn_batch_norm_workspace(const struct dnn_shape *x);

#endif
