/* SPDX-License-Identifier: Apache-2.0
 * Stream capture, internals: work goes into a graph, and some calls are illegal meanwhile. */
#include "sim/cuda/sim_capture.h"

pthread_mutex_t sim_capture_lock = PTHREAD_MUTEX_INITIALIZER;
struct sim_capture *sim_capture_list;

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
	pthread_mutex_lock(&sim_capture_lock);
	for (struct sim_capture *cap = sim_capture_list; cap; cap = cap->next) {
		if (!unsafe_for(cap, sim_tls.capture_mode))
			continue;
		if (!code)
			sim_log("API call conflicts with a stream capture sequence initiated from "
				"%s thread",
				pthread_equal(cap->thread, pthread_self()) ? "the calling" : "another");
		break_capture(cap);
		code = SIM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

/* The legacy stream would have to wait for a capturing stream, which is impossible. */
int sim_capture_legacy(struct sim_stream *s, bool breaks)
{
	int code = 0;

	if (!s->legacy || !atomic_load(&sim.captures))
		return 0;
	pthread_mutex_lock(&sim_capture_lock);
	for (struct sim_capture *cap = sim_capture_list; cap; cap = cap->next) {
		if (cap->ctx != s->ctx || (cap->origin->flags & 1))
			continue;
		if (!code)
			sim_log("Call cannot be made against CU_STREAM_LEGACY while a blocking "
				"stream in the same context is capturing");
		if (breaks)
			break_capture(cap);
		code = SIM_CAPTURE_IMPLICIT;
	}
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

int sim_capture_check_legacy(struct sim_stream *s)
{
	return sim_capture_legacy(s, true);
}

/* Waiting for a context is illegal while any of its streams is capturing, whatever the mode. */
int sim_capture_check_context(struct sim_ctx *ctx)
{
	int code = 0;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return 0;
	pthread_mutex_lock(&sim_capture_lock);
	for (struct sim_capture *cap = sim_capture_list; cap; cap = cap->next) {
		if (cap->ctx != ctx)
			continue;
		break_capture(cap);
		code = SIM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

void sim_capture_spoil(struct sim_stream *s)
{
	struct sim_capture *cap;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return;
	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	if (cap)
		break_capture(cap);
	pthread_mutex_unlock(&sim_capture_lock);
}

/* For waiting on or querying a stream. */
int sim_capture_refuse(struct sim_stream *s)
{
	struct sim_capture *cap;
	int code = 0;

	if (SIM_LIKELY(!atomic_load_explicit(&sim.captures, memory_order_acquire)))
		return 0;
	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	if (cap) {
		code = cap->status == SIM_CAPTURE_BROKEN ? SIM_CAPTURE_INVALIDATED : SIM_CAPTURE_UNSUPPORTED;
		break_capture(cap);
	}
	pthread_mutex_unlock(&sim_capture_lock);
	if (!code)
		code = sim_capture_legacy(s, true);
	return code ? code : sim_capture_check_unsafe();
}

static int add_locked(struct sim_capture *cap, struct sim_stream *s, const struct sim_op *op)
{
	int code;

	if (cap->status == SIM_CAPTURE_BROKEN)
		return SIM_CAPTURE_INVALIDATED;
	code = sim_graph_add(cap->graph, op, &s->deps);
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

	pthread_mutex_lock(&sim_capture_lock);
	cap = atomic_load(&s->capture);
	if (cap)
		code = add_locked(cap, s, op);
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

int sim_capture_record(struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *cap;
	int code = 0;

	pthread_mutex_lock(&sim_capture_lock);
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
		e->deps = s->deps;
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}

static struct sim_capture *capture_by_id(uint64_t id)
{
	struct sim_capture *cap = sim_capture_list;

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
		s->deps.count = 0;
		s->unjoined = false;
	}
	for (unsigned int i = 0; i < e->deps.count; i++)
		sim_deps_add(&s->deps, e->deps.node[i]);
	/* If the event is the last work of its stream, that stream is now joined. The waiting
	 * stream takes over its work, and must be joined in turn unless the capture began there. */
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
	pthread_mutex_lock(&sim_capture_lock);
	cap = capture_by_id(id);
	if (cap)
		break_capture(cap);
	pthread_mutex_unlock(&sim_capture_lock);
	sim_log("%s", cap ? "Recorded event not allowed on stream" : "Event is not valid. This can "
			    "be related to a graph capture that is no longer running");
	return cap ? SIM_CAPTURED_EVENT : SIM_INVALID_VALUE;
}

/* cuStreamWaitEvent: a captured event pulls the stream into its capture. */
int sim_capture_join(struct sim_stream *s, struct sim_event *e, bool *handled)
{
	int code = 0;

	pthread_mutex_lock(&sim_capture_lock);
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
	pthread_mutex_unlock(&sim_capture_lock);
	return code;
}
