/* SPDX-License-Identifier: Apache-2.0
 * Tests of the stand-in for cuDNN: statuses of good and bad calls, sizes, and the order of an RNN's weights.
 */
#include "sim_child.h"

#include "sim/cudnn/backend.h"

/* F(name, parameters); descriptors are opaque here */
#define FUNCTIONS(F)                                                                                                      \
	F(cudnnCreate, (void **))                                                                                         \
	F(cudnnDestroy, (void *))                                                                                         \
	F(cudnnSetStream, (void *, struct sim_stream *))                                                                  \
	F(cudnnGetStream, (void *, struct sim_stream **))                                                                 \
	F(cudnnGetProperty, (int, int *))                                                                                 \
	F(cudnnCreateTensorDescriptor, (void **))                                                                         \
	F(cudnnDestroyTensorDescriptor, (void *))                                                                         \
	F(cudnnSetTensorNdDescriptor, (void *, int, int, const int *, const int *))                                       \
	F(cudnnGetTensorNdDescriptor, (void *, int, int *, int *, int *, int *))                                          \
	F(cudnnCreateFilterDescriptor, (void **))                                                                         \
	F(cudnnSetFilterNdDescriptor, (void *, int, int, int, const int *))                                               \
	F(cudnnCreateConvolutionDescriptor, (void **))                                                                    \
	F(cudnnSetConvolutionNdDescriptor, (void *, int, const int *, const int *, const int *, int, int))                \
	F(cudnnSetConvolutionMathType, (void *, int))                                                                     \
	F(cudnnSetConvolutionGroupCount, (void *, int))                                                                   \
	F(cudnnGetConvolutionForwardWorkspaceSize, (void *, void *, void *, void *, void *, int, size_t *))               \
	F(cudnnGetConvolutionForwardAlgorithm_v7, (void *, void *, void *, void *, void *, int, int *, void *))           \
	F(cudnnConvolutionForward, (void *, const void *, void *, void *, void *, void *, void *, int, void *, size_t,    \
				    const void *, void *, void *))                                                        \
	F(cudnnDropoutGetStatesSize, (void *, size_t *))                                                                  \
	F(cudnnCreateDropoutDescriptor, (void **))                                                                        \
	F(cudnnSetDropoutDescriptor, (void *, void *, float, void *, size_t, unsigned long long))                         \
	F(cudnnCreateRNNDescriptor, (void **))                                                                            \
	F(cudnnSetRNNDescriptor_v8,                                                                                       \
	  (void *, int, int, int, int, int, int, int, int, int, int, int, int, void *, unsigned int))                     \
	F(cudnnGetRNNWeightSpaceSize, (void *, void *, size_t *))                                                         \
	F(cudnnGetRNNWeightParams, (void *, void *, int, size_t, const void *, int, void *, void **, void *, void **))    \
	F(cudnnCreateRNNDataDescriptor, (void **))                                                                        \
	F(cudnnSetRNNDataDescriptor, (void *, int, int, int, int, int, const int *, const void *))                        \
	F(cudnnGetRNNTempSpaceSizes, (void *, void *, int, void *, size_t *, size_t *))                                   \
	F(cudnnBackendCreateDescriptor, (int, void **))                                                                   \
	F(cudnnBackendDestroyDescriptor, (void *))                                                                        \
	F(cudnnBackendSetAttribute, (void *, int, int, int64_t, const void *))                                            \
	F(cudnnBackendGetAttribute, (void *, int, int, int64_t, int64_t *, void *))                                       \
	F(cudnnBackendFinalize, (void *))                                                                                 \
	F(cudnnBackendExecute, (void *, void *, void *))

#define DECLARE(name, params) static int(*name) params;
FUNCTIONS(DECLARE)
static size_t (*cudnnGetVersion)(void);

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	CHECK(found);
	return found;
}

