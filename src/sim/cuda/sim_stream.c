/* SPDX-License-Identifier: Apache-2.0
 * Streams are queues: each has one worker thread, started with its first real work.
 *
 * A stream numbers its work: `tail` counts what was accepted, `done` what is finished, and "wait
 * for work n" means "until done reaches n". Numbering continues when a handle is reused, so that
 * no thread waits for the wrong owner's work. */
#include "sim/cuda/sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SPINS = 500 };		/* before a thread sleeps: a few microseconds */

uint64_t sim_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool sim_ctx_stopped(const struct sim_ctx *ctx)
{
	return SIM_UNLIKELY(atomic_load_explicit(&ctx->stopped, memory_order_acquire));
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

bool sim_stream_done(struct sim_stream *s, uint64_t seq)
{
	return atomic_load_explicit(&s->done, memory_order_acquire) >= seq;
}

bool sim_stream_idle(struct sim_stream *s)
{
	return sim_stream_done(s, atomic_load_explicit(&s->tail, memory_order_acquire));
}

void sim_stream_wait(struct sim_stream *s, uint64_t seq)
{
	for (int i = 0; i < SPINS; i++) {
		if (sim_stream_done(s, seq))
			return;
		pause_cpu();
	}
	pthread_mutex_lock(&s->sleep_lock);
	atomic_fetch_add(&s->waiters, 1);
	while (atomic_load(&s->done) < seq)
		pthread_cond_wait(&s->sleep_cond, &s->sleep_lock);
	atomic_fetch_sub(&s->waiters, 1);
	pthread_mutex_unlock(&s->sleep_lock);
}

static void worker_sleep(struct sim_stream *s)
{
	for (int i = 0; i < SPINS; i++) {
		if (!sim_stream_idle(s))
			return;
		pause_cpu();
	}
	pthread_mutex_lock(&s->sleep_lock);
	atomic_store(&s->sleeping, 1);
	while (atomic_load(&s->tail) == atomic_load(&s->done))
		pthread_cond_wait(&s->sleep_cond, &s->sleep_lock);
	atomic_store(&s->sleeping, 0);
	pthread_mutex_unlock(&s->sleep_lock);
}

static void wake(struct sim_stream *s)
{
	pthread_mutex_lock(&s->sleep_lock);
	pthread_cond_broadcast(&s->sleep_cond);
	pthread_mutex_unlock(&s->sleep_lock);
}

static void *worker_main(void *arg)
{
	struct sim_stream *s = arg;

	sim_tls.worker = true;
	for (;;) {
		uint64_t done = atomic_load(&s->done);

		if (done == atomic_load_explicit(&s->tail, memory_order_acquire)) {
			worker_sleep(s);
			continue;
		}
		sim_op_run(&s->ring[done % SIM_RING]);
		atomic_store(&s->done, done + 1);
		if (atomic_load(&s->waiters))
			wake(s);
	}
	return NULL;
}

static void worker_start(struct sim_stream *s)
{
	size_t bytes = sizeof(struct sim_op) * SIM_RING;
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;

	s->ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->ring == MAP_FAILED)
		return;
	sigfillset(&all);		/* the program's signals are for its own threads */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&thread, &attr, worker_main, s))
		atomic_store(&s->running, true);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static uint64_t push_locked(struct sim_stream *s, const struct sim_op *op)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
	struct sim_op *slot;

	if (SIM_UNLIKELY(!atomic_load_explicit(&s->running, memory_order_relaxed)))
		worker_start(s);
	if (SIM_UNLIKELY(!atomic_load_explicit(&s->running, memory_order_relaxed))) {
		struct sim_op copy = *op;	/* thread creation failed: run it here */

		sim_op_run(&copy);
		return tail;
	}
	if (SIM_UNLIKELY(tail - atomic_load(&s->done) >= SIM_RING))
		sim_stream_wait(s, tail - SIM_RING + 1);
	slot = &s->ring[tail % SIM_RING];
	memcpy(slot, op, offsetof(struct sim_op, params) + op->param_bytes);
	atomic_store(&s->tail, tail + 1);
	if (atomic_load(&s->sleeping))
		wake(s);
	return tail + 1;
}

