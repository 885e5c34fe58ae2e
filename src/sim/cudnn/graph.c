/* SPDX-License-Identifier: Apache-2.0
 * Graphs of operations: what they compute, which engines run them, what these need.
 */
#include "sim/cudnn/backend.h"

#include <stdio.h>
#include <string.h>

static const int64_t *numbers(const struct dnn_node *n, int attribute, int64_t *count)
{
	const struct dnn_value *v = dnn_get(n, attribute);

	*count = v && v->type == VALUE_INT64 ? v->count : 0;
	return *count ? v->data : NULL;
}

int dnn_check_tensor(const struct dnn_node *n)
{
	int64_t dims, strides;
	const int64_t *dim = numbers(n, TENSOR_DIMENSIONS, &dims);

	numbers(n, TENSOR_STRIDES, &strides);
	DNN_REQUIRE(dims > 0 && dims <= DNN_DIMS_MAX && dims == strides, DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_get(n, TENSOR_ID) && dnn_get(n, TENSOR_TYPE), DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_type_bits((int)dnn_get_int(n, TENSOR_TYPE, -1)), DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_get_int(n, TENSOR_ALIGNMENT, 0) > 0, DNN_BAD_PARAM);
	for (int64_t i = 0; i < dims; i++)
		DNN_REQUIRE(dim[i] > 0, DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

static bool is_tensor(const struct dnn_node *n)
{
	return n && n->kind == KIND_TENSOR && n->final;
}

static struct dnn_shape shape_of(const struct dnn_node *n)
{
	struct dnn_shape s = {.type = (int)dnn_get_int(n, TENSOR_TYPE, 0)};
	int64_t dims, strides;
	const int64_t *dim = numbers(n, TENSOR_DIMENSIONS, &dims), *stride = numbers(n, TENSOR_STRIDES, &strides);

	s.dims = (int)dims;
	for (int i = 0; i < s.dims; i++) {
		s.dim[i] = dim[i];
		s.stride[i] = stride[i];
	}
	return s;
}

static bool all_at_least(const struct dnn_node *n, int attribute, int64_t count, int64_t least)
{
	int64_t have;
	const int64_t *value = numbers(n, attribute, &have);
	bool good = have == count;

	for (int64_t i = 0; good && i < count; i++)
		good = value[i] >= least;
	return good;
}

int dnn_check_convolution(const struct dnn_node *n)
{
	int64_t spatial = dnn_get_int(n, CONVOLUTION_SPATIAL, 0);

	DNN_REQUIRE(spatial > 0 && spatial <= DNN_SPATIAL_MAX, DNN_BAD_PARAM);
	DNN_REQUIRE(dnn_type_bits((int)dnn_get_int(n, CONVOLUTION_TYPE, -1)), DNN_BAD_PARAM);
	DNN_REQUIRE(all_at_least(n, CONVOLUTION_STRIDES, spatial, 1), DNN_BAD_PARAM);
	DNN_REQUIRE(all_at_least(n, CONVOLUTION_DILATIONS, spatial, 1), DNN_BAD_PARAM);
	DNN_REQUIRE(all_at_least(n, CONVOLUTION_PADDINGS, spatial, 0), DNN_BAD_PARAM);
	DNN_REQUIRE(all_at_least(n, CONVOLUTION_POST_PADDINGS, spatial, 0), DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

/* Where the three operations have what they have in common. */
static const struct pass_attributes {
	enum dnn_kind kind;
	enum dnn_pass pass;
	int convolution, x, w, y;
} passes[] = {
	{KIND_CONV_FPROP, DNN_FPROP, FPROP_CONVOLUTION, FPROP_X, FPROP_W, FPROP_Y},
	{KIND_CONV_DGRAD, DNN_DGRAD, DGRAD_CONVOLUTION, DGRAD_DX, DGRAD_W, DGRAD_DY},
	{KIND_CONV_WGRAD, DNN_WGRAD, WGRAD_CONVOLUTION, WGRAD_X, WGRAD_DW, WGRAD_DY},
};

static const struct pass_attributes *find_pass(enum dnn_kind kind)
{
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		if (passes[i].kind == kind)
			return &passes[i];
	return NULL;
}

static void copy_numbers(const struct dnn_node *n, int attribute, int64_t *to)
{
	int64_t count;
	const int64_t *from = numbers(n, attribute, &count);

	for (int64_t i = 0; i < count && i < DNN_SPATIAL_MAX; i++)
		to[i] = from[i];
}

static int make_conv(struct dnn_conv *c, const struct dnn_node *operation, const struct pass_attributes *p)
{
	const struct dnn_node *d = dnn_get_node(operation, p->convolution), *x = dnn_get_node(operation, p->x);
	const struct dnn_node *w = dnn_get_node(operation, p->w), *y = dnn_get_node(operation, p->y);

	DNN_REQUIRE(d && d->kind == KIND_CONVOLUTION && is_tensor(x) && is_tensor(w) && is_tensor(y), DNN_BAD_PARAM);
	*c = (struct dnn_conv){.pass = p->pass, .x = shape_of(x), .w = shape_of(w), .y = shape_of(y)};
	c->spatial = (int)dnn_get_int(d, CONVOLUTION_SPATIAL, 0);
	copy_numbers(d, CONVOLUTION_PADDINGS, c->pad);
	copy_numbers(d, CONVOLUTION_POST_PADDINGS, c->post_pad);
	copy_numbers(d, CONVOLUTION_STRIDES, c->stride);
	copy_numbers(d, CONVOLUTION_DILATIONS, c->dilation);
	/* this interface has no number of groups: it follows from the channels */
	c->groups = c->w.dim[1] ? c->x.dim[1] / c->w.dim[1] : 0;
	return dnn_conv_check(c);
}

static int check_matmul(const struct dnn_node *n)
{
	const struct dnn_node *a = dnn_get_node(n, MATMUL_A), *b = dnn_get_node(n, MATMUL_B),
			      *c = dnn_get_node(n, MATMUL_C);
	struct dnn_shape sa, sb, sc;

	DNN_REQUIRE(dnn_get(n, MATMUL_DESCRIPTOR) && is_tensor(a) && is_tensor(b) && is_tensor(c), DNN_BAD_PARAM);
	sa = shape_of(a);
	sb = shape_of(b);
	sc = shape_of(c);
	DNN_REQUIRE(sa.dims == sb.dims && sa.dims == sc.dims && sa.dims >= 2, DNN_BAD_PARAM_SHAPE_MISMATCH);
	DNN_REQUIRE(sa.dim[sa.dims - 1] == sb.dim[sb.dims - 2], DNN_BAD_PARAM_SHAPE_MISMATCH);
	DNN_REQUIRE(sc.dim[sc.dims - 2] == sa.dim[sa.dims - 2] && sc.dim[sc.dims - 1] == sb.dim[sb.dims - 1],
		    DNN_BAD_PARAM_SHAPE_MISMATCH);
	return DNN_SUCCESS;
}

int dnn_check_operation(const struct dnn_node *n)
{
	const struct pass_attributes *p = find_pass(n->kind);
	struct dnn_conv c;

	if (p)
		return make_conv(&c, n, p);
	if (n->kind == KIND_OP_MATMUL)
		return check_matmul(n);
	DNN_REQUIRE(n->kind != KIND_OP_POINTWISE || dnn_get(n, POINTWISE_DESCRIPTOR), DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

int dnn_check_graph(const struct dnn_node *n)
{
	const struct dnn_value *v = dnn_get(n, GRAPH_OPERATIONS);
	struct dnn_node *const *operations = v ? v->data : NULL;

	DNN_REQUIRE(v && v->type == VALUE_NODE && v->count > 0, DNN_BAD_PARAM);
	for (int64_t i = 0; i < v->count; i++)
		DNN_REQUIRE(dnn_operation_name(operations[i]->kind), DNN_BAD_PARAM_DESCRIPTOR_TYPE);
	return DNN_SUCCESS;
}

/* The operation that a fused graph is named after: the first of these that it has. */
static const enum dnn_kind leading[] = {
	KIND_CONV_FPROP, KIND_CONV_DGRAD,     KIND_CONV_WGRAD,	   KIND_SDPA_FPROP,
	KIND_SDPA_BPROP, KIND_GROUPED_MATMUL, KIND_OP_MATMUL,	   KIND_NORM_FPROP,
	KIND_NORM_BPROP, KIND_RESAMPLE_FPROP, KIND_RESAMPLE_BPROP, KIND_OP_REDUCTION,
};

static const struct dnn_node *leader(const struct dnn_value *operations)
{
	struct dnn_node *const *list = operations->data;

	for (size_t k = 0; k < sizeof(leading) / sizeof(leading[0]); k++)
		for (int64_t i = 0; i < operations->count; i++)
			if (list[i]->kind == leading[k])
				return list[i];
	return list[0];
}

static int count_kind(const struct dnn_value *operations, enum dnn_kind kind)
{
	struct dnn_node *const *list = operations->data;
	int count = 0;

	for (int64_t i = 0; i < operations->count; i++)
		count += list[i]->kind == kind;
	return count;
}

/* The type of the first tensor that is in memory. */
static int operation_type(const struct dnn_node *operation)
{
	int type = DNN_FLOAT;

	for (const struct dnn_value *v = operation->values; v; v = v->next) {
		const struct dnn_node *n = v->type == VALUE_NODE && v->count ? *(struct dnn_node *const *)v->data : NULL;

		if (is_tensor(n) && !dnn_get_int(n, TENSOR_VIRTUAL, 0))
			type = (int)dnn_get_int(n, TENSOR_TYPE, DNN_FLOAT);
	}
	return type;
}

/* Attention as cudnn-frontend builds it from single operations: two matrix products forward, five backward. */
static const char *graph_name(const struct dnn_value *operations, const struct dnn_node *lead)
{
	int products = count_kind(operations, KIND_OP_MATMUL);

	if (lead->kind == KIND_OP_MATMUL && products >= 4)
		return dnn_operation_name(KIND_SDPA_BPROP);
	if (lead->kind == KIND_OP_MATMUL && products >= 2)
		return dnn_operation_name(KIND_SDPA_FPROP);
	return dnn_operation_name(lead->kind);
}

struct dnn_work dnn_graph_work(const struct dnn_node *graph)
{
	const struct dnn_value *operations = dnn_get(graph, GRAPH_OPERATIONS);
	const struct dnn_node *lead = leader(operations);
	const struct pass_attributes *p = find_pass(lead->kind);
	struct dnn_work w = {.type = operation_type(lead)};

	w.is_conv = p && make_conv(&w.conv, lead, p) == DNN_SUCCESS;
	if (w.is_conv)
		w.type = w.conv.x.type;
	snprintf(w.kernel, sizeof(w.kernel), "%s", graph_name(operations, lead));
	/* documented: runtime fusion needs compute capability 7.0, attention 8.0 */
	w.oldest = strncmp(w.kernel, "sdpa", 4) == 0 ? 80 : w.is_conv ? 50 : 70;
	return w;
}

bool dnn_engine_runs(const struct dnn_work *w, enum dnn_engine engine, const struct dnn_device *d)
{
	if (d->capability < w->oldest)
		return false;
	/* everything but a convolution has one engine */
	if (!w->is_conv)
		return engine == DNN_ENGINE_TENSOR_CORE;
	return dnn_conv_supported(&w->conv, d) == DNN_SUCCESS &&
	       (engine == DNN_ENGINE_FMA || dnn_conv_tensor_cores(&w->conv, d));
}

/* Only of convolutions: what cudnn-frontend's attention needs, it adds itself; that the engines need nothing more is not measured. */
size_t dnn_engine_workspace(const struct dnn_work *w, enum dnn_engine engine, const struct dnn_device *d)
{
	return w->is_conv ? dnn_conv_workspace(&w->conv, engine, d) : 0;
}

int dnn_graph_launch(const struct dnn_node *graph, const struct dnn_handle *h)
{
	struct dnn_work w = dnn_graph_work(graph);

	return w.is_conv ? dnn_conv_launch(&w.conv, h) : dnn_launch(h, w.kernel, w.type, NULL);
}

int dnn_check_pack(const struct dnn_node *n)
{
	const struct dnn_value *pointers = dnn_get(n, PACK_POINTERS);
	int64_t count;
	const int64_t *id = numbers(n, PACK_IDS, &count);

	DNN_REQUIRE(count == (pointers ? pointers->count : 0), DNN_BAD_PARAM);
	for (int64_t i = 0; i < count; i++)
		for (int64_t k = 0; k < i; k++)
			DNN_REQUIRE(id[i] != id[k], DNN_BAD_PARAM_DUPLICATED_ENTRIES);
	return DNN_SUCCESS;
}

static bool pack_has(const struct dnn_node *pack, int64_t wanted)
{
	int64_t count;
	const int64_t *id = numbers(pack, PACK_IDS, &count);

	for (int64_t i = 0; i < count; i++)
		if (id[i] == wanted)
			return true;
	return false;
}

static bool is_bound(const struct dnn_node *tensor, const struct dnn_node *pack)
{
	return !is_tensor(tensor) || dnn_get_int(tensor, TENSOR_VIRTUAL, 0) || dnn_get(tensor, TENSOR_CONSTANT) ||
	       pack_has(pack, dnn_get_int(tensor, TENSOR_ID, 0));
}

bool dnn_pack_is_complete(const struct dnn_node *graph, const struct dnn_node *pack)
{
	const struct dnn_value *operations = dnn_get(graph, GRAPH_OPERATIONS);
	struct dnn_node *const *list = operations->data;
	bool complete = true;

	for (int64_t i = 0; i < operations->count; i++)
		for (const struct dnn_value *v = list[i]->values; v && complete; v = v->next)
			for (int64_t k = 0; v->type == VALUE_NODE && k < v->count && complete; k++)
				complete = is_bound(((struct dnn_node *const *)v->data)[k], pack);
	return complete;
}