static void *dnn_start(void)
{
	const char *driver = getenv("SIM_LIB");
	char path[4096];
	void *library, *handle, *found;

	driver = driver ? driver : "build/sim/libcuda.so.1";
	snprintf(path, sizeof(path), "%.*slibcudnn.so.9", (int)(strrchr(driver, '/') + 1 - driver), driver);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
#define FIND(name, params)              \
	found = find(library, #name);   \
	memcpy(&name, &found, sizeof(found));
	FUNCTIONS(FIND)
	found = find(library, "cudnnGetVersion");
	memcpy(&cudnnGetVersion, &found, sizeof(found));
	sim_start();
	OK(cudnnCreate(&handle));
	return handle;
}

static void *device(size_t bytes)
{
	sim_addr a;

	OK(cu.cuMemAlloc_v2(&a, bytes));
	return (void *)(uintptr_t)a;
}

SIM_TEST(cudnn__a_handle_has_a_stream_and_a_version, "h200")
{
	void *h = dnn_start();
	struct sim_stream *mine, *got = NULL;
	int major = 0;

	OK(cu.cuStreamCreate(&mine, 0));
	OK(cudnnSetStream(h, mine));
	OK(cudnnGetStream(h, &got));
	CHECK(got == mine);
	OK(cudnnGetProperty(0, &major));
	CHECK(major == 9 && cudnnGetVersion() >= 90000);
	EXPECT(cudnnGetProperty(3, &major), DNN_BAD_PARAM);
	EXPECT(cudnnCreate(NULL), DNN_BAD_PARAM);
	EXPECT(cudnnSetStream(NULL, mine), DNN_BAD_PARAM);
	OK(cudnnDestroy(h));
}

struct problem {
	void *h, *x, *w, *c, *y;
};

static void *tensor(int type, int n, int c, int height, int width)
{
	int dims[] = {n, c, height, width}, strides[] = {c * height * width, height * width, width, 1};
	void *t;

	OK(cudnnCreateTensorDescriptor(&t));
	OK(cudnnSetTensorNdDescriptor(t, type, 4, dims, strides));
	return t;
}

/* 16 channels of 32x32 to 32 of 30x30 by a 3x3 window */
static struct problem make_problem(void *h, int type)
{
	struct problem p = {.h = h, .x = tensor(type, 4, 16, 32, 32), .y = tensor(type, 4, 32, 30, 30)};
	const int filter[] = {32, 16, 3, 3}, zeros[] = {0, 0}, ones[] = {1, 1};

	OK(cudnnCreateFilterDescriptor(&p.w));
	OK(cudnnSetFilterNdDescriptor(p.w, type, 0, 4, filter));
	OK(cudnnCreateConvolutionDescriptor(&p.c));
	OK(cudnnSetConvolutionNdDescriptor(p.c, 2, zeros, ones, ones, 1, DNN_FLOAT));
	return p;
}

static int workspace(const struct problem *p, int algorithm, size_t *bytes)
{
	return cudnnGetConvolutionForwardWorkspaceSize(p->h, p->x, p->w, p->c, p->y, algorithm, bytes);
}

SIM_TEST(cudnn__dimensions_of_tensors_are_checked, "h200")
{
	int good[] = {1, 2, 3, 4}, zero[] = {1, 0, 3, 4}, huge[] = {1 << 16, 1 << 16, 1, 1}, strides[] = {24, 12, 4, 1};
	int type = -1, count = -1, dims[4], got[4];
	void *t;

	dnn_start();
	OK(cudnnCreateTensorDescriptor(&t));
	OK(cudnnSetTensorNdDescriptor(t, DNN_HALF, 4, good, strides));
	OK(cudnnGetTensorNdDescriptor(t, 4, &type, &count, dims, got));
	CHECK(type == DNN_HALF && count == 4 && memcmp(dims, good, sizeof(good)) == 0 &&
	      memcmp(got, strides, sizeof(got)) == 0);
	EXPECT(cudnnSetTensorNdDescriptor(t, DNN_HALF, 4, zero, strides), DNN_BAD_PARAM);
	EXPECT(cudnnSetTensorNdDescriptor(t, 99, 4, good, strides), DNN_BAD_PARAM);
	EXPECT(cudnnSetTensorNdDescriptor(t, DNN_HALF, 9, good, strides), DNN_NOT_SUPPORTED);
	EXPECT(cudnnSetTensorNdDescriptor(t, DNN_HALF, 4, huge, strides), DNN_NOT_SUPPORTED);
	EXPECT(cudnnSetTensorNdDescriptor(NULL, DNN_HALF, 4, good, strides), DNN_BAD_PARAM);
	OK(cudnnDestroyTensorDescriptor(t));
}

SIM_TEST(cudnn__shapes_of_a_convolution_must_fit, "h200")
{
	struct problem p = make_problem(dnn_start(), DNN_FLOAT);
	void *good = p.y;
	size_t bytes;

	OK(workspace(&p, 1, &bytes));
	p.y = tensor(DNN_FLOAT, 4, 32, 31, 30);
	EXPECT(workspace(&p, 1, &bytes), DNN_BAD_PARAM);
	p.y = good;
	OK(cudnnSetConvolutionGroupCount(p.c, 2));
	EXPECT(workspace(&p, 1, &bytes), DNN_BAD_PARAM);
	EXPECT(cudnnSetConvolutionGroupCount(p.c, 0), DNN_BAD_PARAM);
	EXPECT(cudnnSetConvolutionMathType(p.c, 4), DNN_BAD_PARAM);
}

SIM_TEST(cudnn__an_algorithm_needs_its_workspace, "h200")
{
	struct problem p = make_problem(dnn_start(), DNN_HALF);
	struct { int algorithm, status; float time; size_t memory; int deterministic, math, reserved[3]; } found[4];
	void *memory = device(1 << 20), *space = device(8 << 20);
	const float one = 1, zero = 0;
	size_t bytes = 1;
	int count = 0;

	OK(workspace(&p, 0, &bytes));
	CHECK(bytes == 0);
	EXPECT(workspace(&p, 6, &bytes), DNN_NOT_SUPPORTED);
	OK(cudnnGetConvolutionForwardAlgorithm_v7(p.h, p.x, p.w, p.c, p.y, 4, &count, found));
	CHECK(count >= 2 && found[0].algorithm == 1 && found[0].memory > 0 && found[0].memory < 8 << 20);
	OK(cudnnConvolutionForward(p.h, &one, p.x, memory, p.w, memory, p.c, 1, space, found[0].memory, &zero, p.y,
				   memory));
	EXPECT(cudnnConvolutionForward(p.h, &one, p.x, memory, p.w, memory, p.c, 1, space, found[0].memory - 1, &zero,
				       p.y, memory),
	       DNN_BAD_PARAM);
	EXPECT(cudnnConvolutionForward(p.h, &one, p.x, NULL, p.w, memory, p.c, 0, NULL, 0, &zero, p.y, memory),
	       DNN_BAD_PARAM);
}

/* Tensor cores want channels last, in multiples of 16 bytes; the sizes are those of an H200. */
SIM_TEST(cudnn__a_workspace_has_copies_with_channels_last, "h200")
{
	enum { X = 4 * 32 * 32, W = 3 * 3, Y = 4 * 30 * 30, TAIL = 16 };
	struct problem p = make_problem(dnn_start(), DNN_HALF);
	const int filter[] = {20, 16, 3, 3};
	size_t bytes = 0;

	OK(workspace(&p, 1, &bytes));
	CHECK(bytes == 2 * (X * 16 + W * 16 * 32 + Y * 32) + TAIL);
	/* 20 channels become 24 */
	p.y = tensor(DNN_HALF, 4, 20, 30, 30);
	OK(cudnnSetFilterNdDescriptor(p.w, DNN_HALF, 0, 4, filter));
	OK(workspace(&p, 1, &bytes));
	CHECK(bytes == 2 * (X * 16 + W * 16 * 24 + Y * 24) + TAIL);
}

SIM_TEST(cudnn__little_work_needs_no_copies, "h200")
{
	struct problem p = make_problem(dnn_start(), DNN_FLOAT);
	size_t bytes = 1;

	OK(workspace(&p, 1, &bytes));
	CHECK(bytes == 0);
}

SIM_TEST(cudnn__not_every_type_has_a_convolution, "tiny")
{
	struct problem p = make_problem(dnn_start(), DNN_BFLOAT16);
	size_t bytes;

	OK(workspace(&p, 1, &bytes));
	p = make_problem(p.h, DNN_INT64);
	EXPECT(workspace(&p, 1, &bytes), DNN_NOT_SUPPORTED_DATA_TYPE);
}

SIM_TEST(cudnn__a_lost_context_is_a_failed_execution, "h200,fail=cuLaunchKernel:1:719")
{
	struct problem p = make_problem(dnn_start(), DNN_FLOAT);
	void *memory = device(1 << 20);
	const float one = 1, zero = 0;

	EXPECT(cudnnConvolutionForward(p.h, &one, p.x, memory, p.w, memory, p.c, 0, NULL, 0, &zero, p.y, memory),
	       DNN_EXECUTION_FAILED_CUDART);
}

SIM_TEST(cudnn__weights_of_an_lstm_are_in_order, "h200")
{
	enum { LSTM = 2, DOUBLE_BIAS = 2, INPUT = 8, HIDDEN = 16, LAYERS = 2, GATES = 8 };
	void *h = dnn_start(), *r, *shape;
	char *space, *end, *expected;
	void *address = NULL, *bias = NULL;
	size_t bytes = 0;

	OK(cudnnCreateRNNDescriptor(&r));
	OK(cudnnCreateTensorDescriptor(&shape));
	OK(cudnnSetRNNDescriptor_v8(r, 0, LSTM, DOUBLE_BIAS, 0, 0, DNN_FLOAT, DNN_FLOAT, 0, INPUT, HIDDEN, HIDDEN,
				    LAYERS, NULL, 0));
	OK(cudnnGetRNNWeightSpaceSize(h, r, &bytes));
	CHECK(bytes == 4 * (4 * HIDDEN * (INPUT + HIDDEN) + 4 * HIDDEN * 2 * HIDDEN + LAYERS * GATES * HIDDEN));
	expected = space = device(bytes);
	end = space + bytes;
	for (int layer = 0; layer < LAYERS; layer++)
		for (int id = 0; id < GATES; id++) {
			int type, count, dims[3], strides[3];

			OK(cudnnGetRNNWeightParams(h, r, layer, bytes, space, id, shape, &address, NULL, &bias));
			OK(cudnnGetTensorNdDescriptor(shape, 3, &type, &count, dims, strides));
			CHECK(address == expected && count == 3 && dims[1] == HIDDEN);
			CHECK(dims[2] == (layer == 0 && id < 4 ? INPUT : HIDDEN));
			CHECK((char *)bias == end - 4 * HIDDEN * (GATES * (LAYERS - layer) - id));
			expected += 4 * dims[1] * dims[2];
		}
	EXPECT(cudnnGetRNNWeightParams(h, r, LAYERS, bytes, space, 0, shape, &address, NULL, NULL), DNN_BAD_PARAM);
	EXPECT(cudnnGetRNNWeightParams(h, r, 0, bytes - 1, space, 0, shape, &address, NULL, NULL), DNN_BAD_PARAM);
	EXPECT(cudnnSetRNNDescriptor_v8(r, 0, 3, 2, 0, 0, DNN_FLOAT, DNN_FLOAT, 0, INPUT, HIDDEN, HIDDEN / 2, 1, NULL, 0),
	       DNN_NOT_SUPPORTED);
}

/* The sizes are those of an H200. */
SIM_TEST(cudnn__an_lstm_needs_spaces, "h200")
{
	enum {
		LSTM = 2,
		DOUBLE_BIAS = 2,
		UNPACKED = 0,
		PACKED = 1,
		TRAINING = 1,
		INPUT = 128,
		HIDDEN = 512,
		STEPS = 10,
		BATCH = 64
	};
	void *h = dnn_start(), *r, *x;
	int lengths[BATCH];
	size_t work = 0, packed = 0, reserve = 0;

	for (int i = 0; i < BATCH; i++)
		lengths[i] = STEPS;
	OK(cudnnCreateRNNDescriptor(&r));
	OK(cudnnCreateRNNDataDescriptor(&x));
	OK(cudnnSetRNNDescriptor_v8(r, 0, LSTM, DOUBLE_BIAS, 0, 0, DNN_BFLOAT16, DNN_FLOAT, 0, INPUT, HIDDEN, HIDDEN, 1,
				    NULL, 0));
	OK(cudnnSetRNNDataDescriptor(x, DNN_BFLOAT16, UNPACKED, STEPS, BATCH, INPUT, lengths, NULL));
	OK(cudnnGetRNNTempSpaceSizes(h, r, TRAINING, x, &work, &reserve));
	CHECK(work == 15106816 && reserve == 3277056);
	/* a packed sequence needs no copies, and what is not there needs nothing */
	lengths[0] = 1;
	OK(cudnnSetRNNDataDescriptor(x, DNN_BFLOAT16, PACKED, STEPS, BATCH, INPUT, lengths, NULL));
	OK(cudnnGetRNNTempSpaceSizes(h, r, TRAINING, x, &packed, &reserve));
	CHECK(packed < work && reserve == 3277056 - 5 * (STEPS - 1) * HIDDEN * 2);
}

/* Workspaces of an H200 for LSTM(512, 1024) with batches of 128. The gates count up to 256 steps; the copies of the backward pass go on
 * growing, and are what counts in the end, or without dropout. */
SIM_TEST(cudnn__gates_of_a_long_sequence_are_computed_in_pieces, "h200")
{
	enum { LSTM = 2, DOUBLE_BIAS = 2, UNPACKED = 0, TRAINING = 1, INPUT = 512, HIDDEN = 1024, BATCH = 128 };
	const struct {
		int layers, steps;
		bool dropout;
		size_t work;
	} measured[] = {{2, 256, true, 958399744},
			{2, 512, true, 1293944064},
			{2, 1024, true, 2247099648},
			{2, 512, false, 1173357824},
			{1, 512, false, 1381500160}};
	void *h = dnn_start(), *r, *x, *dropout;
	int lengths[BATCH];

	OK(cudnnCreateRNNDescriptor(&r));
	OK(cudnnCreateRNNDataDescriptor(&x));
	OK(cudnnCreateDropoutDescriptor(&dropout));
	OK(cudnnSetDropoutDescriptor(dropout, h, 0.2F, NULL, 0, 0));
	for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
		size_t work = 0;

		for (int j = 0; j < BATCH; j++)
			lengths[j] = measured[i].steps;
		OK(cudnnSetRNNDescriptor_v8(r, 0, LSTM, DOUBLE_BIAS, 0, 0, DNN_FLOAT, DNN_FLOAT, 0, INPUT, HIDDEN,
					    HIDDEN, measured[i].layers, measured[i].dropout ? dropout : NULL, 0));
		OK(cudnnSetRNNDataDescriptor(x, DNN_FLOAT, UNPACKED, measured[i].steps, BATCH, INPUT, lengths, NULL));
		OK(cudnnGetRNNTempSpaceSizes(h, r, TRAINING, x, &work, NULL));
		CHECK(work == measured[i].work);
	}
}

