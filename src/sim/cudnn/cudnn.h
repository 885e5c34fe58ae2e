/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuDNN 9: handles, shapes, errors and kernels, which all of its files use. Constants and structures are those of the
 * public cuDNN API; the build needs none of NVIDIA's headers.
 */
#ifndef CUWHY_SIM_CUDNN_H
#define CUWHY_SIM_CUDNN_H

#include "sim/common/standin.h"

enum dnn_status {
#define STATUS(name, number) DNN_##name = number,
#include "sim/cudnn/status.def"
#undef STATUS
};

enum dnn_type {
#define TYPE(name, number, bits, text) DNN_##name = number,
#include "sim/cudnn/types.def"
#undef TYPE
};

/* Bits of an element; 0 if there is no such type. */
int dnn_type_bits(int type);
const char *dnn_type_text(int type);

#define DNN(name, params) STANDIN(int, name, params)

/* Keeps the reason for cudnnGetLastErrorString and returns the status. */
int dnn_fail(int status, const char *reason);

/* The beginning of most functions: a condition that the original checks, and the status it returns when it does not hold. */
#define DNN_REQUIRE(condition, status)                           \
	do {                                                     \
		if (!(condition))                                \
			return dnn_fail(status, "!(" #condition ")"); \
	} while (0)
/* A pointer that must not be null; in functions that older versions of cuDNN have, too. */
#define DNN_NEEDS(pointer) DNN_REQUIRE(pointer, DNN_BAD_PARAM)

/* As cudnnGetVersion reports it: 91900 is 9.19.0. */
int dnn_version(void);
/* The CUDA that this cuDNN was built for, as 13000. */
int dnn_cudart_version(void);

struct dnn_device {
	int capability;	/* 90 is 9.0 */
	int sms, threads_per_sm;
};

/* The GPU of the current context; zeros if there is none. */
struct dnn_device dnn_device(void);

struct dnn_handle {
	struct sim_stream *stream;
	struct dnn_device device;
	sim_addr memory;
};

/* Launches cudnn_OPERATION_TYPE or, with a layout, cudnn_OPERATION_TYPE_LAYOUT in the handle's stream. Returns a status. */
int dnn_launch(const struct dnn_handle *h, const char *operation, int type, const char *layout);

enum { DNN_DIMS_MAX = 8, DNN_SPATIAL_MAX = DNN_DIMS_MAX - 2 };

/* A tensor: batch, channels, then space. */
struct dnn_shape {
	int type, dims;
	int64_t dim[DNN_DIMS_MAX], stride[DNN_DIMS_MAX];
};

int64_t dnn_elements(const struct dnn_shape *s);
size_t dnn_bytes(const struct dnn_shape *s);
/* Channels are the fastest dimension: NHWC, NDHWC. */
bool dnn_channels_last(const struct dnn_shape *s);
bool dnn_same_dims(const struct dnn_shape *a, const struct dnn_shape *b);
/* Strides of a tensor without gaps, in the given order. */
void dnn_pack(struct dnn_shape *s, bool channels_last);

enum dnn_pass { DNN_FPROP, DNN_DGRAD, DNN_WGRAD };

/* One convolution, whichever interface described it. */
struct dnn_conv {
	enum dnn_pass pass;
	struct dnn_shape x, w, y;
	int spatial;
	int64_t pad[DNN_SPATIAL_MAX], post_pad[DNN_SPATIAL_MAX], stride[DNN_SPATIAL_MAX], dilation[DNN_SPATIAL_MAX];
	int64_t groups;
};

/* Whether the three shapes fit together: DNN_SUCCESS, or the status of the original. */
int dnn_conv_check(const struct dnn_conv *c);
/* Whether any engine runs it on this GPU. */
int dnn_conv_supported(const struct dnn_conv *c, const struct dnn_device *d);
/* Whether an engine with tensor cores does; for float that means TF32. */
bool dnn_conv_tensor_cores(const struct dnn_conv *c, const struct dnn_device *d);
int dnn_conv_launch(const struct dnn_conv *c, const struct dnn_handle *h);

#endif
