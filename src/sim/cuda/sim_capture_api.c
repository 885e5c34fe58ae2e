/* SPDX-License-Identifier: Apache-2.0
 * Stream capture, exported functions: begin, end and query. */
#include "sim/cuda/sim_capture.h"

#include <stdlib.h>

static uint64_t next_id = 1;

static int begin_capture(struct sim_stream *stream, struct sim_graph *graph, int mode)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_capture *cap;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (mode < SIM_CAPTURE_GLOBAL || mode > SIM_CAPTURE_RELAXED)
		return SIM_INVALID_VALUE;
	if (s->legacy)
		return SIM_CAPTURE_UNSUPPORTED;
	cap = calloc(1, sizeof(*cap));
	if (!cap)
		return SIM_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_capture_lock);
	cap->graph = graph ? graph : sim_graph_new();
	cap->own_graph = !graph;
	if (!cap->graph || atomic_load(&s->capture)) {
		pthread_mutex_unlock(&sim_capture_lock);
		if (cap->graph && cap->own_graph)
			sim_graph_free(cap->graph);
		free(cap);
		return SIM_ILLEGAL_STATE;
	}
	cap->id = next_id++;
	cap->mode = (enum sim_capture_mode)mode;
	cap->status = SIM_CAPTURING;
	cap->thread = pthread_self();
	cap->ctx = s->ctx;
	cap->origin = s;
	cap->next = sim_capture_list;
	sim_capture_list = cap;
	s->capture_node = 0;
	s->deps.count = 0;
	s->unjoined = false;
	atomic_store(&s->capture, cap);
	atomic_fetch_add(&sim.captures, 1);
	pthread_mutex_unlock(&sim_capture_lock);
	return 0;
}

int sim_cuStreamBeginCapture(struct sim_stream *stream)
{
	return begin_capture(stream, NULL, SIM_CAPTURE_GLOBAL);
}

int sim_cuStreamBeginCapture_v2(struct sim_stream *stream, int mode)
{
	return begin_capture(stream, NULL, mode);
}

static bool deps_ok(const struct sim_graph *graph, void **dependencies, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct sim_node *n = dependencies ? sim_pool_get(&sim.nodes, dependencies[i]) : NULL;

		if (!n || n->graph != graph)
			return false;
	}
	return true;
}

/* What the stream's next node depends on; `more`: besides what it depends on already. */
static void deps_set(struct sim_stream *s, void **dependencies, size_t count, bool more)
{
	if (!more)
		s->deps.count = 0;
	for (size_t i = 0; i < count; i++)
		sim_deps_add(&s->deps, dependencies[i]);
}

int sim_cuStreamBeginCaptureToGraph(struct sim_stream *stream, struct sim_graph *graph,
				    void **dependencies, const void *data, size_t count, int mode)
{
	int code;

	(void)data;
	if (!sim_pool_get(&sim.graphs, graph) || !deps_ok(graph, dependencies, count))
		return SIM_INVALID_VALUE;
	code = begin_capture(stream, graph, mode);
	if (!code)
		deps_set(sim_stream_resolve(stream), dependencies, count, false);
	return code;
}

/* Takes every stream out of the capture. */
static bool release_streams(struct sim_capture *cap)
{
	struct sim_ctx *ctx = cap->ctx;
	bool unjoined = false;

	pthread_mutex_lock(&ctx->lock);
	for (struct sim_stream *s = ctx->streams; s; s = s->next) {
		if (atomic_load(&s->capture) != cap)
			continue;
		unjoined |= s->unjoined;
		atomic_store(&s->capture, NULL);
		atomic_fetch_sub(&sim.captures, 1);
	}
	pthread_mutex_unlock(&ctx->lock);
	return unjoined;
}

/* Takes the capture off the list; true if one of its streams was not joined. */
static bool capture_end(struct sim_capture *cap)
{
	for (struct sim_capture **link = &sim_capture_list; *link; link = &(*link)->next) {
		if (*link != cap)
			continue;
		*link = cap->next;
		break;
	}
	return release_streams(cap);
}

/* Measured: destroying a capturing stream is not an error; its capture is gone. */
void sim_capture_abandon(struct sim_stream *s)
{
	struct sim_capture *cap;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return;
	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	if (cap && cap->origin != s) {
		break_capture(cap);
		atomic_store(&s->capture, NULL);
		atomic_fetch_sub(&sim.captures, 1);
	} else if (cap) {
		capture_end(cap);
		if (cap->own_graph)
			sim_graph_free(cap->graph);
		free(cap);
	}
	pthread_mutex_unlock(&sim_capture_lock);
}

