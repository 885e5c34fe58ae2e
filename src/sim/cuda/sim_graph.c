/* SPDX-License-Identifier: Apache-2.0
 * Graphs: captured work, instantiated and launched. */
#include "sim/cuda/sim.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

struct sim_graph *sim_graph_new(void)
{
	struct sim_graph *g = sim_pool_new(&sim.graphs);

	if (!g)
		return NULL;
	g->nodes = NULL;
	g->handles = NULL;
	g->owned = NULL;
	g->count = g->capacity = 0;
	atomic_store(&g->head.alive, 1);
	return g;
}

void sim_graph_free(struct sim_graph *g)
{
	for (size_t i = 0; i < g->count; i++)
		sim_pool_drop(&sim.nodes, g->handles[i]);
	free(g->handles);
	free(g->nodes);
	g->handles = NULL;
	g->nodes = NULL;
	sim_owned_free(&g->owned);
	sim_pool_drop(&sim.graphs, g);
}

static bool graph_grow(struct sim_graph *g)
{
	size_t capacity = g->capacity ? g->capacity * 2 : 16;
	struct sim_op *nodes = realloc(g->nodes, capacity * sizeof(*nodes));
	struct sim_node **handles;

	if (!nodes)
		return false;
	sim_keep(nodes);
	g->nodes = nodes;
	handles = realloc(g->handles, capacity * sizeof(struct sim_node *));
	if (!handles)
		return false;
	sim_keep(handles);
	g->handles = handles;
	g->capacity = capacity;
	return true;
}

static int node_add(struct sim_graph *g, const struct sim_op *op, struct sim_deps *deps)
{
	struct sim_node *node;

	if (g->count == g->capacity && !graph_grow(g))
		return SIM_OUT_OF_MEMORY;
	memcpy(&g->nodes[g->count++], op, offsetof(struct sim_op, params) + op->param_bytes);
	node = sim_node_new(g, deps);
	if (!node) {
		g->count--;
		return SIM_OUT_OF_MEMORY;
	}
	g->handles[g->count - 1] = node;
	*deps = (struct sim_deps){.count = 1, .node = {node}};
	return 0;
}

/* A launched graph is expanded into its nodes. Waits and frees need not be repeated: the order is
 * kept anyway, and the memory stays with the graph. */
int sim_graph_add(struct sim_graph *g, const struct sim_op *op, struct sim_deps *deps)
{
	int code = 0;

	if (op->kind == SIM_OP_WAIT || op->kind == SIM_OP_EVENT || op->kind == SIM_OP_FREE)
		return 0;
	if (op->kind != SIM_OP_GRAPH)
		return node_add(g, op, deps);
	for (size_t i = 0; i < op->u.exec->count && !code; i++)
		code = node_add(g, &op->u.exec->nodes[i], deps);
	return code;
}

static void exec_free(struct sim_exec *exec)
{
	free(exec->nodes);
	exec->nodes = NULL;
	sim_owned_free(&exec->owned);
	sim_pool_drop(&sim.execs, exec);
}

/* Called when one of its launches has finished. */
void sim_exec_leave(struct sim_exec *exec)
{
	bool last;

	pthread_mutex_lock(&graph_lock);
	last = --exec->in_flight == 0 && exec->doomed;
	pthread_mutex_unlock(&graph_lock);
	if (last)
		exec_free(exec);
}

static int instantiate(struct sim_exec **out, struct sim_graph *graph)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);
	struct sim_exec *exec;

	if (!graph)
		sim_log("The source graph pointer is NULL");
	if (!g)
		sim_log("Graph is not a valid source graph");
	if (!out || !g)
		return SIM_INVALID_VALUE;
	exec = sim_pool_new(&sim.execs);
	if (!exec)
		return SIM_OUT_OF_MEMORY;
	exec->count = g->count;
	exec->external = false;
	for (size_t i = 0; i < g->count; i++)
		exec->external |= g->nodes[i].kind == SIM_OP_RECORD || g->nodes[i].kind == SIM_OP_AWAIT;
	exec->in_flight = 0;
	exec->doomed = false;
	exec->nodes = calloc(g->count + 1, sizeof(*exec->nodes));
	if (!exec->nodes) {
		sim_pool_drop(&sim.execs, exec);
		return SIM_OUT_OF_MEMORY;
	}
	sim_keep(exec->nodes);
	if (g->count)
		memcpy(exec->nodes, g->nodes, g->count * sizeof(*exec->nodes));
	sim_owned_copy(&exec->owned, g->owned);
	atomic_store(&exec->head.alive, 1);
	*out = exec;
	return 0;
}

