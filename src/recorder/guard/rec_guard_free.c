/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: when what was freed is unmapped.
 *
 * Unmapping must not overtake the work that was queued before the free, and must not stop the program either. So frees are
 * collected in batches; a batch is closed with an event in each stream of its members, and is unmapped once its
 * events have happened. Until then a kernel could still use what was freed and nobody would notice: so the parameters
 * of each launch are compared with what waits to be unmapped, and if there is a match the batch is waited for.
 * A thread of ours (rec_guard_hand.c) asks the events and unmaps, if there can be one.
 *
 * Streams that use a tensor without being named to PyTorch (record_stream) are not waited for: its allocator does not, and gives the
 * memory to the next tensor. So that no other stream's work is waited for by chance, members of a batch have the same streams, and
 * one is closed before its stream starts to wait for another one, if its memory could have been given out by then. If it could not,
 * the wait makes up for the use: that is how programs that free a moment too early stay right.
 */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "recorder/guard/rec_guard_own.h"

#define BATCH		32u
#define OPEN		8u			/* with other streams; the last one takes all that find no place */
#define OPEN_NS		500000u			/* then the hand closes it, whatever the program does */
#define BATCHES		256u			/* closed ones, per device */
#define BATCH_STREAMS	8u
#define CLOSING_MOST	20000u			/* waits of 50 us */
#define NOT_READY	600
#define WAIT_SPIN_NS	1000000u	/* most waits end within it; then sleeping costs nothing */

struct batch {
	uint32_t first, n;		/* members, chained by `next` */
	uint64_t bytes, number;
	uint64_t since;			/* the first member's free */
	bool reused;			/* PyTorch could have given its memory to another tensor */
	void *event[BATCH_STREAMS];
	uint32_t n_events;
	bool all;			/* too many streams: wait for the context */
};

static struct queue {
	struct batch open[OPEN], closed[BATCHES];
	uint32_t closing;		/* threads that are about to add one */
	uint32_t n;			/* of closed, the oldest first; only who has the step lock takes one away */
	uint64_t given_up;		/* number of the last one whose wait timed out */
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

static bool same_streams(const struct guarded *a, const struct guarded *b)
{
	if (a->n_streams != b->n_streams || a->n_streams > GUARD_STREAMS)
		return false;
	return memcmp(a->stream, b->stream, a->n_streams * sizeof(a->stream[0])) == 0;
}

static struct batch *open_for(struct queue *d, const struct guarded *r)
{
	uint32_t i = 0;