static int end_locked(struct sim_capture *cap, struct sim_stream *s, struct sim_graph **graph)
{
	bool unjoined;

	if (cap->origin != s) {
		sim_log("Capture was not initiated on hStream");
		break_capture(cap);
		return SIM_CAPTURE_UNMATCHED;
	}
	if (cap->mode != SIM_CAPTURE_RELAXED && !pthread_equal(cap->thread, pthread_self()))
		return SIM_CAPTURE_WRONG_THREAD;
	unjoined = capture_end(cap);
	if (cap->status == SIM_CAPTURING && !unjoined) {
		*graph = cap->graph;
		free(cap);
		return 0;
	}
	unjoined = cap->status == SIM_CAPTURING;
	if (!unjoined)
		sim_log("Capture was invalidated by a prior API call");
	if (cap->own_graph)
		sim_graph_free(cap->graph);
	free(cap);
	return unjoined ? SIM_CAPTURE_UNJOINED : SIM_CAPTURE_INVALIDATED;
}

int sim_cuStreamEndCapture(struct sim_stream *stream, struct sim_graph **graph)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_capture *cap;
	int code = SIM_ILLEGAL_STATE;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!graph)
		return SIM_INVALID_VALUE;
	*graph = NULL;
	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	if (cap)
		code = end_locked(cap, s, graph);
	else
		sim_log("Stream is not actively capturing");
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

static int info(struct sim_stream *stream, int *status, uint64_t *id, struct sim_graph **graph)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_capture *cap;
	int code;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!status)
		return SIM_INVALID_VALUE;
	code = sim_capture_legacy(s, false);
	if (code)
		return code;
	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	*status = cap ? (int)cap->status : SIM_NOT_CAPTURING;
	if (id && cap)
		*id = cap->id;
	if (graph)
		*graph = cap ? cap->graph : NULL;
	pthread_mutex_unlock(&sim_capture_lock);
	return 0;
}

int sim_cuStreamIsCapturing(struct sim_stream *stream, int *status)
{
	return info(stream, status, NULL, NULL);
}

int sim_cuStreamGetCaptureInfo(struct sim_stream *stream, int *status, uint64_t *id)
{
	return info(stream, status, id, NULL);
}

int sim_cuStreamGetCaptureInfo_v2(struct sim_stream *stream, int *status, uint64_t *id,
				  struct sim_graph **graph, const void ***dependencies,
				  size_t *count)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	bool capturing = s && atomic_load(&s->capture);

	/* valid until the next call on the stream, as documented */
	if (dependencies)
		*dependencies = capturing ? (const void **)s->deps.node : NULL;
	if (count)
		*count = capturing ? s->deps.count : 0;
	return info(stream, status, id, graph);
}

int sim_cuStreamGetCaptureInfo_v3(struct sim_stream *stream, int *status, uint64_t *id,
				  struct sim_graph **graph, const void ***dependencies,
				  const void **data, size_t *count)
{
	if (data)
		*data = NULL;
	return sim_cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

int sim_cuStreamUpdateCaptureDependencies(struct sim_stream *stream, void **dependencies, size_t count, unsigned int flags)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_capture *cap;
	int code = 0;

	if (!s)
		return SIM_INVALID_HANDLE;
	if (flags > 1)			/* 0: add them, 1: set them */
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	if (!cap)
		code = SIM_ILLEGAL_STATE;
	else if (!deps_ok(cap->graph, dependencies, count))
		code = SIM_INVALID_VALUE;
	else
		deps_set(s, dependencies, count, flags == 0);
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

int sim_cuStreamUpdateCaptureDependencies_v2(struct sim_stream *stream, void **dependencies, const void *data,
					     size_t count, unsigned int flags)
{
	(void)data;
	return sim_cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

int sim_cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = (int)sim_tls.capture_mode;

	if (!mode || *mode < SIM_CAPTURE_GLOBAL || *mode > SIM_CAPTURE_RELAXED)
		return SIM_INVALID_VALUE;
	sim_tls.capture_mode = (enum sim_capture_mode) * mode;
	*mode = old;
	return 0;
}