enum { POINTER = 6 };

static void *make(int kind)
{
	void *d;

	OK(cudnnBackendCreateDescriptor(kind, &d));
	return d;
}

static void set64(void *d, int attribute, int64_t value)
{
	OK(cudnnBackendSetAttribute(d, attribute, VALUE_INT64, 1, &value));
}

static void set_node(void *d, int attribute, void *node)
{
	OK(cudnnBackendSetAttribute(d, attribute, VALUE_NODE, 1, &node));
}

static void *graph_tensor(int type, int64_t id, int64_t n, int64_t c, int64_t size)
{
	const int64_t dims[] = {n, c, size, size}, strides[] = {c * size * size, size * size, size, 1};
	void *t = make(KIND_TENSOR);

	OK(cudnnBackendSetAttribute(t, TENSOR_TYPE, VALUE_DATA_TYPE, 1, &type));
	OK(cudnnBackendSetAttribute(t, TENSOR_DIMENSIONS, VALUE_INT64, 4, dims));
	OK(cudnnBackendSetAttribute(t, TENSOR_STRIDES, VALUE_INT64, 4, strides));
	set64(t, TENSOR_ID, id);
	EXPECT(cudnnBackendFinalize(t), DNN_BAD_PARAM);
	set64(t, TENSOR_ALIGNMENT, 16);
	OK(cudnnBackendFinalize(t));
	return t;
}