int sim_cuGraphCreate(struct sim_graph **graph, unsigned int flags)
{
	if (!graph || flags)
		return SIM_INVALID_VALUE;
	*graph = sim_graph_new();
	return *graph ? 0 : SIM_OUT_OF_MEMORY;
}

int sim_cuGraphDestroy(struct sim_graph *graph)
{
	struct sim_graph *g = sim_pool_get(&sim.graphs, graph);

	if (!g)
		return SIM_INVALID_VALUE;
	sim_graph_free(g);
	return 0;
}

int sim_cuGraphInstantiateWithFlags(struct sim_exec **exec, struct sim_graph *graph,
				    unsigned long long flags)
{
	(void)flags;
	return instantiate(exec, graph);
}

int sim_cuGraphInstantiate_v2(struct sim_exec **exec, struct sim_graph *graph, void **node,
			      char *log, size_t size)
{
	if (node)
		*node = NULL;
	if (log && size)
		*log = '\0';
	return instantiate(exec, graph);
}

int sim_cuGraphInstantiate(struct sim_exec **exec, struct sim_graph *graph, void **node, char *log,
			   size_t size)
{
	return sim_cuGraphInstantiate_v2(exec, graph, node, log, size);
}

int sim_cuGraphInstantiateWithParams(struct sim_exec **exec, struct sim_graph *graph,
				     struct sim_instantiate_params *params)
{
	int code;

	if (!params)
		return SIM_INVALID_VALUE;
	code = instantiate(exec, graph);
	params->result = code ? 1 : 0;
	return code;
}

static void await_events(const struct sim_exec *x, struct sim_stream *s)
{
	for (size_t i = 0; x->external && i < x->count; i++)
		if (x->nodes[i].kind == SIM_OP_AWAIT)
			sim_event_await(x->nodes[i].u.event.event, s);
}

static void mark_events(const struct sim_exec *x, struct sim_stream *s, uint64_t seq)
{
	for (size_t i = 0; x->external && i < x->count; i++)
		if (x->nodes[i].kind == SIM_OP_RECORD)
			sim_event_mark(x->nodes[i].u.event.event, s, seq);
}

int sim_cuGraphLaunch(struct sim_exec *exec, struct sim_stream *stream)
{
	struct sim_exec *x = sim_pool_get(&sim.execs, exec);
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op;
	uint64_t seq = 0;
	bool captured;
	int code;

	if (!x) {
		sim_log("Graph is not a valid executable graph");
		return SIM_INVALID_VALUE;
	}
	if (!s)
		return SIM_INVALID_HANDLE;
	memset(&op, 0, offsetof(struct sim_op, params));
	op.kind = SIM_OP_GRAPH;
	op.u.exec = x;
	pthread_mutex_lock(&graph_lock);
	x->in_flight++;
	pthread_mutex_unlock(&graph_lock);
	captured = atomic_load(&s->capture) != NULL;
	if (!captured)
		await_events(x, s);
	code = sim_work_submit(s, &op, &seq);
	if (!code && !captured)
		mark_events(x, s, seq);
	if (code || captured)
		sim_exec_leave(x);
	return code;
}

int sim_cuGraphUpload(struct sim_exec *exec, struct sim_stream *stream)
{
	if (!sim_pool_get(&sim.execs, exec))
		return SIM_INVALID_VALUE;
	return sim_stream_resolve(stream) ? 0 : SIM_INVALID_HANDLE;
}

int sim_cuGraphExecDestroy(struct sim_exec *exec)
{
	struct sim_exec *x = sim_pool_get(&sim.execs, exec);
	bool now;

	if (!x)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	now = !x->in_flight && !x->doomed;
	x->doomed = true;
	pthread_mutex_unlock(&graph_lock);
	if (now)
		exec_free(x);
	return 0;
}
