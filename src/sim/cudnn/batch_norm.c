/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization.
 */
#include "sim/cudnn/descriptors.h"
#include "sim/cudnn/sizes.h"

/* cudnnBatchNormMode_t, cudnnBatchNormOps_t */
enum { MODE_PER_ACTIVATION, MODE_SPATIAL, MODE_SPATIAL_PERSISTENT };
enum { OPS_BN, OPS_BN_ACTIVATION, OPS_BN_ADD_ACTIVATION };

static int check_shapes(int mode, const struct dnn_shape *x, const struct dnn_shape *y, const struct dnn_shape *w)
{
	DNN_NEEDS(x && y && w);
	DNN_REQUIRE(mode >= MODE_PER_ACTIVATION && mode <= MODE_SPATIAL_PERSISTENT, DNN_BAD_PARAM);
	DNN_REQUIRE(x->dims == 4 || x->dims == 5, DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_same_dims(x, y), DNN_BAD_PARAM);
	/* one scale per channel, or per element of an image */
	DNN_REQUIRE(w->dims == x->dims && w->dim[1] == x->dim[1], DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_elements(w) == (mode == MODE_PER_ACTIVATION ? dnn_elements(x) / x->dim[0] : x->dim[1]),
		    DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

static int check_ops(int mode, int ops, const struct dnn_activation *activation, const struct dnn_shape *x)
{
	DNN_REQUIRE(ops >= OPS_BN && ops <= OPS_BN_ADD_ACTIVATION, DNN_BAD_PARAM);
	if (ops == OPS_BN)
		return DNN_SUCCESS;
	/* documented: fusion only for NHWC, in persistent mode */
	DNN_NEEDS(activation);
	DNN_REQUIRE(mode == MODE_SPATIAL_PERSISTENT && dnn_channels_last(x), DNN_NOT_SUPPORTED);
	return DNN_SUCCESS;
}

/* Documented: the reserve keeps which elements the activation let through, one bit each. */
static size_t reserve_bytes(int ops, const struct dnn_shape *x)
{
	return ops == OPS_BN ? 0 : ((size_t)dnn_elements(x) + 31) / 32 * 4;
}

static int launch(struct dnn_handle *h, const char *operation, const struct dnn_shape *x)
{
	static const char *const layouts[2][2] = {{"nchw", "nhwc"}, {"ncdhw", "ndhwc"}};

	return dnn_launch(h, operation, x->type, layouts[x->dims > 4][dnn_channels_last(x)]);
}

DNN(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
    (struct dnn_handle * h, int mode, int ops, const struct dnn_shape *x, const struct dnn_shape *z,
     const struct dnn_shape *y, const struct dnn_shape *w, const struct dnn_activation *activation, size_t *bytes))
{
	int status;

	(void)z;
	DNN_NEEDS(h && bytes);
	status = check_shapes(mode, x, y, w);
	if (status == DNN_SUCCESS)
		status = check_ops(mode, ops, activation, x);
	if (status == DNN_SUCCESS)
		*bytes = dnn_batch_norm_workspace(x);
	return status;
}

DNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
    (struct dnn_handle * h, int mode, int ops, const struct dnn_shape *x, const struct dnn_shape *y,
     const struct dnn_shape *dy, const struct dnn_shape *dz, const struct dnn_shape *dx, const struct dnn_shape *dw,
     const struct dnn_activation *activation, size_t *bytes))
{
	int status;

	(void)y, (void)dz;
	DNN_NEEDS(h && bytes && dx);
	status = check_shapes(mode, x, dy, dw);
	if (status == DNN_SUCCESS)
		status = check_ops(mode, ops, activation, x);
	if (status == DNN_SUCCESS)
		*bytes = dnn_batch_norm_workspace(x);
	return status;
}

DNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
    (struct dnn_handle * h, int mode, int ops, const struct dnn_activation *activation, const struct dnn_shape *x,
     size_t *bytes))
{
	int status;

	DNN_NEEDS(h && bytes && x);
	DNN_REQUIRE(mode >= MODE_PER_ACTIVATION && mode <= MODE_SPATIAL_PERSISTENT, DNN_BAD_PARAM);
	status = check_ops(mode, ops, activation, x);
	if (status == DNN_SUCCESS)
		*bytes = reserve_bytes(ops, x);
	return status;
}