static void *graph_convolution(void)
{
	const int64_t zeros[] = {0, 0}, ones[] = {1, 1};
	int type = DNN_FLOAT;
	void *c = make(KIND_CONVOLUTION);

	OK(cudnnBackendSetAttribute(c, CONVOLUTION_TYPE, VALUE_DATA_TYPE, 1, &type));
	set64(c, CONVOLUTION_SPATIAL, 2);
	OK(cudnnBackendSetAttribute(c, CONVOLUTION_STRIDES, VALUE_INT64, 2, ones));
	OK(cudnnBackendSetAttribute(c, CONVOLUTION_DILATIONS, VALUE_INT64, 2, ones));
	OK(cudnnBackendSetAttribute(c, CONVOLUTION_PADDINGS, VALUE_INT64, 2, zeros));
	OK(cudnnBackendSetAttribute(c, CONVOLUTION_POST_PADDINGS, VALUE_INT64, 2, zeros));
	OK(cudnnBackendFinalize(c));
	return c;
}

/* A graph of one convolution; its parts are destroyed, as cudnn-frontend does. */
static void *make_graph(int type, int64_t output)
{
	void *parts[] = {graph_tensor(type, 'x', 4, 16, 32), graph_tensor(type, 'w', 32, 16, 3),
			 graph_tensor(type, 'y', 4, 32, output), graph_convolution()};
	void *operation = make(KIND_CONV_FPROP), *graph = make(KIND_OPERATION_GRAPH);
	int status;

	set_node(operation, FPROP_X, parts[0]);
	set_node(operation, FPROP_W, parts[1]);
	set_node(operation, FPROP_Y, parts[2]);
	set_node(operation, FPROP_CONVOLUTION, parts[3]);
	status = cudnnBackendFinalize(operation);
	for (int i = 0; i < 4; i++)
		OK(cudnnBackendDestroyDescriptor(parts[i]));
	if (status)
		return NULL;
	set_node(graph, GRAPH_OPERATIONS, operation);
	OK(cudnnBackendDestroyDescriptor(operation));
	OK(cudnnBackendFinalize(graph));
	return graph;
}

