/* SPDX-License-Identifier: Apache-2.0
 * Queries about a graph: its nodes, what they depend on, a picture of it; and objects that live as long as graphs. */
#include "sim/cuda/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum node_type { NODE_KERNEL = 0, NODE_COPY = 1, NODE_FILL = 2, NODE_HOST = 3, NODE_EMPTY = 5, NODE_AWAIT = 6, NODE_RECORD = 7 };

/* The handle of a graph's last node, which depends on these. NULL: there are no more handles. */
struct sim_node *sim_node_new(struct sim_graph *g, const struct sim_deps *deps)
{
	struct sim_node *n = sim_pool_new(&sim.nodes);

	if (!n)
		return NULL;
	n->graph = g;
	n->index = g->count - 1;
	n->deps = *deps;
	atomic_store(&n->head.alive, 1);
	return n;
}

void sim_deps_add(struct sim_deps *deps, struct sim_node *node)
{
	for (unsigned int i = 0; i < deps->count; i++)
		if (deps->node[i] == node)
			return;
	/* More branches than that are not joined at one node: the oldest is forgotten, and order is kept anyway. */
	if (deps->count == SIM_DEPS_MAX)
		memmove(deps->node, deps->node + 1, --deps->count * sizeof(deps->node[0]));
	deps->node[deps->count++] = node;
}

static struct sim_node *node_get(void *handle)
{
	return sim_pool_get(&sim.nodes, handle);
}

/* As all of these functions do: with no room, only the number; what is left of the room is cleared. */
static int list_out(void **out, size_t *room, void *const *list, size_t count)
{
	if (!room)
		return SIM_INVALID_VALUE;
	for (size_t i = 0; out && i < *room; i++)
		out[i] = i < count ? list[i] : NULL;
	if (!out || *room > count)
		*room = count;
	return 0;
}

int sim_cuGraphGetNodes(struct sim_graph *graph, void **nodes, size_t *count)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);

	return g ? list_out(nodes, count, (void **)g->handles, g->count) : SIM_INVALID_VALUE;
}

int sim_cuGraphGetRootNodes(struct sim_graph *graph, void **nodes, size_t *count)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);
	void **roots;
	size_t n = 0;
	int code;

	if (!g || !count)
		return SIM_INVALID_VALUE;
	roots = calloc(g->count + 1, sizeof(*roots));
	if (!roots)
		return SIM_OUT_OF_MEMORY;
	for (size_t i = 0; i < g->count; i++)
		if (!g->handles[i]->deps.count)
			roots[n++] = g->handles[i];
	code = list_out(nodes, count, roots, n);
	free(roots);
	return code;
}

int sim_cuGraphNodeGetDependencies(void *node, void **dependencies, size_t *count)
{
	struct sim_node *n = node_get(node);

	return n ? list_out(dependencies, count, (void **)n->deps.node, n->deps.count) : SIM_INVALID_VALUE;
}

int sim_cuGraphNodeGetDependencies_v2(void *node, void **dependencies, void *data, size_t *count)
{
	if (data && count)
		memset(data, 0, *count * 8);		/* CUgraphEdgeData: plain edges */
	return sim_cuGraphNodeGetDependencies(node, dependencies, count);
}

static int type_of(const struct sim_node *n)
{
	switch (n->graph->nodes[n->index].kind) {
	case SIM_OP_KERNEL: return NODE_KERNEL;
	case SIM_OP_COPY: return NODE_COPY;
	case SIM_OP_FILL: return NODE_FILL;
	case SIM_OP_HOST: return NODE_HOST;
	case SIM_OP_AWAIT: return NODE_AWAIT;
	case SIM_OP_RECORD: return NODE_RECORD;
	default: return NODE_EMPTY;
	}
}

int sim_cuGraphNodeGetType(void *node, int *type)
{
	struct sim_node *n = node_get(node);

	if (!n || !type)
		return SIM_INVALID_VALUE;
	*type = type_of(n);
	return 0;
}

static int kernel_params(void *node, struct sim_kernel_params *params)
{
	struct sim_node *n = node_get(node);
	const struct sim_op *op;

	if (!n || !params || type_of(n) != NODE_KERNEL)
		return SIM_INVALID_VALUE;
	op = &n->graph->nodes[n->index];
	params->func = (struct sim_func *)(uintptr_t)op->u.kernel.func;
	memcpy(params->grid, op->u.kernel.grid, sizeof(params->grid));
	memcpy(params->block, op->u.kernel.block, sizeof(params->block));
	params->shared = op->u.kernel.shared;
	params->params = params->extra = NULL;
	return 0;
}

int sim_cuGraphKernelNodeGetParams(void *node, struct sim_kernel_params *params)
{
	return kernel_params(node, params);
}