	while (i < OPEN - 1 && d->open[i].n && !same_streams(record(d->open[i].first), r))
		i++;
	return r->n_streams > GUARD_STREAMS ? &d->open[OPEN - 1] : &d->open[i];
}

bool free_add(uint32_t i)
{
	struct guarded *r = record(i);
	struct batch *b = open_for(&queues[r->device], r);
	bool first = !b->n;

	if (first)
		b->since = rec_mono_ns();
	r->state = GUARD_FREED;
	r->next = b->first;
	b->first = i;
	b->n++;
	b->bytes += r->len;
	atomic_fetch_add(&pending, 1);
	return first;
}

static bool is_of(const struct batch *b, uint64_t stream)
{
	const struct guarded *r = b->n ? record(b->first) : NULL;

	for (uint32_t i = 0; r && r->n_streams <= GUARD_STREAMS && i < r->n_streams; i++)
		if (r->stream[i] == stream)
			return true;
	return false;
}

void free_reused(int device, uint64_t stream)
{
	for (uint32_t i = 0; i < OPEN; i++)
		if (is_of(&queues[device].open[i], stream))
			queues[device].open[i].reused = true;
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
		if (mark(b->event[b->n_events - 1], streams[i]) != 0)
			b->all = true;
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
	b->first = b->n_events = 0;
	guard_let_go();
	return true;
}

static void batch_remove(struct queue *d, uint32_t at)
{
	if (!guard_hold())
		return;
	memmove(&d->closed[at], &d->closed[at + 1], (d->n - at - 1) * sizeof(d->closed[0]));
	__atomic_store_n(&d->n, d->n - 1, __ATOMIC_RELEASE);
	guard_let_go();
}

/* The closed batch at this place, if it is done. One that waits for a slow stream does not hold up the others. */
static bool batch_step(int device, uint32_t at, bool wait)
{
	struct visit entered = device_enter(device);
	struct batch *b = &queues[device].closed[at];
	bool done = batch_done(b, wait) && batch_finish(b);
	uint64_t number = b->number;

	device_leave(entered);
	if (!done)
		return false;
	batch_remove(&queues[device], at);
	if (number > atomic_load(&finished))
		atomic_store(&finished, number);
	hand_ring();		/* memory can be mapped again */
	return true;
}

/* One thread at a time takes batches away. */
static struct spin step_lock;
LOCK_LISTED(guard_step, step_lock);

static bool step_hold(void)
{
	return spin_once(&step_lock, rec_self ? rec_self->tid : SPIN_STRANGER);
}

/* Unmaps what can be of the batches up to this number, `most` of them. The number of the newest that cannot be; 0 = none. */
static uint64_t batches_step(int device, uint64_t last, bool wait, uint32_t most)
{
	struct queue *d = &queues[device];
	uint64_t newest = 0;
	uint32_t at = 0;

	while (at < __atomic_load_n(&d->n, __ATOMIC_ACQUIRE) && most) {
		uint64_t number = d->closed[at].number;

		if (number <= last && batch_step(device, at, wait && d->closed[at].all)) {
			most--;
			continue;
		}
		if (number <= last && number > newest)
			newest = number;
		at++;
	}
	return newest;
}

/* The same, until none is left. What a stream waits for may be what this thread does next: a launch, a word in memory. So the
 * wait has a limit, and what it did not see the end of is not waited for again. */
static bool batches_wait(int device)
{
	struct queue *d = &queues[device];
	uint64_t last = free_closed(), began = rec_mono_ns(), newest, waited;
	struct timespec moment = {.tv_nsec = 50000};

	for (;;) {
		newest = UINT64_MAX;
		if (guard_wait(&step_lock)) {
			newest = batches_step(device, last, true, UINT32_MAX);
			spin_done(&step_lock);
			if (!newest && !__atomic_load_n(&d->closing, __ATOMIC_ACQUIRE))
				return true;
			if (!newest)
				newest = UINT64_MAX;
		} else if (rec_self && atomic_load(&step_lock.holder) == rec_self->tid) {
			return false;
		}
		waited = rec_mono_ns() - began;
		if (newest <= __atomic_load_n(&d->given_up, __ATOMIC_RELAXED) || failed_before() ||
		    atomic_load(&rec.captures))
			return false;
		if (waited > GUARD_WAIT_NS) {
			if (newest != UINT64_MAX)
				__atomic_store_n(&d->given_up, newest, __ATOMIC_RELAXED);
			return false;
		}
		if (waited < WAIT_SPIN_NS)
			sched_yield();
		else
			nanosleep(&moment, NULL);
	}
}

static bool is_full(const struct batch *b, int device)
{
	return b->n >= BATCH || b->bytes > device_known(device)->total / 32;
}

/* Closes an open batch that is to be closed. False: there is none. */
static bool open_batch_close(int device, bool (*wanted)(const struct batch *b, int device, uint64_t with), uint64_t with)
{
	struct queue *d = &queues[device];
	struct batch b = {0};
	struct visit entered;

	if (atomic_load_explicit(&rec.captures, memory_order_relaxed) || !guard_hold())
		return false;
	for (uint32_t i = 0; i < OPEN && !b.n; i++)
		if (d->open[i].n && wanted(&d->open[i], device, with) && d->n + d->closing < BATCHES) {
			b = d->open[i];
			d->open[i] = (struct batch){0};
			__atomic_store_n(&d->closing, d->closing + 1, __ATOMIC_RELAXED);
		}
	guard_let_go();
	if (!b.n)
		return false;
	entered = device_enter(device);
	batch_close(&b);
	device_leave(entered);
	if (!guard_hold())
		return false;
	d->closed[d->n] = b;
	__atomic_store_n(&d->n, d->n + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&d->closing, d->closing - 1, __ATOMIC_RELEASE);
	guard_let_go();
	hand_ring();
	return true;
}

static bool any_batch(const struct batch *b, int device, uint64_t with)
{
	(void)b;
	(void)device;
	(void)with;
	return true;
}

static bool full_batch(const struct batch *b, int device, uint64_t with)
{
	(void)with;
	return is_full(b, device);
}

static bool old_batch(const struct batch *b, int device, uint64_t now)
{
	(void)device;
	return b->since + OPEN_NS <= now;
}

static bool reused_batch(const struct batch *b, int device, uint64_t stream)
{
	(void)device;
	return b->reused && is_of(b, stream);
}

void free_close(void)
{
	struct timespec moment = {.tv_nsec = 50000};

	for (int i = 0; i < CW_MAX_DEVICES; i++) {
		while (device_known(i) && open_batch_close(i, any_batch, 0))
			;
		for (uint32_t n = 0; n < CLOSING_MOST && __atomic_load_n(&queues[i].closing, __ATOMIC_ACQUIRE); n++)
			nanosleep(&moment, NULL);	/* the hand is recording an event there */
	}
}

/* Nothing is lost if there are many closed ones: a later one waits for no less. */
bool free_old(int device)
{
	return queues[device].n < BATCHES / 4 && open_batch_close(device, old_batch, rec_mono_ns());
}

void guard_stream_waits(uint64_t stream)
{
	if (!guard_pending())
		return;
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		while (device_known(i) && open_batch_close(i, reused_batch, stream))
			;
}

void free_step(int device)
{
	if (atomic_load_explicit(&rec.captures, memory_order_relaxed) || failed_before())
		return;
	open_batch_close(device, full_batch, 0);
	if (__atomic_load_n(&queues[device].n, __ATOMIC_RELAXED) > BATCHES / 2)
		batches_wait(device);
	else if (!hand_works() && step_hold()) {
		batches_step(device, UINT64_MAX, false, UINT32_MAX);
		spin_done(&step_lock);
	}
}

bool free_one(int device)
{
	uint32_t before = __atomic_load_n(&queues[device].n, __ATOMIC_RELAXED);
	bool did;

	if (!before || !step_hold())
		return false;
	before = __atomic_load_n(&queues[device].n, __ATOMIC_RELAXED);
	batches_step(device, free_closed(), false, 1);
	did = __atomic_load_n(&queues[device].n, __ATOMIC_RELAXED) < before;
	spin_done(&step_lock);
	return did;
}

static bool has_open(const struct queue *d)
{
	for (uint32_t i = 0; i < OPEN; i++)
		if (__atomic_load_n(&d->open[i].n, __ATOMIC_RELAXED))
			return true;
	return false;
}

bool free_waits(void)
{
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		if (__atomic_load_n(&queues[i].n, __ATOMIC_RELAXED) || has_open(&queues[i]))
			return true;
	return false;
}

bool guard_flush(bool give_back)
{
	bool all = true;

	if (failed_before() || atomic_load_explicit(&rec.captures, memory_order_relaxed))
		return false;
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		if (device_known(i)) {
			while (open_batch_close(i, any_batch, 0))
				;
			all &= batches_wait(i);
		}
	if (give_back)
		pages_release();
	return all;
}
