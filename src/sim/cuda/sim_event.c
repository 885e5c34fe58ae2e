/* SPDX-License-Identifier: Apache-2.0
 * The exported functions of streams and events. */
#include "sim/cuda/sim.h"

enum { EXTERNAL = 1 };		/* flag of a record and of a wait: the event is not the capture's own */

int sim_cuStreamCreateWithPriority(struct sim_stream **stream, unsigned int flags, int priority)
{
	if (!stream || flags > 1)
		return SIM_INVALID_VALUE;
	*stream = sim_stream_new(sim_ctx_current(), flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
	return *stream ? 0 : SIM_OUT_OF_MEMORY;
}

int sim_cuStreamCreate(struct sim_stream **stream, unsigned int flags)
{
	return sim_cuStreamCreateWithPriority(stream, flags, 0);
}

int sim_cuStreamDestroy_v2(struct sim_stream *stream)
{
	struct sim_stream *s = sim_pool_get(&sim.streams, stream);

	if (!s || s->legacy)
		return SIM_INVALID_HANDLE;
	sim_capture_abandon(s);
	sim_stream_drop(s);
	return 0;
}

int sim_cuStreamGetFlags(struct sim_stream *stream, unsigned int *flags)
{
	struct sim_stream *s = sim_stream_resolve(stream);

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!flags)
		return SIM_INVALID_VALUE;
	*flags = s->flags;
	return 0;
}

int sim_cuStreamGetPriority(struct sim_stream *stream, int *priority)
{
	struct sim_stream *s = sim_stream_resolve(stream);

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!priority)
		return SIM_INVALID_VALUE;
	*priority = s->priority;
	return 0;
}

int sim_cuStreamGetCtx(struct sim_stream *stream, struct sim_ctx **context)
{
	struct sim_stream *s = sim_stream_resolve(stream);

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!context)
		return SIM_INVALID_VALUE;
	*context = s->ctx;
	return 0;
}

/* The legacy stream's work includes whatever it would wait for. */
static void drain(struct sim_stream *s)
{
	if (s->legacy && atomic_load(&s->ctx->blocking))
		sim_ctx_drain(s->ctx);
	else
		sim_stream_wait(s, atomic_load(&s->tail));
}

int sim_cuStreamSynchronize(struct sim_stream *stream)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	int code;

	if (!s)
		return SIM_INVALID_HANDLE;
	code = sim_capture_refuse(s);
	if (code)
		return code;
	drain(s);
	sim_mempools_trim(&sim.devices[s->ctx->device]);
	return atomic_load(&s->ctx->sticky);
}

int sim_cuStreamQuery(struct sim_stream *stream)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	int code;

	if (!s)
		return SIM_INVALID_HANDLE;
	code = sim_capture_refuse(s);
	if (code)
		return code;
	if (!sim_stream_idle(s))
		return SIM_NOT_READY;
	return atomic_load(&s->ctx->sticky);
}

int sim_cuEventCreate(struct sim_event **event, unsigned int flags)
{
	struct sim_event *e;

	if (!event || flags > 7 || (flags & 6) == 4)
		return SIM_INVALID_VALUE;
	e = sim_pool_new(&sim.events);
	if (!e)
		return SIM_OUT_OF_MEMORY;
	if (!e->made) {
		pthread_mutex_init(&e->lock, NULL);
		e->made = true;
	}
	pthread_mutex_lock(&e->lock);
	e->flags = flags;
	e->recorded = false;
	e->stream = NULL;
	e->capture_id = 0;
	e->turn++;		/* ignores a late record by the previous owner */
	pthread_mutex_unlock(&e->lock);
	atomic_store(&e->head.alive, 1);
	*event = e;
	return 0;
}

int sim_cuEventDestroy_v2(struct sim_event *event)
{
	struct sim_event *e = sim_pool_get(&sim.events, event);

	if (!e)
		return SIM_INVALID_HANDLE;
	sim_pool_drop(&sim.events, e);
	return 0;
}

int sim_cuEventRecord(struct sim_event *event, struct sim_stream *stream)
{
	struct sim_event *e = sim_pool_get(&sim.events, event);
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_EVENT};
	uint64_t seq = 0;
	int code;

	if (!e || !s)
		return SIM_INVALID_HANDLE;
	if (atomic_load(&sim.captures)) {
		code = sim_capture_check_legacy(s);
		if (code)
			return code;
		if (atomic_load(&s->capture))
			return sim_capture_record(s, e);
	}
	pthread_mutex_lock(&e->lock);
	op.u.event.event = e;
	op.u.event.turn = ++e->turn;
	e->capture_id = 0;
	pthread_mutex_unlock(&e->lock);
	code = sim_work_submit(s, &op, &seq);
	pthread_mutex_lock(&e->lock);
	if (!code && e->turn == op.u.event.turn) {
		e->recorded = true;
		e->stream = s;
		e->seq = seq;
	}
	pthread_mutex_unlock(&e->lock);
	return code;
}

