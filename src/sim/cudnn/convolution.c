/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of the older interface: which algorithms there are, what they need, and running them.
 */
#include "sim/cudnn/descriptors.h"
#include "sim/cudnn/sizes.h"

/* What an algorithm needs. Those without a row are never picked and cannot be asked for: the transforms by FFT and Winograd, whose
 * workspaces are not modeled. */
enum need { NEED_NOTHING, NEED_OFFSETS, NEED_ENGINE, NEED_MATRIX };

struct algorithm {
	int number;
	enum need need;
	bool deterministic;
};

/* Numbers and properties by the API reference; the first is what cuDNN prefers. */
static const struct algorithm fprop_algorithms[] = {
	{1, NEED_ENGINE, true},	/* IMPLICIT_PRECOMP_GEMM */
	{0, NEED_NOTHING, true},	/* IMPLICIT_GEMM */
	{2, NEED_MATRIX, true},	/* GEMM */
};
static const struct algorithm dgrad_algorithms[] = {
	{1, NEED_ENGINE, true},	/* ALGO_1 */
	{0, NEED_NOTHING, false},	/* ALGO_0 */
};
static const struct algorithm wgrad_algorithms[] = {
	{1, NEED_ENGINE, true},	/* ALGO_1 */
	{0, NEED_NOTHING, false},	/* ALGO_0 */
	{3, NEED_OFFSETS, false},	/* ALGO_3 */
};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
static const struct {
	const struct algorithm *list;
	int count;
} algorithms[] = {
	[DNN_FPROP] = {fprop_algorithms, COUNT(fprop_algorithms)},
	[DNN_DGRAD] = {dgrad_algorithms, COUNT(dgrad_algorithms)},
	[DNN_WGRAD] = {wgrad_algorithms, COUNT(wgrad_algorithms)},
};

static const struct algorithm *find_algorithm(enum dnn_pass pass, int number)
{
	for (int i = 0; i < algorithms[pass].count; i++)
		if (algorithms[pass].list[i].number == number)
			return &algorithms[pass].list[i];
	return NULL;
}

static int make_conv(struct dnn_conv *c, enum dnn_pass pass, const struct dnn_shape *x, const struct dnn_shape *w,
		     const struct dnn_convolution *d, const struct dnn_shape *y)
{
	DNN_NEEDS(x && w && y && d);
	*c = (struct dnn_conv){.pass = pass, .x = *x, .w = *w, .y = *y, .spatial = d->spatial, .groups = d->groups};
	for (int i = 0; i < d->spatial; i++) {
		c->pad[i] = c->post_pad[i] = d->pad[i];
		c->stride[i] = d->stride[i];
		c->dilation[i] = d->dilation[i];
	}
	/* this interface has one status for whatever does not fit */
	return dnn_conv_check(c) ? dnn_fail(DNN_BAD_PARAM, "the shapes of the convolution do not fit together")
				 : DNN_SUCCESS;
}

static bool uses_tensor_cores(const struct dnn_conv *c, const struct dnn_convolution *d, const struct dnn_device *device)
{
	return d->math != DNN_MATH_FMA && dnn_conv_tensor_cores(c, device);
}

static size_t algorithm_bytes(const struct algorithm *a, const struct dnn_conv *c, const struct dnn_convolution *d,
			      const struct dnn_device *device)
{
	switch (a->need) {
	case NEED_NOTHING:
		return 0;
	case NEED_OFFSETS:
		return dnn_conv_offsets(c);
	case NEED_MATRIX:
		return dnn_conv_matrix(c);
	case NEED_ENGINE:
		break;
	}
	return uses_tensor_cores(c, d, device) ? dnn_conv_workspace(c, DNN_ENGINE_TENSOR_CORE, device)
					       : dnn_conv_offsets(c);
}

