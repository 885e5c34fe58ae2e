/* SPDX-License-Identifier: Apache-2.0
 * Stream capture: work goes into a graph instead of a queue, and some calls are illegal meanwhile. */
#include "sim/sim.h"

#include <stdlib.h>

struct sim_capture {
	struct sim_capture *next;	/* all that are active */
	uint64_t id;
	enum sim_capture_mode mode;
	enum sim_capture_status status;
	pthread_t thread;
	struct sim_ctx *ctx;
	struct sim_stream *origin;
	struct sim_graph *graph;
	bool own_graph;			/* made by us, so ours to free when the capture fails */
	uint64_t nodes;
};

static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_capture *captures;
static uint64_t next_id = 1;

static void break_capture(struct sim_capture *cap)
{
	cap->status = SIM_CAPTURE_BROKEN;
}

/* ---- calls that are illegal while something captures ---------------------------------------- */

static bool unsafe_for(const struct sim_capture *cap, enum sim_capture_mode mine)
{
	bool same_thread = pthread_equal(cap->thread, pthread_self());

	if (mine == SIM_CAPTURE_RELAXED || cap->mode == SIM_CAPTURE_RELAXED)
		return false;
	if (same_thread)
		return true;
	return mine == SIM_CAPTURE_GLOBAL && cap->mode == SIM_CAPTURE_GLOBAL;
}

/* For calls like cuMemAlloc: whether they are illegal depends on the mode of each capture. */
int sim_capture_check_unsafe(void)
{
	int code = 0;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return 0;
	pthread_mutex_lock(&capture_lock);
	for (struct sim_capture *cap = captures; cap; cap = cap->next) {
		if (!unsafe_for(cap, sim_tls.capture_mode))
			continue;
		if (!code)
			sim_log("API call conflicts with a stream capture sequence initiated from "
				"%s thread", pthread_equal(cap->thread, pthread_self()) ?
				"the calling" : "another");
		break_capture(cap);
		code = SIM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&capture_lock);
	return code;
}

/* The legacy stream would have to wait for a capturing stream, which cannot be. */
static int check_legacy(struct sim_stream *s, bool breaks)
{
	int code = 0;

	if (!s->legacy || !atomic_load(&sim.captures))
		return 0;
	pthread_mutex_lock(&capture_lock);
	for (struct sim_capture *cap = captures; cap; cap = cap->next) {
		if (cap->ctx != s->ctx || (cap->origin->flags & 1))
			continue;
		if (!code)
			sim_log("Call cannot be made against CU_STREAM_LEGACY while a blocking "
				"stream in the same context is capturing");
		if (breaks)
			break_capture(cap);
		code = SIM_CAPTURE_IMPLICIT;
	}
	pthread_mutex_unlock(&capture_lock);
	return code;
}

int sim_capture_check_legacy(struct sim_stream *s)
{
	return check_legacy(s, true);
}

/* Waiting for a context is illegal while any of its streams captures, whatever the mode. */
int sim_capture_check_context(struct sim_ctx *ctx)
{
	int code = 0;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return 0;
	pthread_mutex_lock(&capture_lock);
	for (struct sim_capture *cap = captures; cap; cap = cap->next) {
		if (cap->ctx != ctx)
			continue;
		break_capture(cap);
		code = SIM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&capture_lock);
	return code;
}

void sim_capture_spoil(struct sim_stream *s)
{
	struct sim_capture *cap;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return;
	pthread_mutex_lock(&capture_lock);
	cap = atomic_load(&s->capture);
	if (cap)
		break_capture(cap);
	pthread_mutex_unlock(&capture_lock);
}

/* For waiting on or asking a stream. */
int sim_capture_refuse(struct sim_stream *s)
{
	struct sim_capture *cap;
	int code = 0;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return 0;
	pthread_mutex_lock(&capture_lock);
	cap = atomic_load(&s->capture);
	if (cap) {
		code = cap->status == SIM_CAPTURE_BROKEN ? SIM_CAPTURE_INVALIDATED :
		       SIM_CAPTURE_UNSUPPORTED;
		break_capture(cap);
	}
	pthread_mutex_unlock(&capture_lock);
	if (!code)
		code = check_legacy(s, true);
	return code ? code : sim_capture_check_unsafe();
}

/* ---- work and events inside a capture ------------------------------------------------------- */

static int add_locked(struct sim_capture *cap, struct sim_stream *s, const struct sim_op *op)
{
	int code;

	if (cap->status == SIM_CAPTURE_BROKEN)
		return SIM_CAPTURE_INVALIDATED;
	code = sim_graph_add(cap->graph, op);
	if (code)
		return code;
	s->capture_node = ++cap->nodes;
	s->unjoined = s != cap->origin;
	return 0;
}

int sim_capture_add(struct sim_stream *s, struct sim_op *op)
{
	struct sim_capture *cap;
	int code = SIM_CAPTURE_INVALIDATED;

	pthread_mutex_lock(&capture_lock);
	cap = atomic_load(&s->capture);
	if (cap)
		code = add_locked(cap, s, op);
	pthread_mutex_unlock(&capture_lock);
	return code;
}