int sim_cuGraphKernelNodeGetParams_v2(void *node, struct sim_kernel_params_v2 *params)
{
	int code = params ? kernel_params(node, &params->v1) : SIM_INVALID_VALUE;

	if (!code)
		params->kernel = params->context = NULL;
	return code;
}

static const char *const type_names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY"};

int sim_cuGraphDebugDotPrint(struct sim_graph *graph, const char *path, unsigned int flags)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);
	FILE *file;

	(void)flags;
	if (!g || !path)
		return SIM_INVALID_VALUE;
	file = fopen(path, "we");
	if (!file)
		return SIM_OPERATING_SYSTEM;
	fprintf(file, "digraph dot {\nsubgraph cluster_1 {\nlabel=\"graph_1\" graph[style=\"dashed\"];\n");
	for (size_t i = 0; i < g->count; i++) {
		const struct sim_node *n = g->handles[i];
		bool kernel = type_of(n) == NODE_KERNEL;

		fprintf(file, "\"graph_1_node_%zu\"[shape=\"%s\" label=\"%zu\\n%s\"];\n", i,
			kernel ? "octagon" : "rectangle", i,
			kernel ? g->nodes[i].u.kernel.func->name : type_names[type_of(n)]);
		for (unsigned int k = 0; k < n->deps.count; k++)
			fprintf(file, "\"graph_1_node_%zu\" -> \"graph_1_node_%zu\";\n", n->deps.node[k]->index, i);
	}
	fprintf(file, "}\n}\n");
	return fclose(file) ? SIM_OPERATING_SYSTEM : 0;
}

static pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;

static void object_change(struct sim_object *o, long more)
{
	bool last;

	pthread_mutex_lock(&object_lock);
	o->references += more;
	last = o->references <= 0;
	pthread_mutex_unlock(&object_lock);
	if (!last)
		return;
	o->destroy(o->data);
	sim_pool_drop(&sim.objects, o);
}

int sim_cuUserObjectCreate(void **object, void *data, sim_host_fn destroy, unsigned int references, unsigned int flags)
{
	struct sim_object *o;

	/* the only flag, which must be set: destroying does not synchronize */
	if (!object || !destroy || !references || flags != 1)
		return SIM_INVALID_VALUE;
	o = sim_pool_new(&sim.objects);
	if (!o)
		return SIM_OUT_OF_MEMORY;
	o->data = data;
	o->destroy = destroy;
	o->references = references;
	atomic_store(&o->head.alive, 1);
	*object = o;
	return 0;
}

static int object_count(void *object, unsigned int count, long sign)
{
	struct sim_object *o = sim_pool_get(&sim.objects, object);

	if (!o || !count)
		return SIM_INVALID_VALUE;
	object_change(o, sign * (long)count);
	return 0;
}

int sim_cuUserObjectRetain(void *object, unsigned int count)
{
	return object_count(object, count, 1);
}

int sim_cuUserObjectRelease(void *object, unsigned int count)
{
	return object_count(object, count, -1);
}

static int owns_add(struct sim_owned **list, struct sim_object *o, long count)
{
	struct sim_owned *own = calloc(1, sizeof(*own));

	if (!own)
		return SIM_OUT_OF_MEMORY;
	sim_keep(own);
	*own = (struct sim_owned){*list, o, count};
	*list = own;
	return 0;
}

int sim_cuGraphRetainUserObject(struct sim_graph *graph, void *object, unsigned int count, unsigned int flags)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);
	struct sim_object *o = sim_pool_get(&sim.objects, object);
	int code;

	if (!g || !o || !count || flags > 1)
		return SIM_INVALID_VALUE;
	code = owns_add(&g->owned, o, count);
	if (!code && !flags)		/* 1: the caller's references become the graph's */
		object_change(o, count);
	return code;
}

int sim_cuGraphReleaseUserObject(struct sim_graph *graph, void *object, unsigned int count)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);

	if (!g || !count)
		return SIM_INVALID_VALUE;
	for (struct sim_owned *own = g->owned; own; own = own->next) {
		if (own->object != object || own->count < (long)count)
			continue;
		own->count -= count;
		return object_count(object, count, -1);
	}
	return SIM_INVALID_VALUE;
}

/* An executable graph refers to what its graph refers to. */
void sim_owned_copy(struct sim_owned **to, const struct sim_owned *from)
{
	*to = NULL;
	for (; from; from = from->next)
		if (from->count && !owns_add(to, from->object, 1))
			object_change(from->object, 1);
}

void sim_owned_free(struct sim_owned **list)
{
	while (*list) {
		struct sim_owned *own = *list;

		*list = own->next;
		if (own->count)
			object_change(own->object, -own->count);
		free(own);
	}
}