static int workspace_size(struct dnn_handle *h, enum dnn_pass pass, const struct dnn_shape *x, const struct dnn_shape *w,
			  const struct dnn_convolution *d, const struct dnn_shape *y, int number, size_t *bytes)
{
	const struct algorithm *a = find_algorithm(pass, number);
	struct dnn_conv c;
	int status;

	DNN_NEEDS(h && bytes);
	status = make_conv(&c, pass, x, w, d, y);
	if (status == DNN_SUCCESS)
		status = dnn_conv_supported(&c, &h->device);
	if (status)
		return status;
	DNN_REQUIRE(a, DNN_NOT_SUPPORTED);
	*bytes = algorithm_bytes(a, &c, d, &h->device);
	return DNN_SUCCESS;
}

DNN(cudnnGetConvolutionForwardWorkspaceSize,
    (struct dnn_handle * h, const struct dnn_shape *x, const struct dnn_shape *w, const struct dnn_convolution *d,
     const struct dnn_shape *y, int algorithm, size_t *bytes))
{
	return workspace_size(h, DNN_FPROP, x, w, d, y, algorithm, bytes);
}

DNN(cudnnGetConvolutionBackwardDataWorkspaceSize,
    (struct dnn_handle * h, const struct dnn_shape *w, const struct dnn_shape *dy, const struct dnn_convolution *d,
     const struct dnn_shape *dx, int algorithm, size_t *bytes))
{
	return workspace_size(h, DNN_DGRAD, dx, w, d, dy, algorithm, bytes);
}

DNN(cudnnGetConvolutionBackwardFilterWorkspaceSize,
    (struct dnn_handle * h, const struct dnn_shape *x, const struct dnn_shape *dy, const struct dnn_convolution *d,
     const struct dnn_shape *dw, int algorithm, size_t *bytes))
{
	return workspace_size(h, DNN_WGRAD, x, dw, d, dy, algorithm, bytes);
}

/* cudnnConvolutionFwdAlgoPerf_t and its two siblings. */
struct performance {
	int algorithm, status;
	float time;
	size_t memory;
	int deterministic, math, reserved[3];
};
_Static_assert(sizeof(struct performance) == 48, "layout of cudnnConvolutionFwdAlgoPerf_t");

/* Lists the algorithms that fit into `limit` bytes of workspace. A time of -1 means "not measured". */
static int list_algorithms(struct dnn_handle *h, const struct dnn_conv *c, const struct dnn_convolution *d,
			   size_t limit, bool run, int wanted, int *found, struct performance *results)
{
	int math = uses_tensor_cores(c, d, &h->device) ? DNN_MATH_TENSOR_OP : d->math;
	int status = DNN_SUCCESS;

	DNN_NEEDS(found && results);
	DNN_REQUIRE(wanted > 0, DNN_BAD_PARAM);
	status = dnn_conv_supported(c, &h->device);
	*found = 0;
	for (int i = 0; status == DNN_SUCCESS && i < algorithms[c->pass].count && *found < wanted; i++) {
		const struct algorithm *a = &algorithms[c->pass].list[i];
		size_t bytes = algorithm_bytes(a, c, d, &h->device);

		if (bytes > limit)
			continue;
		results[(*found)++] = (struct performance){.algorithm = a->number,
							   .time = run ? (float)(i + 1) : -1,
							   .memory = bytes,
							   .deterministic = a->deterministic,
							   .math = math};
		if (run)
			status = dnn_conv_launch(c, h);
	}
	return status;
}

static int get_algorithms(struct dnn_handle *h, enum dnn_pass pass, const struct dnn_shape *x,
			  const struct dnn_shape *w, const struct dnn_convolution *d, const struct dnn_shape *y,
			  int wanted, int *found, struct performance *results)
{
	struct dnn_conv c;
	int status;

	DNN_NEEDS(h);
	status = make_conv(&c, pass, x, w, d, y);
	return status ? status : list_algorithms(h, &c, d, SIZE_MAX, false, wanted, found, results);
}

