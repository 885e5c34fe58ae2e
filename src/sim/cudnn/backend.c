/* SPDX-License-Identifier: Apache-2.0
 * The functions of cuDNN's graph interface.
 */
#include "sim/cudnn/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int first, last, since;
	const char *operation;
} kinds[KINDS] = {
#define KIND(name, number, first, last, since, operation) [number] = {first, last, since, operation},
#include "sim/cudnn/kinds.def"
#undef KIND
};

const char *dnn_operation_name(enum dnn_kind kind)
{
	return kinds[kind].operation;
}

/* Bytes of a value; enumerations have 4. */
static size_t value_bytes(int type)
{
	enum { FLOAT64 = 5, POINTER = 6, FRACTION = 26 };

	switch (type) {
	case VALUE_HANDLE:
	case VALUE_INT64:
	case FLOAT64:
	case POINTER:
	case VALUE_NODE:
		return 8;
	case VALUE_BOOLEAN:
	case VALUE_CHAR:
		return 1;
	case FRACTION:
		return 16;
	}
	return 4;
}

static struct dnn_value *find_value(const struct dnn_node *n, int attribute)
{
	struct dnn_value *v = n->values;

	while (v && v->attribute != attribute)
		v = v->next;
	return v;
}

const struct dnn_value *dnn_get(const struct dnn_node *n, int attribute)
{
	return find_value(n, attribute);
}

int64_t dnn_get_int(const struct dnn_node *n, int attribute, int64_t missing)
{
	const struct dnn_value *v = find_value(n, attribute);
	int32_t small;
	int64_t large;

	if (!v || v->count == 0)
		return missing;
	switch (value_bytes(v->type)) {
	case 1:
		return *(const unsigned char *)v->data;
	case 4:
		memcpy(&small, v->data, sizeof(small));
		return small;
	}
	memcpy(&large, v->data, sizeof(large));
	return large;
}

struct dnn_node *dnn_get_node(const struct dnn_node *n, int attribute)
{
	const struct dnn_value *v = find_value(n, attribute);

	return v && v->type == VALUE_NODE && v->count ? *(struct dnn_node **)v->data : NULL;
}

static void drop_value(struct dnn_value *v)
{
	for (int64_t i = 0; v->type == VALUE_NODE && i < v->count; i++)
		dnn_node_release(((struct dnn_node **)v->data)[i]);
	free(v->data);
	v->data = NULL;
	v->count = 0;
}

