/* SPDX-License-Identifier: Apache-2.0
 * Threads that wait for the GPU (see run_waiters.h).
 *
 * Read with pread, like all recorder memory: a header, and 64 bytes per thread.
 */
#include "run/run_waiters.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "find/failure/suspects.h"
#include "read/recording/trace.h"

/* The longest wait first; if there are too many, the shortest is dropped. */
static void add_waiter(struct waiters *w, const struct cw_ring *r, uint32_t off)
{
	size_t at = w->n;

	if (w->n == CW_HANG_THREADS && w->list[w->n - 1].wait.since_ns <= r->wait.since_ns)
		return;
	if (w->n == CW_HANG_THREADS)
		at--;
	else
		w->n++;
	for (; at > 0 && w->list[at - 1].wait.since_ns > r->wait.since_ns; at--)
		w->list[at] = w->list[at - 1];
	w->list[at] = (struct waiter){r->wait, r->tid, r->polls, off};
}

/* A thread that polls is waiting only as long as it polls: it must have polled since we last looked. */
static bool is_waiting(struct process *p, uint32_t chunk, const struct cw_ring *r, uint64_t before)
{
	uint32_t was = p->hang.polls[chunk];

	p->hang.polls[chunk] = r->polls;
	return r->wait.since_ns && r->wait.since_ns <= before && (!r->polls || r->polls != was);
}

bool waiters_find(struct waiters *w, struct process *p, uint64_t before)
{
	struct cw_header *h = xcalloc(1, sizeof(*h));
	bool ok = process_header(p, h);
	struct cw_ring r;

	*w = (struct waiters){.n = 0};
	if (!p->hang.polls)
		p->hang.polls = xcalloc(CW_MAX_CHUNKS, sizeof(*p->hang.polls));
	for (uint32_t i = 0; ok && i < h->n_chunks && i < CW_MAX_CHUNKS; i++)
		if (h->chunk[i].kind == CW_CHUNK_CALLS && process_read(p, h->chunk[i].off, &r, sizeof(r)) &&
		    is_waiting(p, i, &r, before))
			add_waiter(w, &r, h->chunk[i].off);
	str_copy(w->dump_path, sizeof(w->dump_path), h->dump_path);
	str_copy(w->pipe_path, sizeof(w->pipe_path), h->pipe_path);
	w->pipe_reason = h->pipe_reason;
	free(h);
	return w->n > 0;
}

uint64_t process_progress(const struct process *p)
{
	struct cw_header *h = xcalloc(1, sizeof(*h));
	uint64_t mark = 1;
	struct cw_ring r;

	if (process_header(p, h))
		for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
			bool launches = h->chunk[i].kind == CW_CHUNK_LAUNCHES;

			if ((launches || h->chunk[i].kind == CW_CHUNK_CALLS) &&
			    process_read(p, h->chunk[i].off, &r, sizeof(r)))
				mark = (mark ^ (launches ? r.head : r.wait.since_ns)) * 0xd6e8feb86659fd93ull + i;
		}
	free(h);
	return mark;
}

bool waiter_still(const struct process *p, const struct waiter *w)
{
	struct cw_ring r;

	return process_read(p, w->ring, &r, sizeof(r)) && r.tid == w->tid && r.wait.since_ns == w->wait.since_ns;
}

bool waiter_loads(const struct waiter *w)
{
	return api_does(w->wait.api, DOES_LOAD);
}

static void count_launch(void *arg, const struct cw_launch *l)
{
	size_t *n = arg;

	(void)l;
	(*n)++;
}

bool process_has_work(const struct process *p)
{
	const struct cw_failure now = {.ticks = UINT64_MAX};
	size_t len, n = 0;
	void *bytes = process_bytes(p, &len);
	struct trace *t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;

	if (t)
		suspects_each(t, &now, count_launch, &n);
	trace_free(t);
	return n > 0;
}

bool hang_write(const struct process *p, const struct cw_hang *h)
{
	return process_write(p, offsetof(struct cw_header, hang), h, sizeof(*h));
}