/* Two optional pointers: both or none. */
static bool paired(const void *a, const void *b)
{
	return !a == !b;
}

static int check_space(int ops, const struct dnn_shape *x, const void *workspace, size_t bytes, const void *reserve,
		       size_t reserved)
{
	size_t needed = dnn_batch_norm_workspace(x), kept = reserve_bytes(ops, x);

	DNN_REQUIRE(bytes >= needed && (workspace || needed == 0), DNN_BAD_PARAM);
	DNN_REQUIRE(reserved >= kept && (reserve || kept == 0), DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

DNN(cudnnBatchNormalizationForwardTrainingEx,
    (struct dnn_handle * h, int mode, int ops, const void *alpha, const void *beta, const struct dnn_shape *x,
     const void *x_data, const struct dnn_shape *z, const void *z_data, const struct dnn_shape *y, void *y_data,
     const struct dnn_shape *w, const void *scale, const void *bias, double factor, void *mean, void *variance,
     double epsilon, void *saved_mean, void *saved_variance, const struct dnn_activation *activation, void *workspace,
     size_t bytes, void *reserve, size_t reserved))
{
	int status;

	(void)z, (void)factor;
	DNN_NEEDS(h && alpha && beta);
	DNN_NEEDS(x_data && y_data && scale && bias);
	DNN_NEEDS(z_data || ops != OPS_BN_ADD_ACTIVATION);
	DNN_REQUIRE(paired(mean, variance) && paired(saved_mean, saved_variance), DNN_BAD_PARAM);
	DNN_REQUIRE(epsilon >= 0, DNN_BAD_PARAM);
	status = check_shapes(mode, x, y, w);
	if (status == DNN_SUCCESS)
		status = check_ops(mode, ops, activation, x);
	if (status == DNN_SUCCESS)
		status = check_space(ops, x, workspace, bytes, reserve, reserved);
	return status ? status : launch(h, "batch_norm_fprop", x);
}

DNN(cudnnBatchNormalizationForwardInference,
    (struct dnn_handle * h, int mode, const void *alpha, const void *beta, const struct dnn_shape *x,
     const void *x_data, const struct dnn_shape *y, void *y_data, const struct dnn_shape *w, const void *scale,
     const void *bias, const void *mean, const void *variance, double epsilon))
{
	int status;

	DNN_NEEDS(h && alpha && beta);
	DNN_NEEDS(x_data && y_data && scale && bias && mean && variance);
	DNN_REQUIRE(epsilon >= 0, DNN_BAD_PARAM);
	status = check_shapes(mode, x, y, w);
	return status ? status : launch(h, "batch_norm_inference", x);
}

DNN(cudnnBatchNormalizationBackwardEx,
    (struct dnn_handle * h, int mode, int ops, const void *alpha_data, const void *beta_data, const void *alpha_param,
     const void *beta_param, const struct dnn_shape *x, const void *x_data, const struct dnn_shape *y,
     const void *y_data, const struct dnn_shape *dy, const void *dy_data, const struct dnn_shape *dz, void *dz_data,
     const struct dnn_shape *dx, void *dx_data, const struct dnn_shape *w, const void *scale, const void *bias,
     void *d_scale, void *d_bias, double epsilon, const void *saved_mean, const void *saved_variance,
     const struct dnn_activation *activation, void *workspace, size_t bytes, void *reserve, size_t reserved))
{
	int status;

	(void)y, (void)y_data, (void)dz, (void)dz_data, (void)bias;
	DNN_NEEDS(h && alpha_data && beta_data && alpha_param && beta_param);
	DNN_NEEDS(x_data && dy_data && dx_data && scale && d_scale && d_bias);
	DNN_REQUIRE(paired(saved_mean, saved_variance), DNN_BAD_PARAM);
	DNN_REQUIRE(epsilon >= 0, DNN_BAD_PARAM);
	status = check_shapes(mode, x, dy, w);
	if (status == DNN_SUCCESS)
		status = check_shapes(mode, x, dx, w);
	if (status == DNN_SUCCESS)
		status = check_ops(mode, ops, activation, x);
	if (status == DNN_SUCCESS)
		status = check_space(ops, x, workspace, bytes, reserve, reserved);
	return status ? status : launch(h, "batch_norm_bprop", x);
}