int dnn_set(struct dnn_node *n, int attribute, int type, int64_t count, const void *data)
{
	size_t bytes = value_bytes(type) * (size_t)count;
	struct dnn_value *v = find_value(n, attribute);
	void *copy = malloc(bytes ? bytes : 1);

	if (copy && !v && (v = calloc(1, sizeof(*v)))) {
		v->attribute = attribute;
		v->next = n->values;
		n->values = v;
	}
	if (!copy || !v) {
		free(copy);
		return dnn_fail(DNN_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory");
	}
	if (bytes)
		memcpy(copy, data, bytes);
	for (int64_t i = 0; type == VALUE_NODE && i < count; i++)
		dnn_node_keep(((struct dnn_node **)copy)[i]);
	drop_value(v);
	v->type = type;
	v->count = count;
	v->data = copy;
	return DNN_SUCCESS;
}

struct dnn_node *dnn_node_new(enum dnn_kind kind)
{
	struct dnn_node *n = calloc(1, sizeof(*n));

	if (n) {
		n->kind = kind;
		n->references = 1;
	}
	return n;
}

struct dnn_node *dnn_node_keep(struct dnn_node *n)
{
	atomic_fetch_add(&n->references, 1);
	return n;
}

void dnn_node_release(struct dnn_node *n)
{
	if (!n || atomic_fetch_sub(&n->references, 1) > 1)
		return;
	for (struct dnn_value *v = n->values, *next; v; v = next) {
		next = v->next;
		drop_value(v);
		free(v);
	}
	free(n);
}

/* What the program holds. */
struct dnn_descriptor {
	struct dnn_node *node;
};

DNN(cudnnBackendCreateDescriptor, (int kind, struct dnn_descriptor **descriptor))
{
	struct dnn_descriptor *d;

	DNN_REQUIRE(descriptor, DNN_BAD_PARAM_NULL_POINTER);
	DNN_REQUIRE(kind >= 0 && kind < KINDS && kinds[kind].since <= dnn_version(), DNN_NOT_SUPPORTED);
	d = calloc(1, sizeof(*d));
	if (d)
		d->node = dnn_node_new((enum dnn_kind)kind);
	if (!d || !d->node) {
		free(d);
		return dnn_fail(DNN_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory");
	}
	*descriptor = d;
	return DNN_SUCCESS;
}

DNN(cudnnBackendDestroyDescriptor, (struct dnn_descriptor * d))
{
	if (d)
		dnn_node_release(d->node);
	free(d);
	return DNN_SUCCESS;
}

enum { NODES_MAX = 4096 };

/* Descriptors become the nodes behind them. All must be finalized. */
static int set_nodes(struct dnn_node *n, int attribute, int64_t count, struct dnn_descriptor *const *descriptors)
{
	struct dnn_node **nodes;
	int status;

	DNN_REQUIRE(count <= NODES_MAX, DNN_BAD_PARAM_OUT_OF_BOUND);
	for (int64_t i = 0; i < count; i++) {
		DNN_REQUIRE(descriptors[i], DNN_BAD_PARAM_NULL_POINTER);
		DNN_REQUIRE(descriptors[i]->node->final, DNN_BAD_PARAM_NOT_FINALIZED);
	}
	nodes = calloc((size_t)count + 1, sizeof(struct dnn_node *));
	DNN_REQUIRE(nodes, DNN_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
	for (int64_t i = 0; i < count; i++)
		nodes[i] = descriptors[i]->node;
	status = dnn_set(n, attribute, VALUE_NODE, count, nodes);
	free(nodes);
	return status;
}

static bool belongs(enum dnn_kind kind, int attribute)
{
	return attribute >= kinds[kind].first && attribute <= kinds[kind].last;
}

/* Results, which only the library sets. */
static bool is_result(int attribute)
{
	switch (attribute) {
	case HEURISTIC_RESULTS:
	case CONFIG_WORKSPACE:
	case CONFIG_SHARED_MEMORY:
	case PLAN_WORKSPACE:
	case GRAPH_ENGINE_COUNT:
	case ENGINE_NUMERICAL_NOTES:
	case ENGINE_BEHAVIOR_NOTES:
	case ENGINE_KNOBS:
		return true;
	}
	return false;
}

DNN(cudnnBackendSetAttribute, (struct dnn_descriptor * d, int attribute, int type, int64_t count, const void *elements))
{
	DNN_REQUIRE(d, DNN_BAD_PARAM_NULL_POINTER);
	DNN_REQUIRE(!d->node->final, DNN_NOT_INITIALIZED);
	DNN_REQUIRE(belongs(d->node->kind, attribute) && !is_result(attribute), DNN_BAD_PARAM);
	DNN_REQUIRE(type >= 0 && type < VALUE_TYPES, DNN_BAD_PARAM_ATTRIBUTE_TYPE);
	DNN_REQUIRE(count >= 0, DNN_BAD_PARAM);
	DNN_REQUIRE(elements || count == 0, DNN_BAD_PARAM_NULL_POINTER);
	return type == VALUE_NODE ? set_nodes(d->node, attribute, count, elements)
				  : dnn_set(d->node, attribute, type, count, elements);
}

/* cudnnBackendNumericalNote_t, cudnnBackendBehaviorNote_t, cudnnBackendHeurMode_t */
enum { NOTE_TENSOR_CORE = 0 };
enum { HEURISTIC_FALLBACK = 2, HEURISTIC_MODES = 4 };

static int set_int(struct dnn_node *n, int attribute, int type, int64_t value)
{
	int32_t small = (int32_t)value;

	return value_bytes(type) == 4 ? dnn_set(n, attribute, type, 1, &small) : dnn_set(n, attribute, type, 1, &value);
}

/* What an engine says about itself. PyTorch drops engines with tensor cores for float when TF32 is not allowed. */
static int describe_engine(struct dnn_node *engine, enum dnn_engine which)
{
	int note = NOTE_TENSOR_CORE;
	int status =
		dnn_set(engine, ENGINE_NUMERICAL_NOTES, VALUE_NUMERICAL_NOTE, which == DNN_ENGINE_TENSOR_CORE, &note);

	if (status == DNN_SUCCESS)
		status = dnn_set(engine, ENGINE_BEHAVIOR_NOTES, VALUE_BEHAVIOR_NOTE, 0, NULL);
	return status ? status : dnn_set(engine, ENGINE_KNOBS, VALUE_NODE, 0, NULL);
}

static int finalize_engine(struct dnn_node *n)
{
	struct dnn_node *graph = dnn_get_node(n, ENGINE_GRAPH);
	int64_t index = dnn_get_int(n, ENGINE_INDEX, -1);
	struct dnn_device device = dnn_device();
	struct dnn_work w;

	DNN_REQUIRE(graph && graph->kind == KIND_OPERATION_GRAPH, DNN_BAD_PARAM);
	DNN_REQUIRE(index >= 0 && index < DNN_ENGINES, DNN_BAD_PARAM);
	w = dnn_graph_work(graph);
	DNN_REQUIRE(dnn_engine_runs(&w, (enum dnn_engine)index, &device), DNN_NOT_SUPPORTED);
	return describe_engine(n, (enum dnn_engine)index);
}

static int finalize_config(struct dnn_node *n)
{
	struct dnn_node *engine = dnn_get_node(n, CONFIG_ENGINE);
	struct dnn_device device = dnn_device();
	struct dnn_work w;
	int status;

	DNN_REQUIRE(engine && engine->kind == KIND_ENGINE, DNN_BAD_PARAM);
	w = dnn_graph_work(dnn_get_node(engine, ENGINE_GRAPH));
	status = set_int(n, CONFIG_WORKSPACE, VALUE_INT64,
		(int64_t)dnn_engine_workspace(&w, (enum dnn_engine)dnn_get_int(engine, ENGINE_INDEX, 0), &device));
	if (status == DNN_SUCCESS)
		status = set_int(n, CONFIG_SHARED_MEMORY, VALUE_INT32, 0);
	if (status == DNN_SUCCESS && !dnn_get(n, CONFIG_KNOBS))
		status = dnn_set(n, CONFIG_KNOBS, VALUE_NODE, 0, NULL);
	return status;
}

/* An engine with its configuration, as heuristics return it. */
static struct dnn_node *make_config(struct dnn_node *graph, enum dnn_engine which)
{
	struct dnn_node *engine = dnn_node_new(KIND_ENGINE), *config = dnn_node_new(KIND_ENGINECFG);
	bool made = engine && config && dnn_set(engine, ENGINE_GRAPH, VALUE_NODE, 1, &graph) == DNN_SUCCESS &&
		    set_int(engine, ENGINE_INDEX, VALUE_INT64, which) == DNN_SUCCESS &&
		    finalize_engine(engine) == DNN_SUCCESS &&
		    dnn_set(config, CONFIG_ENGINE, VALUE_NODE, 1, &engine) == DNN_SUCCESS &&
		    finalize_config(config) == DNN_SUCCESS;

	if (made)
		engine->final = config->final = true;
	else
		dnn_node_release(config);
	dnn_node_release(engine);
	return made ? config : NULL;
}

/* Without an engine for the graph the list is empty: that is how PyTorch learns that it is not supported. */
static int finalize_heuristic(struct dnn_node *n)
{
	static const enum dnn_engine order[] = {DNN_ENGINE_TENSOR_CORE, DNN_ENGINE_FMA};
	struct dnn_node *graph = dnn_get_node(n, HEURISTIC_GRAPH), *found[DNN_ENGINES];
	int64_t mode = dnn_get_int(n, HEURISTIC_MODE, -1), count = 0;
	struct dnn_device device = dnn_device();
	struct dnn_work w;
	int status;

	DNN_REQUIRE(graph && graph->kind == KIND_OPERATION_GRAPH, DNN_BAD_PARAM);
	DNN_REQUIRE(mode >= 0 && mode < HEURISTIC_MODES, DNN_BAD_PARAM);
	w = dnn_graph_work(graph);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		/* the fallback of a convolution is the engine that needs least */
		bool wanted = mode != HEURISTIC_FALLBACK || !w.is_conv || order[i] == DNN_ENGINE_FMA;

		if (wanted && dnn_engine_runs(&w, order[i], &device) && (found[count] = make_config(graph, order[i])))
			count++;
	}
	status = dnn_set(n, HEURISTIC_RESULTS, VALUE_NODE, count, found);
	while (count > 0)
		dnn_node_release(found[--count]);
	return status;
}

/* Enough for a log; it cannot be read back. */
static int set_json(struct dnn_node *n, int attribute, int64_t engine)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "{\"engine\":%lld,\"simulated\":true}", (long long)engine);

	return dnn_set(n, attribute, VALUE_CHAR, length, text);
}

