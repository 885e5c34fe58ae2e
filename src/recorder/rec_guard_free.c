/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: when what was freed is unmapped.
 *
 * Unmapping must not overtake the work that uses the memory, and must not stop the program either. So frees are
 * collected in batches; a batch is closed with an event in each stream that used its members, and is unmapped once its
 * events have happened. Until then a kernel could still use what was freed and nobody would notice: so the parameters
 * of each launch are compared with what waits to be unmapped, and if there is a match the batch is waited for.
 * A thread of ours (rec_guard_hand.c) asks the events and unmaps, if there can be one.
 */
#include <string.h>

#include "rec_guard_own.h"

#define BATCH		32u
#define BATCHES		256u			/* closed ones, per device */
#define BATCH_STREAMS	8u
#define NOT_READY	600

struct batch {
	uint32_t first, n;		/* members, chained by `next` */
	uint64_t bytes, number;
	void *event[BATCH_STREAMS];
	uint32_t n_events;
	bool all;			/* too many streams: wait for the context */
};

static struct queue {
	struct batch open, closed[BATCHES];
	uint32_t head, tail;		/* of closed */
} queues[CW_MAX_DEVICES];
static _Atomic uint32_t pending;	/* freed and still mapped */
static _Atomic uint64_t closed, finished;	/* numbers of batches */

void free_start(void)
{
	memset(&queues, 0, sizeof(queues));
	atomic_store(&pending, 0);
	atomic_store(&closed, 0);
	atomic_store(&finished, 0);
}

uint64_t free_closed(void)
{
	return atomic_load(&closed);
}

uint64_t free_finished(void)
{
	return atomic_load(&finished);
}

void free_add(uint32_t i)
{
	struct guarded *r = record(i);
	struct batch *b = &queues[r->device].open;

	r->state = GUARD_FREED;
	r->next = b->first;
	b->first = i;
	b->n++;
	b->bytes += r->len;
	atomic_fetch_add(&pending, 1);
}

bool guard_pending(void)
{
	return atomic_load_explicit(&pending, memory_order_relaxed) != 0;
}

static void batch_add_stream(uint64_t *streams, uint32_t *n, uint64_t stream)
{
	for (uint32_t i = 0; i < *n; i++)
		if (streams[i] == stream)
			return;
	if (*n <= BATCH_STREAMS)
		streams[(*n)++] = stream;
}

/* The streams of a batch; more than BATCH_STREAMS: too many. */
static uint32_t batch_streams(const struct batch *b, uint64_t *streams)
{
	uint32_t n = 0;

	for (uint32_t i = b->first; i; i = record(i)->next) {
		const struct guarded *r = record(i);

		if (r->n_streams > GUARD_STREAMS)
			return BATCH_STREAMS + 1;
		for (uint32_t k = 0; k < r->n_streams; k++)
			batch_add_stream(streams, &n, r->stream[k]);
	}
	return n;
}

/* An event there would become part of the graph. */
static bool is_captured(uint64_t stream)
{
	int status = 0;

	return drv.cuStreamIsCapturing && drv.cuStreamIsCapturing((void *)stream, &status) == 0 && status;
}

static void batch_close(struct batch *b)
{
	CUresult (*create)(void **, unsigned) = door(ENTRY_cuEventCreate);
	CUresult (*mark)(void *, uint64_t) = door(ENTRY_cuEventRecord);
	uint64_t streams[BATCH_STREAMS + 1];
	uint32_t n = batch_streams(b, streams);

	b->number = atomic_fetch_add(&closed, 1) + 1;
	b->all = n > BATCH_STREAMS || !create || !mark;
	for (uint32_t i = 0; i < n && !b->all; i++) {
		if (is_captured(streams[i]) || create(&b->event[b->n_events], 2) != 0) {	/* no timing */
			b->all = true;
			break;
		}
		b->n_events++;
		/* a stream that is gone has no work left */
		mark(b->event[b->n_events - 1], streams[i]);
	}
}

static bool batch_done(struct batch *b, bool wait)
{
	CUresult (*ask)(void *) = door(ENTRY_cuEventQuery), (*sync)(void *) = door(ENTRY_cuEventSynchronize);
	CUresult (*all)(void) = door(ENTRY_cuCtxSynchronize), code = 0;

	for (uint32_t i = 0; i < b->n_events && !b->all && !code; i++) {
		code = wait ? sync(b->event[i]) : ask(b->event[i]);
		b->all = code && code != NOT_READY;	/* an event that cannot be asked would be waited for forever */
	}
	return b->all ? wait && all && all() == 0 : !code;
}