DNN(cudnnGetConvolutionForwardAlgorithm_v7,
    (struct dnn_handle * h, const struct dnn_shape *x, const struct dnn_shape *w, const struct dnn_convolution *d,
     const struct dnn_shape *y, int wanted, int *found, struct performance *results))
{
	return get_algorithms(h, DNN_FPROP, x, w, d, y, wanted, found, results);
}

DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7,
    (struct dnn_handle * h, const struct dnn_shape *w, const struct dnn_shape *dy, const struct dnn_convolution *d,
     const struct dnn_shape *dx, int wanted, int *found, struct performance *results))
{
	return get_algorithms(h, DNN_DGRAD, dx, w, d, dy, wanted, found, results);
}

DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7,
    (struct dnn_handle * h, const struct dnn_shape *x, const struct dnn_shape *dy, const struct dnn_convolution *d,
     const struct dnn_shape *dw, int wanted, int *found, struct performance *results))
{
	return get_algorithms(h, DNN_WGRAD, x, dw, d, dy, wanted, found, results);
}

/* The original runs every algorithm that fits. Here they take no time; the order of preference becomes the time. */
static int find_algorithms(struct dnn_handle *h, enum dnn_pass pass, const struct dnn_shape *x,
			   const struct dnn_shape *w, const struct dnn_convolution *d, const struct dnn_shape *y,
			   const void *workspace, size_t bytes, int wanted, int *found, struct performance *results)
{
	struct dnn_conv c;
	int status;

	DNN_NEEDS(h);
	DNN_NEEDS(workspace || bytes == 0);
	status = make_conv(&c, pass, x, w, d, y);
	return status ? status : list_algorithms(h, &c, d, bytes, true, wanted, found, results);
}

DNN(cudnnFindConvolutionForwardAlgorithmEx,
    (struct dnn_handle * h, const struct dnn_shape *x, const void *x_data, const struct dnn_shape *w,
     const void *w_data, const struct dnn_convolution *d, const struct dnn_shape *y, void *y_data, int wanted,
     int *found, struct performance *results, void *workspace, size_t bytes))
{
	DNN_NEEDS(x_data && w_data && y_data);
	return find_algorithms(h, DNN_FPROP, x, w, d, y, workspace, bytes, wanted, found, results);
}

DNN(cudnnFindConvolutionBackwardDataAlgorithmEx,
    (struct dnn_handle * h, const struct dnn_shape *w, const void *w_data, const struct dnn_shape *dy,
     const void *dy_data, const struct dnn_convolution *d, const struct dnn_shape *dx, void *dx_data, int wanted,
     int *found, struct performance *results, void *workspace, size_t bytes))
{
	DNN_NEEDS(w_data && dy_data && dx_data);
	return find_algorithms(h, DNN_DGRAD, dx, w, d, dy, workspace, bytes, wanted, found, results);
}

DNN(cudnnFindConvolutionBackwardFilterAlgorithmEx,
    (struct dnn_handle * h, const struct dnn_shape *x, const void *x_data, const struct dnn_shape *dy,
     const void *dy_data, const struct dnn_convolution *d, const struct dnn_shape *dw, void *dw_data, int wanted,
     int *found, struct performance *results, void *workspace, size_t bytes))
{
	DNN_NEEDS(x_data && dy_data && dw_data);
	return find_algorithms(h, DNN_WGRAD, x, dw, d, dy, workspace, bytes, wanted, found, results);
}

/* A convolution that is to run: checked, and with a workspace that is large enough. */
static int ready(struct dnn_conv *c, struct dnn_handle *h, enum dnn_pass pass, const struct dnn_shape *x,
		 const struct dnn_shape *w, const struct dnn_convolution *d, const struct dnn_shape *y, int number,
		 const void *workspace, size_t bytes)
{
	size_t needed = 0;
	int status = workspace_size(h, pass, x, w, d, y, number, &needed);

	if (status == DNN_SUCCESS)
		status = make_conv(c, pass, x, w, d, y);
	if (status)
		return status;
	DNN_REQUIRE(bytes >= needed, DNN_BAD_PARAM);
	DNN_NEEDS(workspace || needed == 0);
	return DNN_SUCCESS;
}

