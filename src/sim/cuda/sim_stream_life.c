/* SPDX-License-Identifier: Apache-2.0
 * Creating and destroying streams, per-thread default streams, and looking up the stream of a
 * handle.
 */
#include "sim/cuda/sim.h"

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned int flags, int priority)
{
	struct sim_stream *s = sim_pool_new(&sim.streams);

	if (!s)
		return NULL;
	if (!s->made) {
		pthread_mutex_init(&s->lock, NULL);
		pthread_mutex_init(&s->sleep_lock, NULL);
		pthread_cond_init(&s->sleep_cond, NULL);
		s->made = true;
	}
	s->ctx = ctx;
	s->flags = flags;
	s->priority = priority;
	s->legacy = !ctx->legacy;
	s->unjoined = false;
	s->owner = NULL;
	atomic_store(&s->capture, NULL);
	if (!s->legacy) {
		pthread_mutex_lock(&ctx->lock);
		s->next = ctx->streams;
		ctx->streams = s;
		pthread_mutex_unlock(&ctx->lock);
		if (!(flags & 1))
			atomic_fetch_add(&ctx->blocking, 1);
	}
	atomic_store(&s->head.alive, 1);
	return s;
}

/* With the lock of the context. False: there is no room. */
static bool work_left(struct sim_ctx *ctx, struct sim_stream *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < ctx->n_left; i++)
		if (!sim_stream_done(ctx->left[i].stream, ctx->left[i].seq))
			ctx->left[n++] = ctx->left[i];
	ctx->n_left = n;
	if (sim_stream_idle(s))
		return true;
	if (n == sizeof(ctx->left) / sizeof(ctx->left[0]))
		return false;
	ctx->left[ctx->n_left++] = (struct sim_left){s, atomic_load(&s->tail)};
	return true;
}

/* Work already accepted continues; the handle can be reused at once. */
void sim_stream_drop(struct sim_stream *s)
{
	struct sim_ctx *ctx = s->ctx;
	bool noted;

	pthread_mutex_lock(&ctx->lock);
	noted = work_left(ctx, s);
	for (struct sim_stream **link = &ctx->streams; *link; link = &(*link)->next) {
		if (*link != s)
			continue;
		*link = s->next;
		break;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (!noted)
		sim_stream_wait(s, atomic_load(&s->tail));
	if (!(s->flags & 1))
		atomic_fetch_sub(&ctx->blocking, 1);
	sim_pool_drop(&sim.streams, s);
}

static void thread_ended(void *stream)
{
	struct sim_stream *s = sim_pool_get(&sim.streams, stream);

	if (s && s->owner == &sim_tls && atomic_load(&sim.state) == SIM_READY)
		sim_stream_drop(s);
}

static void thread_key_make(void)
{
	pthread_key_create(&thread_key, thread_ended);
}

static struct sim_stream *per_thread_stream(struct sim_ctx *ctx)
{
	struct sim_stream *s = sim_pool_get(&sim.streams, sim_tls.stream);

	/* The handle may have been destroyed with its context and have another owner by now. */
	if (s && s->owner == &sim_tls && s->ctx == ctx)
		return s;
	pthread_once(&thread_once, thread_key_make);
	s = sim_stream_new(ctx, 0, 0);
	if (s) {
		s->owner = &sim_tls;
		pthread_setspecific(thread_key, s);
	}
	sim_tls.stream = s;
	return s;
}

struct sim_stream *sim_stream_resolve(struct sim_stream *handle)
{
	struct sim_ctx *ctx = sim_ctx_current();
	struct sim_stream *s;

	if ((uintptr_t)handle == 1 || (!handle && !sim_tls.per_thread))
		return ctx->legacy;
	if ((uintptr_t)handle == 2 || !handle)
		return per_thread_stream(ctx);
	s = sim_pool_get(&sim.streams, handle);
	return s && s->ctx == ctx ? s : NULL;
}