int sim_capture_record(struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *cap;
	int code = 0;

	pthread_mutex_lock(&capture_lock);
	cap = atomic_load(&s->capture);
	if (!cap || cap->status == SIM_CAPTURE_BROKEN)
		code = SIM_CAPTURE_INVALIDATED;
	if (!code) {
		pthread_mutex_lock(&e->lock);
		e->turn++;
		e->recorded = true;
		e->stream = s;
		e->capture_id = cap->id;
		e->capture_node = s->capture_node;
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_unlock(&capture_lock);
	return code;
}

static struct sim_capture *capture_by_id(uint64_t id)
{
	struct sim_capture *cap = captures;

	while (cap && cap->id != id)
		cap = cap->next;
	return cap;
}

static int join_locked(struct sim_capture *cap, struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *own = atomic_load(&s->capture);

	if (!cap) {
		sim_log("Event is not valid. This can be related to a graph capture that is no "
			"longer running");
		return SIM_INVALID_VALUE;
	}
	if (cap->status == SIM_CAPTURE_BROKEN)
		return SIM_CAPTURE_INVALIDATED;
	if (own && own != cap) {
		break_capture(own);
		break_capture(cap);
		return SIM_CAPTURE_MERGE;
	}
	if (s->legacy) {
		sim_log("Call cannot be made against CU_STREAM_LEGACY while a blocking stream in "
			"the same context is capturing");
		break_capture(cap);
		return SIM_CAPTURE_IMPLICIT;
	}
	if (!own) {
		atomic_store(&s->capture, cap);
		atomic_fetch_add(&sim.captures, 1);
		s->capture_node = e->capture_node;
		s->unjoined = false;
	}
	/* The event's stream is joined if the event stands at its end. Who waits takes over its
	 * work, and must be joined in turn unless the capture began there. */
	if (e->stream != s && e->stream->unjoined &&
	    e->capture_node == e->stream->capture_node) {
		e->stream->unjoined = false;
		s->unjoined = s != cap->origin;
	}
	return 0;
}

int sim_capture_event(struct sim_event *e)
{
	struct sim_capture *cap;
	uint64_t id;

	pthread_mutex_lock(&e->lock);
	id = e->capture_id;
	pthread_mutex_unlock(&e->lock);
	if (!id)
		return sim_capture_check_unsafe();
	pthread_mutex_lock(&capture_lock);
	cap = capture_by_id(id);
	if (cap)
		break_capture(cap);
	pthread_mutex_unlock(&capture_lock);
	sim_log("%s", cap ? "Recorded event not allowed on stream" : "Event is not valid. This can "
		"be related to a graph capture that is no longer running");
	return cap ? SIM_CAPTURED_EVENT : SIM_INVALID_VALUE;
}

/* cuStreamWaitEvent: a captured event draws the stream into its capture. */
int sim_capture_join(struct sim_stream *s, struct sim_event *e, bool *handled)
{
	int code = 0;

	pthread_mutex_lock(&capture_lock);
	pthread_mutex_lock(&e->lock);
	if (e->capture_id) {
		*handled = true;
		code = join_locked(capture_by_id(e->capture_id), s, e);
	} else if (atomic_load(&s->capture)) {
		*handled = true;
		if (e->recorded) {
			break_capture(atomic_load(&s->capture));
			code = SIM_CAPTURE_ISOLATION;
		}
	}
	pthread_mutex_unlock(&e->lock);
	pthread_mutex_unlock(&capture_lock);
	return code;
}

/* ---- exported ------------------------------------------------------------------------------- */

static int begin(struct sim_stream *stream, struct sim_graph *graph, int mode)
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
	pthread_mutex_lock(&capture_lock);
	cap->graph = graph ? graph : sim_graph_new();
	cap->own_graph = !graph;
	if (!cap->graph || atomic_load(&s->capture)) {
		pthread_mutex_unlock(&capture_lock);
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
	cap->next = captures;
	captures = cap;
	s->capture_node = 0;
	s->unjoined = false;
	atomic_store(&s->capture, cap);
	atomic_fetch_add(&sim.captures, 1);
	pthread_mutex_unlock(&capture_lock);
	return 0;
}

int sim_cuStreamBeginCapture(struct sim_stream *stream)
{
	return begin(stream, NULL, SIM_CAPTURE_GLOBAL);
}

int sim_cuStreamBeginCapture_v2(struct sim_stream *stream, int mode)
{
	return begin(stream, NULL, mode);
}

int sim_cuStreamBeginCaptureToGraph(struct sim_stream *stream, struct sim_graph *graph,
				    void **dependencies, const void *data, size_t count, int mode)
{
	(void)dependencies, (void)data, (void)count;	/* nodes keep the order of capture */
	if (!sim_pool_get(&sim.graphs, graph))
		return SIM_INVALID_VALUE;
	return begin(stream, graph, mode);
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
	for (struct sim_capture **link = &captures; *link; link = &(*link)->next) {
		if (*link != cap)
			continue;
		*link = cap->next;
		break;
	}
	return release_streams(cap);
}

/* Measured: destroying a capturing stream is no error; its capture is gone. */
void sim_capture_abandon(struct sim_stream *s)
{
	struct sim_capture *cap;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return;
	pthread_mutex_lock(&capture_lock);
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
	pthread_mutex_unlock(&capture_lock);
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
	pthread_mutex_lock(&capture_lock);
	cap = atomic_load(&s->capture);
	if (cap)
		code = end_locked(cap, s, graph);
	else
		sim_log("Stream is not actively capturing");
	pthread_mutex_unlock(&capture_lock);
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
	code = check_legacy(s, false);
	if (code)
		return code;
	pthread_mutex_lock(&capture_lock);
	cap = atomic_load(&s->capture);
	*status = cap ? (int)cap->status : SIM_NOT_CAPTURING;
	if (id && cap)
		*id = cap->id;
	if (graph)
		*graph = cap ? cap->graph : NULL;
	pthread_mutex_unlock(&capture_lock);
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
	if (dependencies)
		*dependencies = NULL;
	if (count)
		*count = 0;
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

int sim_cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = (int)sim_tls.capture_mode;

	if (!mode || *mode < SIM_CAPTURE_GLOBAL || *mode > SIM_CAPTURE_RELAXED)
		return SIM_INVALID_VALUE;
	sim_tls.capture_mode = (enum sim_capture_mode)*mode;
	*mode = old;
	return 0;
}