static int finalize_plan(struct dnn_node *n)
{
	struct dnn_node *config = dnn_get_node(n, PLAN_CONFIG);
	int status;

	if (dnn_get(n, PLAN_JSON))
		return standin_refuse("cudnnBackendFinalize of a serialized execution plan", DNN_NOT_SUPPORTED);
	DNN_REQUIRE(config && config->kind == KIND_ENGINECFG, DNN_BAD_PARAM);
	status = set_int(n, PLAN_WORKSPACE, VALUE_INT64, dnn_get_int(config, CONFIG_WORKSPACE, 0));
	return status ? status
		      : set_json(n, PLAN_JSON, dnn_get_int(dnn_get_node(config, CONFIG_ENGINE), ENGINE_INDEX, 0));
}

static int finalize_graph(struct dnn_node *n)
{
	int status = dnn_check_graph(n);

	return status ? status : set_int(n, GRAPH_ENGINE_COUNT, VALUE_INT64, DNN_ENGINES);
}

static int finalize(struct dnn_node *n)
{
	switch (n->kind) {
	case KIND_TENSOR:
		return dnn_check_tensor(n);
	case KIND_CONVOLUTION:
		return dnn_check_convolution(n);
	case KIND_OPERATION_GRAPH:
		return finalize_graph(n);
	case KIND_ENGINE:
		return finalize_engine(n);
	case KIND_ENGINECFG:
		return finalize_config(n);
	case KIND_ENGINEHEUR:
		return finalize_heuristic(n);
	case KIND_EXECUTION_PLAN:
		return finalize_plan(n);
	case KIND_VARIANT_PACK:
		return dnn_check_pack(n);
	case KIND_DEVICE_PROPERTIES:
		return dnn_get(n, DEVICE_JSON) ? DNN_SUCCESS : set_json(n, DEVICE_JSON, 0);
	default:
		return dnn_operation_name(n->kind) ? dnn_check_operation(n) : DNN_SUCCESS;
	}
}

