/* SPDX-License-Identifier: Apache-2.0
 * NCCL's communicators of a recording (see run_job.h).
 */
#include "run/run_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cuwhy/format.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"
#include "read/rank/rank.h"

static const char *op_name(uint32_t op)
{
	switch (op) {
#define X(number, name, text) \
	case number:          \
		return text;
		CW_COLLECTIVES(X)
#undef X
	}
	return NULL;
}

/* ncclDataType_t, named as in PyTorch. */
static const char *type_name(uint32_t type)
{
	static const char *const names[] = {"int8",    "uint8",	  "int32",   "uint32",	 "int64",	"uint64",
					    "float16", "float32", "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

static const char *line_at(const struct trace *t, uint32_t stack, struct pool *pool)
{
	struct place p;
	const char *slash;

	if (!stack || !place_of_stack(t, stack, &p) || !p.file)
		return NULL;
	slash = strrchr(p.file, '/');
	return pool_printf(pool, "%.200s:%u", slash ? slash + 1 : p.file, p.line);
}

static void take_calls(struct job_comm *to, const struct cw_comm *from, const struct trace *t, struct pool *pool)
{
	uint64_t first = from->called > JOB_CALLS_MAX ? from->called - JOB_CALLS_MAX + 1 : 1;

	to->call = pool_alloc(pool, JOB_CALLS_MAX * sizeof(*to->call));
	for (uint64_t seq = first; seq <= from->called && to->n_calls < JOB_CALLS_MAX; seq++) {
		const struct cw_comm_call *c = &from->call[seq % CW_COMM_CALLS];

		if (c->seq == seq)
			to->call[to->n_calls++] = (struct job_call){.seq = seq,
								    .op = op_name(c->op),
								    .type = type_name(c->type),
								    .line = line_at(t, c->stack, pool),
								    .count = c->count};
	}
}

static int by_seq(const void *a, const void *b)
{
	const struct job_mark *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* One call may be in several slots. */
static void take_marks(struct job_comm *to, const struct cw_comm *from, struct pool *pool)
{
	size_t kept = 0;

	to->mark = pool_alloc(pool, (CW_COMM_MARKS + 1) * sizeof(*to->mark));
	if (from->init_out_ns >= from->init_in_ns && from->init_in_ns)
		to->mark[to->n_marks++] = (struct job_mark){.in_ns = from->init_in_ns, .out_ns = from->init_out_ns};
	for (size_t i = 0; i < CW_COMM_MARKS; i++)
		if (from->mark[i].seq && from->mark[i].seq <= from->called)
			to->mark[to->n_marks++] = (struct job_mark){
				.seq = from->mark[i].seq, .digest = (from->mark[i].digest & INT64_MAX) | 1};
	xsort(to->mark, to->n_marks, sizeof(*to->mark), by_seq);
	for (size_t i = 0; i < to->n_marks; i++)
		if (!kept || to->mark[kept - 1].seq != to->mark[i].seq)
			to->mark[kept++] = to->mark[i];
	to->n_marks = kept;
}

static void take_comm(struct job_comm *to, const struct cw_comm *from, const struct trace *t, struct pool *pool)
{
	*to = (struct job_comm){.id = pool_printf(pool, "%016" PRIx64, from->id),
				.parent = from->parent ? pool_printf(pool, "%016" PRIx64, from->parent) : NULL,
				.color = from->parent ? from->color : -1,
				.order = from->parent ? (int64_t)(from->order & INT32_MAX) : -1,
				.rank = from->rank,
				.size = from->size,
				.called = from->called,
				.aborted = from->aborted};
	if (from->called && from->call[from->called % CW_COMM_CALLS].seq == from->called)
		to->called_ns = from->call[from->called % CW_COMM_CALLS].mono_ns;
	take_calls(to, from, t, pool);
	take_marks(to, from, pool);
}

/* The busiest first: a rank has few of them that matter. */
static int by_calls(const void *a, const void *b)
{
	const struct cw_comm *const *x = a, *const *y = b;

	return (*x)->called > (*y)->called ? -1 : (*x)->called < (*y)->called;
}

static void take_all(struct job_rank *r, const struct cw_comms *all, const struct trace *t, struct pool *pool)
{
	const struct cw_comm *list[CW_COMMS];
	size_t n = 0;

	for (uint32_t i = 0; i < all->n && i < CW_COMMS; i++)
		if (all->comm[i].id)
			list[n++] = &all->comm[i];
	xsort(list, n, sizeof(list[0]), by_calls);
	r->comm = pool_alloc(pool, JOB_COMMS_MAX * sizeof(*r->comm));
	for (size_t i = 0; i < n && i < JOB_COMMS_MAX; i++)
		take_comm(&r->comm[r->n_comms++], list[i], t, pool);
}

static void take_last_line(struct job_rank *r, struct trace *t, struct pool *pool)
{
	const struct cw_launch *const *list;
	size_t n = trace_launches(t, &list);

	for (size_t i = n; i-- > 0 && n - i < 64 && !r->doing;)
		r->doing = line_at(t, list[i]->stack, pool);
}

void job_comms_of(struct job_rank *r, struct trace *t, struct pool *pool)
{
	size_t len = 0;
	const struct cw_comms *all = trace_nth_chunk(t, CW_CHUNK_COMMS, 0, &len);

	r->n_comms = 0;
	r->doing = NULL;
	if (all && len >= sizeof(*all))
		take_all(r, all, t, pool);
	take_last_line(r, t, pool);
}
