/* SPDX-License-Identifier: Apache-2.0
 * cuDNN's graph interface ("backend"): descriptors with attributes.
 *
 * What a program holds is a handle of a node; nodes are shared. A finalized node does not change any more, so an engine found for a
 * graph stays valid after the program has destroyed the graph's descriptors, as with the original.
 */
#ifndef CUWHY_SIM_CUDNN_BACKEND_H
#define CUWHY_SIM_CUDNN_BACKEND_H

#include "sim/cudnn/cudnn.h"
#include "sim/cudnn/sizes.h"

enum dnn_kind {
#define KIND(name, number, first, last, since, operation) KIND_##name = number,
#include "sim/cudnn/kinds.def"
#undef KIND
	KINDS
};

/* cudnnBackendAttributeType_t, as far as we look at it */
enum { VALUE_HANDLE = 0, VALUE_DATA_TYPE = 1, VALUE_BOOLEAN = 2, VALUE_INT64 = 3, VALUE_HEURISTIC = 8, VALUE_NUMERICAL_NOTE = 11,
	VALUE_NODE = 15,
	VALUE_BEHAVIOR_NOTE = 19,
	VALUE_INT32 = 23,
	VALUE_CHAR = 24,
	VALUE_TYPES = 32
};

/* The attributes that are looked at; all others are only kept. */
enum dnn_attribute {
	CONVOLUTION_TYPE = 100,
	CONVOLUTION_DILATIONS = 102,
	CONVOLUTION_STRIDES = 103,
	CONVOLUTION_POST_PADDINGS = 104,
	CONVOLUTION_PADDINGS = 105,
	CONVOLUTION_SPATIAL = 106,
	HEURISTIC_MODE = 200,
	HEURISTIC_GRAPH = 201,
	HEURISTIC_RESULTS = 202,
	CONFIG_ENGINE = 300,
	CONFIG_KNOBS = 302,
	CONFIG_WORKSPACE = 303,
	CONFIG_SHARED_MEMORY = 304,
	PLAN_HANDLE = 400,
	PLAN_CONFIG = 401,
	PLAN_WORKSPACE = 402,
	PLAN_JSON = 405,
	FPROP_CONVOLUTION = 702,
	FPROP_W = 703,
	FPROP_X = 704,
	FPROP_Y = 705,
	DGRAD_CONVOLUTION = 708,
	DGRAD_W = 709,
	DGRAD_DX = 710,
	DGRAD_DY = 711,
	WGRAD_CONVOLUTION = 714,
	WGRAD_DW = 715,
	WGRAD_X = 716,
	WGRAD_DY = 717,
	POINTWISE_DESCRIPTOR = 750,
	GRAPH_HANDLE = 800,
	GRAPH_OPERATIONS = 801,
	GRAPH_ENGINE_COUNT = 802,
	TENSOR_ALIGNMENT = 900,
	TENSOR_TYPE = 901,
	TENSOR_DIMENSIONS = 902,
	TENSOR_STRIDES = 903,
	TENSOR_ID = 906,
	TENSOR_VIRTUAL = 907,
	TENSOR_CONSTANT = 910,
	PACK_IDS = 1000,
	PACK_POINTERS = 1001,
	PACK_WORKSPACE = 1003,
	ENGINE_GRAPH = 1300,
	ENGINE_INDEX = 1301,
	ENGINE_KNOBS = 1302,
	ENGINE_NUMERICAL_NOTES = 1303,
	ENGINE_BEHAVIOR_NOTES = 1305,
	MATMUL_A = 1520,
	MATMUL_B = 1521,
	MATMUL_C = 1522,
	MATMUL_DESCRIPTOR = 1523,
	DEVICE_JSON = 2702,
};

struct dnn_value {
	int attribute, type;
	int64_t count;
	void *data;	/* values, or struct dnn_node * for nodes, each with a reference */
	struct dnn_value *next;
};

struct dnn_node {
	_Atomic int references;
	enum dnn_kind kind;
	bool final;
	struct dnn_value *values;
};

struct dnn_node *dnn_node_new(enum dnn_kind kind);
struct dnn_node *dnn_node_keep(struct dnn_node *n);
void dnn_node_release(struct dnn_node *n);

const struct dnn_value *dnn_get(const struct dnn_node *n, int attribute);
/* The first value of an attribute; `missing` or NULL if it has none. */
int64_t dnn_get_int(const struct dnn_node *n, int attribute, int64_t missing);
struct dnn_node *dnn_get_node(const struct dnn_node *n, int attribute);
/* Stores a copy. Returns a status. */
int dnn_set(struct dnn_node *n, int attribute, int type, int64_t count, const void *data);

const char *dnn_operation_name(enum dnn_kind kind);

/* What a graph computes, as far as an engine has to know. */
struct dnn_work {
	char kernel[40];
	int type;
	bool is_conv;
	struct dnn_conv conv;
	int oldest;	/* compute capability that it needs */
};

/* Checks what a descriptor has when it is finalized, and computes what follows from it. */
int dnn_check_tensor(const struct dnn_node *n);
int dnn_check_convolution(const struct dnn_node *n);
int dnn_check_operation(const struct dnn_node *n);
int dnn_check_graph(const struct dnn_node *n);
int dnn_check_pack(const struct dnn_node *n);

struct dnn_work dnn_graph_work(const struct dnn_node *graph);
/* Whether an engine runs this graph on this GPU. */
bool dnn_engine_runs(const struct dnn_work *w, enum dnn_engine engine, const struct dnn_device *d);
size_t dnn_engine_workspace(const struct dnn_work *w, enum dnn_engine engine, const struct dnn_device *d);
/* Whether the pack has every tensor of the graph that is not an intermediate result. */
bool dnn_pack_is_complete(const struct dnn_node *graph, const struct dnn_node *pack);
/* Runs the graph. */
int dnn_graph_launch(const struct dnn_node *graph, const struct dnn_handle *h);

#endif