/* In a capture, an event from outside: each launch of the graph records it, or waits for it. The capture itself does not. */
static int add_external(enum sim_op_kind kind, struct sim_event *e, struct sim_stream *s)
{
	struct sim_op op = {.kind = kind, .u.event.event = e};

	return sim_work_submit(s, &op, NULL);
}

int sim_cuEventRecordWithFlags(struct sim_event *event, struct sim_stream *stream,
			       unsigned int flags)
{
	struct sim_event *e = sim_pool_get(&sim.events, event);
	struct sim_stream *s = sim_stream_resolve(stream);

	if (flags > EXTERNAL)
		return SIM_INVALID_VALUE;
	if (e && s && flags == EXTERNAL && atomic_load(&s->capture))
		return add_external(SIM_OP_RECORD, e, s);
	return sim_cuEventRecord(event, stream);
}

void sim_event_mark(struct sim_event *event, struct sim_stream *s, uint64_t seq)
{
	struct sim_event *e = sim_pool_get(&sim.events, event);

	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->turn++;
	e->recorded = true;
	e->capture_id = 0;
	e->stream = s;
	e->seq = seq;
	pthread_mutex_unlock(&e->lock);
}

/* The work that the event marks; NULL stream: none. */
static void event_place(struct sim_event *e, struct sim_stream **s, uint64_t *seq)
{
	pthread_mutex_lock(&e->lock);
	*s = e->recorded && !e->capture_id ? e->stream : NULL;
	*seq = e->seq;
	pthread_mutex_unlock(&e->lock);
}

/* The work that an event marks, if it can be waited for; an error code otherwise. */
static int event_work(struct sim_event *event, struct sim_stream **s, uint64_t *seq)
{
	struct sim_event *e = sim_pool_get(&sim.events, event);
	int code;

	if (!event)
		sim_log("Event handle is NULL");
	if (!e)
		return SIM_INVALID_HANDLE;
	code = sim_capture_event(e);
	if (!code)
		event_place(e, s, seq);
	return code;
}

int sim_cuEventQuery(struct sim_event *event)
{
	struct sim_stream *s;
	uint64_t seq;
	int code = event_work(event, &s, &seq);

	if (code)
		return code;
	if (s && !sim_stream_done(s, seq))
		return SIM_NOT_READY;
	return atomic_load(&sim_ctx_current()->sticky);
}

int sim_cuEventSynchronize(struct sim_event *event)
{
	struct sim_stream *s;
	uint64_t seq;
	int code = event_work(event, &s, &seq);

	if (code)
		return code;
	if (s)
		sim_stream_wait(s, seq);
	sim_mempools_trim(sim_device_current());
	return atomic_load(&sim_ctx_current()->sticky);
}

int sim_event_await(struct sim_event *event, struct sim_stream *s)
{
	struct sim_event *e = sim_pool_get(&sim.events, event);
	struct sim_op op = {.kind = SIM_OP_WAIT};
	struct sim_stream *other = NULL;

	if (e)
		event_place(e, &other, &op.u.wait.seq);
	if (!other || other == s || sim_stream_done(other, op.u.wait.seq))
		return 0;
	op.u.wait.stream = other;
	return sim_work_submit(s, &op, NULL);
}

int sim_cuStreamWaitEvent(struct sim_stream *stream, struct sim_event *event, unsigned int flags)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_event *e = sim_pool_get(&sim.events, event);
	bool handled = false;
	int code;

	if (!s || !e)
		return SIM_INVALID_HANDLE;
	if (flags > EXTERNAL)
		return SIM_INVALID_VALUE;
	if (flags == EXTERNAL && atomic_load(&s->capture))
		return add_external(SIM_OP_AWAIT, e, s);
	code = sim_capture_join(s, e, &handled);
	return code || handled ? code : sim_event_await(e, s);
}

static int event_time(struct sim_event *handle, uint64_t *ns)
{
	struct sim_event *e = sim_pool_get(&sim.events, handle);
	struct sim_stream *s;
	uint64_t seq;

	if (!e)
		return SIM_INVALID_HANDLE;
	event_place(e, &s, &seq);
	if (!s || (e->flags & 2))
		return SIM_INVALID_HANDLE;
	if (!sim_stream_done(s, seq))
		return SIM_NOT_READY;
	pthread_mutex_lock(&e->lock);
	*ns = e->time_ns;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

int sim_cuEventElapsedTime(float *ms, struct sim_event *start, struct sim_event *end)
{
	uint64_t from = 0, to = 0;
	int code;

	if (!ms)
		return SIM_INVALID_VALUE;
	code = event_time(start, &from);
	if (!code)
		code = event_time(end, &to);
	if (!code)
		*ms = (float)((double)((int64_t)(to - from)) / 1e6);
	return code;
}

int sim_cuEventElapsedTime_v2(float *ms, struct sim_event *start, struct sim_event *end)
{
	return sim_cuEventElapsedTime(ms, start, end);
}