static bool batch_check(const struct batch *b)
{
	struct guarded copy[BATCH];
	uint32_t n = 0;

	for (uint32_t i = b->first; i; i = record(i)->next) {
		copy[n++] = *record(i);
		if (n < BATCH && record(i)->next)
			continue;
		if (!guard_check(copy, n))
			return false;
		n = 0;
	}
	return true;
}

/* All work on its members has ended: check what is behind them, unmap them. False: a look at one of them may still be under way. */
static bool batch_finish(struct batch *b)
{
	CUresult (*destroy)(void *) = door(ENTRY_cuEventDestroy_v2);
	uint32_t next;

	if (!batch_check(b))
		return false;
	for (uint32_t i = 0; i < b->n_events; i++)
		destroy(b->event[i]);
	for (uint32_t i = b->first; i; i = record(i)->next)
		pages_unmap(record(i));
	if (!guard_hold())
		return true;
	for (uint32_t i = b->first; i; i = next) {
		next = record(i)->next;
		range_drop(i);
		atomic_fetch_sub(&pending, 1);
	}
	guard_let_go();
	return true;
}

/* The oldest closed batch, if it is done. `wait`: when it is done. False: there is none. */
static bool batch_step(int device, bool wait)
{
	struct queue *d = &queues[device];
	struct visit entered;
	struct batch b;
	bool done;

	if (!guard_hold())
		return false;
	if (d->head == d->tail) {
		guard_let_go();
		return false;
	}
	b = d->closed[d->head % BATCHES];
	d->head++;
	guard_let_go();
	entered = device_enter(device);
	done = batch_done(&b, wait) && batch_finish(&b);
	if (done) {
		atomic_store(&finished, b.number);
		hand_ring();	/* memory can be mapped again */
	}
	device_leave(entered);
	if (done)
		return true;
	if (!guard_hold())
		return false;
	d->head--;		/* back to its place: nobody else takes one while the head is ours to move */
	d->closed[d->head % BATCHES] = b;
	guard_let_go();
	return false;
}

/* One thread at a time empties the queue: batch_step() puts back what is not done. */
static struct spin step_lock;
LOCK_LISTED(guard_step, step_lock);

static bool step_hold(void)
{
	return spin_once(&step_lock, rec_self ? rec_self->tid : SPIN_STRANGER);
}

static void batches_step(int device, bool wait)
{
	if (!(wait ? guard_wait(&step_lock) : step_hold()))
		return;
	while (batch_step(device, wait))
		;
	spin_done(&step_lock);
}

/* Closes the open batch if it is large enough, or has anything in it at all. */
static void open_batch_close(int device, bool any)
{
	struct queue *d = &queues[device];
	struct batch b = {0};
	struct visit entered;

	if (atomic_load_explicit(&rec.captures, memory_order_relaxed) || !guard_hold())
		return;
	if (d->open.n && (any || d->open.n >= BATCH || d->open.bytes > device_known(device)->total / 32) &&
	    d->tail - d->head < BATCHES - 1) {
		b = d->open;
		d->open = (struct batch){0};
	}
	guard_let_go();
	if (!b.n)
		return;
	entered = device_enter(device);
	batch_close(&b);
	device_leave(entered);
	if (!guard_hold())
		return;
	d->closed[d->tail++ % BATCHES] = b;
	guard_let_go();
	hand_ring();
}

void free_step(int device)
{
	if (atomic_load_explicit(&rec.captures, memory_order_relaxed) || failed_before())
		return;
	open_batch_close(device, false);
	if (queues[device].tail - queues[device].head > BATCHES / 2)
		batches_step(device, true);
	else if (!hand_works())
		batches_step(device, false);
}

bool free_one(int device)
{
	bool did;

	if (!step_hold())
		return false;
	did = batch_step(device, false);
	spin_done(&step_lock);
	return did;
}

bool free_waits(void)
{
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		if (queues[i].tail != queues[i].head)
			return true;
	return false;
}

void guard_flush(bool give_back)
{
	if (failed_before() || atomic_load_explicit(&rec.captures, memory_order_relaxed))
		return;
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		if (device_known(i)) {
			open_batch_close(i, true);
			batches_step(i, true);
		}
	if (give_back)
		pages_release();
}