DNN(cudnnBackendFinalize, (struct dnn_descriptor * d))
{
	int status;

	DNN_REQUIRE(d, DNN_BAD_PARAM_NULL_POINTER);
	if (d->node->final)
		return DNN_SUCCESS;
	status = finalize(d->node);
	d->node->final = status == DNN_SUCCESS;
	return status;
}

/* The program brings descriptors of its own, which become those of the answer. */
static int give_nodes(const struct dnn_value *v, int64_t wanted, struct dnn_descriptor *const *descriptors)
{
	struct dnn_node *const *nodes = v->data;

	for (int64_t i = 0; i < v->count && i < wanted; i++) {
		DNN_REQUIRE(descriptors[i], DNN_BAD_PARAM_NULL_POINTER);
		DNN_REQUIRE(descriptors[i]->node->kind == nodes[i]->kind, DNN_BAD_PARAM_DESCRIPTOR_TYPE);
		dnn_node_release(descriptors[i]->node);
		descriptors[i]->node = dnn_node_keep(nodes[i]);
	}
	return DNN_SUCCESS;
}

DNN(cudnnBackendGetAttribute,
    (struct dnn_descriptor * d, int attribute, int type, int64_t wanted, int64_t *count, void *elements))
{
	const struct dnn_value *v;

	DNN_REQUIRE(d, DNN_BAD_PARAM_NULL_POINTER);
	DNN_REQUIRE(d->node->final, DNN_NOT_INITIALIZED);
	DNN_REQUIRE(belongs(d->node->kind, attribute) && wanted >= 0, DNN_BAD_PARAM);
	v = dnn_get(d->node, attribute);
	if (count)
		*count = v ? v->count : 0;
	if (!v || !elements || wanted == 0)
		return DNN_SUCCESS;
	DNN_REQUIRE(v->type == type, DNN_BAD_PARAM_ATTRIBUTE_TYPE);
	if (type == VALUE_NODE) {
		/* torch 2.15 asks for fewer engines than there are, and takes this for the number that it got */
		if (count && v->count > wanted)
			*count = wanted;
		return give_nodes(v, wanted, elements);
	}
	memcpy(elements, v->data, value_bytes(type) * (size_t)(v->count < wanted ? v->count : wanted));
	return DNN_SUCCESS;
}

DNN(cudnnBackendExecute, (struct dnn_handle * h, struct dnn_descriptor *plan, struct dnn_descriptor *pack))
{
	const struct dnn_node *graph;

	DNN_REQUIRE(h && plan && pack, DNN_BAD_PARAM_NULL_POINTER);
	DNN_REQUIRE(plan->node->kind == KIND_EXECUTION_PLAN && pack->node->kind == KIND_VARIANT_PACK,
		    DNN_BAD_PARAM_DESCRIPTOR_TYPE);
	DNN_REQUIRE(plan->node->final && pack->node->final, DNN_BAD_PARAM_NOT_FINALIZED);
	graph = dnn_get_node(dnn_get_node(dnn_get_node(plan->node, PLAN_CONFIG), CONFIG_ENGINE), ENGINE_GRAPH);
	DNN_REQUIRE(dnn_get_int(plan->node, PLAN_WORKSPACE, 0) == 0 || dnn_get_int(pack->node, PACK_WORKSPACE, 0),
		    DNN_BAD_PARAM_NULL_POINTER);
	DNN_REQUIRE(dnn_pack_is_complete(graph, pack->node), DNN_BAD_PARAM);
	return dnn_graph_launch(graph, h);
}