/* Engines for the graph; `configs` are as many descriptors. */
static int64_t ask(void *graph, int mode, void **configs)
{
	void *heuristic = make(KIND_ENGINEHEUR);
	int64_t count = -1;

	set_node(heuristic, HEURISTIC_GRAPH, graph);
	OK(cudnnBackendSetAttribute(heuristic, HEURISTIC_MODE, VALUE_HEURISTIC, 1, &mode));
	OK(cudnnBackendFinalize(heuristic));
	OK(cudnnBackendGetAttribute(heuristic, HEURISTIC_RESULTS, VALUE_NODE, 0, &count, NULL));
	for (int64_t i = 0; i < count; i++)
		configs[i] = make(KIND_ENGINECFG);
	OK(cudnnBackendGetAttribute(heuristic, HEURISTIC_RESULTS, VALUE_NODE, count, &count, configs));
	OK(cudnnBackendDestroyDescriptor(heuristic));
	return count;
}

static void *make_plan(void *config, int64_t *bytes)
{
	void *plan = make(KIND_EXECUTION_PLAN);

	set_node(plan, PLAN_CONFIG, config);
	OK(cudnnBackendFinalize(plan));
	OK(cudnnBackendGetAttribute(plan, PLAN_WORKSPACE, VALUE_INT64, 1, NULL, bytes));
	return plan;
}