DNN(cudnnConvolutionForward,
    (struct dnn_handle * h, const void *alpha, const struct dnn_shape *x, const void *x_data, const struct dnn_shape *w,
     const void *w_data, const struct dnn_convolution *d, int algorithm, void *workspace, size_t bytes,
     const void *beta, const struct dnn_shape *y, void *y_data))
{
	struct dnn_conv c;
	int status;

	DNN_NEEDS(alpha && beta && x_data && w_data && y_data);
	status = ready(&c, h, DNN_FPROP, x, w, d, y, algorithm, workspace, bytes);
	return status ? status : dnn_conv_launch(&c, h);
}

DNN(cudnnConvolutionBackwardData,
    (struct dnn_handle * h, const void *alpha, const struct dnn_shape *w, const void *w_data,
     const struct dnn_shape *dy, const void *dy_data, const struct dnn_convolution *d, int algorithm, void *workspace,
     size_t bytes, const void *beta, const struct dnn_shape *dx, void *dx_data))
{
	struct dnn_conv c;
	int status;

	DNN_NEEDS(alpha && beta && w_data && dy_data && dx_data);
	status = ready(&c, h, DNN_DGRAD, dx, w, d, dy, algorithm, workspace, bytes);
	return status ? status : dnn_conv_launch(&c, h);
}

DNN(cudnnConvolutionBackwardFilter,
    (struct dnn_handle * h, const void *alpha, const struct dnn_shape *x, const void *x_data,
     const struct dnn_shape *dy, const void *dy_data, const struct dnn_convolution *d, int algorithm, void *workspace,
     size_t bytes, const void *beta, const struct dnn_shape *dw, void *dw_data))
{
	struct dnn_conv c;
	int status;

	DNN_NEEDS(alpha && beta && x_data && dy_data && dw_data);
	status = ready(&c, h, DNN_WGRAD, x, dw, d, dy, algorithm, workspace, bytes);
	return status ? status : dnn_conv_launch(&c, h);
}

/* cudnnActivationMode_t: what can be fused into a convolution */
enum { ACTIVATION_RELU = 1, ACTIVATION_IDENTITY = 5 };

DNN(cudnnConvolutionBiasActivationForward,
    (struct dnn_handle * h, const void *alpha1, const struct dnn_shape *x, const void *x_data,
     const struct dnn_shape *w, const void *w_data, const struct dnn_convolution *d, int algorithm, void *workspace,
     size_t bytes, const void *alpha2, const struct dnn_shape *z, const void *z_data, const struct dnn_shape *bias,
     const void *bias_data, const struct dnn_activation *activation, const struct dnn_shape *y, void *y_data))
{
	struct dnn_conv c;
	int status;

	DNN_NEEDS(alpha1 && alpha2 && x_data && w_data && y_data && z_data && bias_data);
	DNN_NEEDS(z && bias && activation && y);
	DNN_REQUIRE(activation->mode == ACTIVATION_RELU || activation->mode == ACTIVATION_IDENTITY, DNN_NOT_SUPPORTED);
	DNN_REQUIRE(dnn_same_dims(z, y), DNN_NOT_SUPPORTED);
	DNN_REQUIRE(bias->dims == y->dims && bias->dim[1] == y->dim[1] && dnn_elements(bias) == y->dim[1], DNN_BAD_PARAM);
	status = ready(&c, h, DNN_FPROP, x, w, d, y, algorithm, workspace, bytes);
	return status ? status : dnn_launch(h, "conv_bias_relu_fprop", x->type, dnn_channels_last(x) ? "nhwc" : "nchw");
}