static void push_wait(struct sim_stream *s, struct sim_stream *other, uint64_t seq)
{
	struct sim_op op;

	if (other == s || sim_stream_done(other, seq))
		return;
	memset(&op, 0, offsetof(struct sim_op, params));
	op.kind = SIM_OP_WAIT;
	op.ctx = s->ctx;
	op.u.wait.stream = other;
	op.u.wait.seq = seq;
	push_locked(s, &op);
}

/* The legacy stream waits for every blocking stream, and each of those for the legacy one. Each
 * wait is for work that was already accepted, so waits cannot form a cycle. */
static void push_implicit_waits(struct sim_stream *s)
{
	struct sim_ctx *ctx = s->ctx;

	if (s->flags & 1)
		return;
	if (!s->legacy) {
		push_wait(s, ctx->legacy, atomic_load(&ctx->legacy->tail));
		return;
	}
	if (!atomic_load_explicit(&ctx->blocking, memory_order_acquire))
		return;
	pthread_mutex_lock(&ctx->lock);
	for (struct sim_stream *o = ctx->streams; o; o = o->next)
		if (!(o->flags & 1))
			push_wait(s, o, atomic_load(&o->tail));
	pthread_mutex_unlock(&ctx->lock);
}

static bool nothing_to_do(struct sim_stream *s, const struct sim_op *op)
{
	return op->kind == SIM_OP_KERNEL && !op->fault && !*op->u.kernel.row->code &&
	       sim_stream_idle(s) && !sim_ctx_stopped(s->ctx);
}

/* Accepts work: into the graph while the stream is capturing, else into the queue. */
int sim_work_submit(struct sim_stream *s, struct sim_op *op, uint64_t *seq)
{
	uint64_t number;

	op->ctx = s->ctx;
	op->fault = sim_tls.fault;
	sim_tls.fault = 0;
	if (SIM_UNLIKELY(atomic_load_explicit(&sim.captures, memory_order_acquire))) {
		int code = sim_capture_check_legacy(s);

		if (code)
			return code;
		if (atomic_load(&s->capture))
			return sim_capture_add(s, op);
	}
	if (nothing_to_do(s, op))
		return 0;
	pthread_mutex_lock(&s->lock);
	push_implicit_waits(s);
	number = push_locked(s, op);
	pthread_mutex_unlock(&s->lock);
	if (seq)
		*seq = number;
	return 0;
}

int sim_work_finish(struct sim_stream *s, uint64_t seq)
{
	sim_stream_wait(s, seq);
	return atomic_load(&s->ctx->sticky);
}

/* Waits outside the lock, so that other threads can keep submitting work. */
void sim_ctx_drain(struct sim_ctx *ctx)
{
	struct sim_left left[sizeof(ctx->left) / sizeof(ctx->left[0])], *open = NULL;
	size_t count = 0, n = 0, n_left;

	sim_stream_wait(ctx->legacy, atomic_load(&ctx->legacy->tail));
	pthread_mutex_lock(&ctx->lock);
	n_left = ctx->n_left;
	memcpy(left, ctx->left, n_left * sizeof(left[0]));
	for (struct sim_stream *s = ctx->streams; s; s = s->next)
		count += !sim_stream_idle(s);
	open = count ? calloc(count, sizeof(*open)) : NULL;
	for (struct sim_stream *s = ctx->streams; open && s && n < count; s = s->next) {
		open[n].stream = s;
		open[n].seq = atomic_load(&s->tail);
		n += !sim_stream_done(s, open[n].seq);
	}
	pthread_mutex_unlock(&ctx->lock);
	for (size_t i = 0; i < n_left; i++)
		sim_stream_wait(left[i].stream, left[i].seq);
	for (size_t i = 0; i < n; i++)
		sim_stream_wait(open[i].stream, open[i].seq);
	free(open);
}