static void *make_pack(int64_t count, void *workspace)
{
	const int64_t ids[] = {'x', 'w', 'y'};
	void *pointers[] = {device(1 << 20), device(1 << 20), device(1 << 20)}, *pack = make(KIND_VARIANT_PACK);

	OK(cudnnBackendSetAttribute(pack, PACK_IDS, VALUE_INT64, count, ids));
	OK(cudnnBackendSetAttribute(pack, PACK_POINTERS, POINTER, count, pointers));
	OK(cudnnBackendSetAttribute(pack, PACK_WORKSPACE, POINTER, 1, &workspace));
	OK(cudnnBackendFinalize(pack));
	return pack;
}

SIM_TEST(cudnn__a_plan_outlives_its_graph, "h200")
{
	void *h = dnn_start(), *graph = make_graph(DNN_HALF, 30), *configs[8], *plan;
	int64_t bytes = -1;

	CHECK(ask(graph, 0, configs) == 2);
	OK(cudnnBackendDestroyDescriptor(graph));
	plan = make_plan(configs[0], &bytes);
	OK(cudnnBackendDestroyDescriptor(configs[0]));
	CHECK(bytes > 0);
	OK(cudnnBackendExecute(h, plan, make_pack(3, device((size_t)bytes))));
	EXPECT(cudnnBackendExecute(h, plan, make_pack(3, NULL)), DNN_BAD_PARAM_NULL_POINTER);
	EXPECT(cudnnBackendExecute(h, plan, make_pack(2, device((size_t)bytes))), DNN_BAD_PARAM);
	EXPECT(cudnnBackendExecute(h, plan, plan), DNN_BAD_PARAM_DESCRIPTOR_TYPE);
}

