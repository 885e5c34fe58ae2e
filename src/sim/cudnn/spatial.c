/* SPDX-License-Identifier: Apache-2.0
 * Spatial transformers: grids from affine matrices, and sampling with a grid.
 */
#include "sim/cudnn/descriptors.h"

enum { SAMPLER_BILINEAR = 0, CHANNELS_MAX = 1024 };

DNN(cudnnSetSpatialTransformerNdDescriptor, (struct dnn_shape * s, int sampler, int type, int count, const int *dims))
{
	DNN_NEEDS(s && dims);
	DNN_REQUIRE(sampler == SAMPLER_BILINEAR && dnn_type_bits(type), DNN_BAD_PARAM);
	DNN_REQUIRE(count == 4, DNN_NOT_SUPPORTED);
	*s = (struct dnn_shape){.type = type, .dims = count};
	for (int i = 0; i < count; i++) {
		DNN_REQUIRE(dims[i] > 0, DNN_BAD_PARAM);
		s->dim[i] = dims[i];
	}
	return DNN_SUCCESS;
}

static int check_grid(const struct dnn_shape *s)
{
	DNN_NEEDS(s);
	DNN_REQUIRE(s->dims == 4, DNN_BAD_PARAM);
	/* documented limit */
	DNN_REQUIRE(s->dim[1] <= CHANNELS_MAX, DNN_NOT_SUPPORTED);
	return DNN_SUCCESS;
}

DNN(cudnnSpatialTfGridGeneratorForward, (struct dnn_handle * h, const struct dnn_shape *s, const void *theta, void *grid))
{
	int status = check_grid(s);

	DNN_NEEDS(h && theta && grid);
	return status ? status : dnn_launch(h, "grid_generator_fprop", s->type, NULL);
}

DNN(cudnnSpatialTfGridGeneratorBackward,
    (struct dnn_handle * h, const struct dnn_shape *s, const void *grid, void *theta))
{
	int status = check_grid(s);

	DNN_NEEDS(h && theta && grid);
	return status ? status : dnn_launch(h, "grid_generator_bprop", s->type, NULL);
}

/* The output is as large as the grid, and has the input's batch and channels. */
static int check_sampler(const struct dnn_shape *s, const struct dnn_shape *x, const struct dnn_shape *y)
{
	int status = check_grid(s);

	if (status)
		return status;
	DNN_NEEDS(x && y);
	DNN_REQUIRE(dnn_same_dims(s, y) && x->dims == 4, DNN_BAD_PARAM);
	DNN_REQUIRE(x->dim[0] == y->dim[0] && x->dim[1] == y->dim[1] && x->type == y->type, DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

DNN(cudnnSpatialTfSamplerForward,
    (struct dnn_handle * h, const struct dnn_shape *s, const void *alpha, const struct dnn_shape *x, const void *x_data,
     const void *grid, const void *beta, const struct dnn_shape *y, void *y_data))
{
	int status = check_sampler(s, x, y);

	DNN_NEEDS(h && alpha && beta && x_data && grid && y_data);
	return status ? status : dnn_launch(h, "spatial_sampler_fprop", x->type, NULL);
}

DNN(cudnnSpatialTfSamplerBackward,
    (struct dnn_handle * h, const struct dnn_shape *s, const void *alpha, const struct dnn_shape *x, const void *x_data,
     const void *beta, const struct dnn_shape *dx, void *dx_data, const void *alpha_grid, const struct dnn_shape *dy,
     const void *dy_data, const void *grid, const void *beta_grid, void *d_grid))
{
	int status = check_sampler(s, x, dy);

	DNN_NEEDS(h && alpha && beta && alpha_grid && beta_grid);
	DNN_NEEDS(x_data && dx_data && dy_data && grid && d_grid);
	if (status)
		return status;
	DNN_NEEDS(dx);
	DNN_REQUIRE(dnn_same_dims(x, dx), DNN_BAD_PARAM);
	return dnn_launch(h, "spatial_sampler_bprop", x->type, NULL);
}