SIM_TEST(cudnn__only_one_engine_uses_tensor_cores, "h200")
{
	void *configs[8], *engine = (dnn_start(), make(KIND_ENGINE));
	int64_t notes = -1;
	int note = -1;

	CHECK(ask(make_graph(DNN_FLOAT, 30), 0, configs) == 2);
	OK(cudnnBackendGetAttribute(configs[0], CONFIG_ENGINE, VALUE_NODE, 1, NULL, &engine));
	OK(cudnnBackendGetAttribute(engine, ENGINE_NUMERICAL_NOTES, VALUE_NUMERICAL_NOTE, 10, &notes, &note));
	CHECK(notes == 1 && note == 0);
	OK(cudnnBackendGetAttribute(configs[1], CONFIG_ENGINE, VALUE_NODE, 1, NULL, &engine));
	OK(cudnnBackendGetAttribute(engine, ENGINE_NUMERICAL_NOTES, VALUE_NUMERICAL_NOTE, 10, &notes, &note));
	CHECK(notes == 0);
	/* double has no tensor cores here, and integers have no convolution of this kind */
	CHECK(ask(make_graph(DNN_DOUBLE, 30), 0, configs) == 1);
	CHECK(ask(make_graph(DNN_INT64, 30), 0, configs) == 0);
}

SIM_TEST(cudnn__a_program_may_ask_for_fewer_engines_than_there_are, "h200")
{
	void *heuristic = (dnn_start(), make(KIND_ENGINEHEUR)), *config = make(KIND_ENGINECFG);
	int64_t count = -1;
	int mode = 0;

	set_node(heuristic, HEURISTIC_GRAPH, make_graph(DNN_FLOAT, 30));
	OK(cudnnBackendSetAttribute(heuristic, HEURISTIC_MODE, VALUE_HEURISTIC, 1, &mode));
	OK(cudnnBackendFinalize(heuristic));
	OK(cudnnBackendGetAttribute(heuristic, HEURISTIC_RESULTS, VALUE_NODE, 1, &count, &config));
	CHECK(count == 1);
}

SIM_TEST(cudnn__bad_descriptors_are_refused, "h200")
{
	void *d, *t, *c = (dnn_start(), make(KIND_CONV_FPROP));
	int64_t one = 1;

	EXPECT(cudnnBackendCreateDescriptor(KINDS, &d), DNN_NOT_SUPPORTED);
	EXPECT(cudnnBackendCreateDescriptor(KIND_TENSOR, NULL), DNN_BAD_PARAM_NULL_POINTER);
	CHECK(!make_graph(DNN_FLOAT, 31));
	t = graph_tensor(DNN_FLOAT, 1, 1, 1, 1);
	EXPECT(cudnnBackendSetAttribute(t, TENSOR_ID, VALUE_INT64, 1, &one), DNN_NOT_INITIALIZED);
	EXPECT(cudnnBackendSetAttribute(c, TENSOR_ID, VALUE_INT64, 1, &one), DNN_BAD_PARAM);
	EXPECT(cudnnBackendGetAttribute(t, TENSOR_ID, VALUE_BOOLEAN, 1, NULL, &one), DNN_BAD_PARAM_ATTRIBUTE_TYPE);
	d = make(KIND_TENSOR);
	EXPECT(cudnnBackendSetAttribute(c, FPROP_X, VALUE_NODE, 1, &d), DNN_BAD_PARAM_NOT_FINALIZED);
	EXPECT(cudnnBackendFinalize(c), DNN_BAD_PARAM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cudnn__a_handle_has_a_stream_and_a_version),
		cmocka_unit_test(cudnn__dimensions_of_tensors_are_checked),
		cmocka_unit_test(cudnn__shapes_of_a_convolution_must_fit),
		cmocka_unit_test(cudnn__an_algorithm_needs_its_workspace),
		cmocka_unit_test(cudnn__a_workspace_has_copies_with_channels_last),
		cmocka_unit_test(cudnn__little_work_needs_no_copies),
		cmocka_unit_test(cudnn__not_every_type_has_a_convolution),
		cmocka_unit_test(cudnn__a_lost_context_is_a_failed_execution),
		cmocka_unit_test(cudnn__weights_of_an_lstm_are_in_order),
		cmocka_unit_test(cudnn__an_lstm_needs_spaces),
		cmocka_unit_test(cudnn__gates_of_a_long_sequence_are_computed_in_pieces),
		cmocka_unit_test(cudnn__a_plan_outlives_its_graph),
		cmocka_unit_test(cudnn__only_one_engine_uses_tensor_cores),
		cmocka_unit_test(cudnn__a_program_may_ask_for_fewer_engines_than_there_are),
		cmocka_unit_test(cudnn__bad_descriptors_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
