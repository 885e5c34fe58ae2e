/* SPDX-License-Identifier: Apache-2.0
 * NCCL's communicators: which collective each rank has come to, and at which line (struct cw_comms in format.h).
 *
 * A rank that hangs in a collective waits for one that did not call it. So a call is noted before NCCL is called, and what is noted
 * is the same on all ranks if they agree: the number of the call in its communicator, which collective it is, how many elements of
 * which type. Communicators have the same id on all ranks: a hash of the unique id that they were made with.
 */
#include <string.h>

#include "rec_linked.h"
#include "rec_python.h"

#define NCCL_INTERNAL_ERROR 3

#define NCCL(X)                                                                                                              \
	X(ncclAllReduce) \
	X(ncclBroadcast) X(ncclReduce) X(ncclAllGather) X(ncclReduceScatter) X(ncclSend) X(ncclRecv) X(ncclGroupStart) \
		X(ncclGroupEnd) X(ncclCommInitRank) X(ncclCommInitRankConfig) X(ncclCommInitRankScalable) \
			X(ncclCommSplit) X(ncclCommAbort) X(ncclCommDestroy) X(ncclCommGetAsyncError)

enum nccl {
#define X(name) NC_##name,
	NCCL(X)
#undef X
	NC_COUNT
};

static const char *const nccl_name[NC_COUNT] = {
#define X(name) #name,
	NCCL(X)
#undef X
};
_Static_assert(NC_COUNT <= LINKED_NAMES, "room for every function");

static struct linked nccls = LINKED("libnccl", nccl_name);
static struct spin comms_lock;
LOCK_LISTED(nccls, nccls.adding);
LOCK_LISTED(comms, comms_lock);

struct unique_id {		/* ncclUniqueId */
	unsigned char byte[128];
};

static struct {
	struct cw_comms *table;
	uint32_t generation;	/* of the recording that it is in: a forked child has another */
} comms;
static __thread int group_depth;

/* The program calls it, so some library defines it: it must never fail because of us. */
static void *real_for(enum nccl f, const void *caller)
{
	void *real = linked_real(&nccls, f, caller);

	return likely(real) ? real : elf_symbol_anywhere(nccl_name[f]);
}

static uint64_t hash_more(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 1099511628211ull;
	return h;
}

#define HASH_START 14695981039346656037ull

static struct cw_comms *table(void)
{
	if (comms.table && comms.generation == rec.generation)
		return comms.table;
	comms.table = chunk_new(CW_CHUNK_COMMS, sizeof(*comms.table), 0);
	comms.generation = rec.generation;
	return comms.table;
}

static struct cw_comm *comm_find(const void *handle)
{
	struct cw_comms *t = comms.generation == rec.generation ? comms.table : NULL;

	for (uint32_t i = t && handle ? t->n : 0; i-- > 0;)
		if (t->comm[i].handle == (uintptr_t)handle)
			return &t->comm[i];
	return NULL;
}

/* If there is no room: the place of one that the program has released. */
static struct cw_comm *comm_add(void)
{
	struct cw_comms *t = table();
	struct cw_comm *c = NULL;

	if (!t)
		return NULL;
	for (uint32_t i = 0; t->n == CW_COMMS && i < CW_COMMS && !c; i++)
		c = !t->comm[i].handle && !t->comm[i].aborted ? &t->comm[i] : NULL;
	if (!c && t->n == CW_COMMS) {
		t->lost++;
		return NULL;
	}
	if (!c)
		c = &t->comm[t->n];
	memset(c, 0, sizeof(*c));
	c->digest = HASH_START;
	c->color = -1;
	if (c == &t->comm[t->n])
		shared_set(&t->n, t->n + 1);
	return c;
}

static void call_add(struct cw_comm *c, uint64_t count, int type, enum cw_collective op, uint64_t stream, uint32_t stack)
{
	uint64_t seq = c->called + 1, what[3] = {(uint64_t)op, count, (uint64_t)type};
	struct cw_comm_call *slot = &c->call[seq % CW_COMM_CALLS];

	c->digest = hash_more(c->digest, what, sizeof(what));
	shared_set(&slot->seq, 0);
	slot->count = count;
	slot->mono_ns = rec_mono_ns();
	slot->stack = stack;
	slot->op = (uint16_t)op;
	slot->type = (uint16_t)type;
	shared_set(&slot->seq, seq);
	c->stream = stream;
	for (uint32_t i = 0; i < CW_COMM_MARKS && seq % (1ull << i) == 0; i++)
		c->mark[i] = (struct cw_comm_mark){seq, c->digest};
	shared_set(&c->called, seq);
}

static void note_collective(const void *handle, uint64_t count, int type, enum cw_collective op, uint64_t stream)
{
	struct cw_comm *c;
	uint32_t stack;

	if (!rec_enter())
		return;
	stack = stack_here();
	if (spin_try(&comms_lock)) {
		c = comm_find(handle);
		if (c)
			call_add(c, count, type, op, stream, stack);
		else if (table())
			comms.table->lost_calls++;
		spin_done(&comms_lock);
	}
	rec_leave();
}

static void note_message(const void *handle)
{
	struct cw_comm *c;

	if (!rec_enter())
		return;
	if (spin_try(&comms_lock)) {
		c = comm_find(handle);
		if (c)
			c->messages++;
		spin_done(&comms_lock);
	}
	rec_leave();
}

#define REDUCES(name, op)                                                                                            \
	EXPORT int name(const void *from, void *to, size_t count, int type, int redop, void *comm, uint64_t stream); \
	EXPORT int name(const void *from, void *to, size_t count, int type, int redop, void *comm, uint64_t stream)  \
	{                                                                                                            \
		int (*real)(const void *, void *, size_t, int, int, void *, uint64_t) =                              \
			real_for(NC_##name, __builtin_return_address(0));                                            \
\
		note_collective(comm, count, type, op, stream);                                                            \
		return real ? real(from, to, count, type, redop, comm, stream) : NCCL_INTERNAL_ERROR;                \
	}

REDUCES(ncclAllReduce, CW_COLLECTIVE_ALL_REDUCE)
REDUCES(ncclReduceScatter, CW_COLLECTIVE_REDUCE_SCATTER)

EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, uint64_t stream);
EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, uint64_t stream)
{
	int (*real)(const void *, void *, size_t, int, int, void *, uint64_t) =
		real_for(NC_ncclBroadcast, __builtin_return_address(0));

	note_collective(comm, count, type, CW_COLLECTIVE_BROADCAST, stream);
	return real ? real(from, to, count, type, root, comm, stream) : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclReduce(const void *from, void *to, size_t count, int type, int redop, int root, void *comm,
		      uint64_t stream);
EXPORT int ncclReduce(const void *from, void *to, size_t count, int type, int redop, int root, void *comm, uint64_t stream)
{
	int (*real)(const void *, void *, size_t, int, int, int, void *, uint64_t) =
		real_for(NC_ncclReduce, __builtin_return_address(0));

	note_collective(comm, count, type, CW_COLLECTIVE_REDUCE, stream);
	return real ? real(from, to, count, type, redop, root, comm, stream) : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, uint64_t stream);
EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, uint64_t stream)
{
	int (*real)(const void *, void *, size_t, int, void *, uint64_t) =
		real_for(NC_ncclAllGather, __builtin_return_address(0));

	note_collective(comm, count, type, CW_COLLECTIVE_ALL_GATHER, stream);
	return real ? real(from, to, count, type, comm, stream) : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclSend(const void *from, size_t count, int type, int peer, void *comm, uint64_t stream);
EXPORT int ncclSend(const void *from, size_t count, int type, int peer, void *comm, uint64_t stream)
{
	int (*real)(const void *, size_t, int, int, void *, uint64_t) =
		real_for(NC_ncclSend, __builtin_return_address(0));

	note_message(comm);
	return real ? real(from, count, type, peer, comm, stream) : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclRecv(void *to, size_t count, int type, int peer, void *comm, uint64_t stream);
EXPORT int ncclRecv(void *to, size_t count, int type, int peer, void *comm, uint64_t stream)
{
	int (*real)(void *, size_t, int, int, void *, uint64_t) = real_for(NC_ncclRecv, __builtin_return_address(0));

	note_message(comm);
	return real ? real(to, count, type, peer, comm, stream) : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupStart(void)
{
	int (*real)(void) = real_for(NC_ncclGroupStart, __builtin_return_address(0));

	group_depth++;
	return real ? real() : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclGroupEnd(void);
EXPORT int ncclGroupEnd(void)
{
	int (*real)(void) = real_for(NC_ncclGroupEnd, __builtin_return_address(0));

	group_depth -= group_depth > 0;
	return real ? real() : NCCL_INTERNAL_ERROR;
}

struct made {
	uint64_t id, in_ns;
	uint32_t rank, size;
};

/* The call that makes a communicator returns only after all of its ranks have called it, unless it is deferred to the end of a
 * group, or to later (code 7, ncclInProgress). */
static void note_made(const struct made *m, void *const *handle, int code)
{
	struct cw_comm *c;

	if ((code != 0 && code != 7) || !handle || !*handle || !rec_enter())
		return;
	if (spin_try(&comms_lock)) {
		c = comm_add();
		if (c) {
			c->id = m->id;
			c->rank = m->rank;
			c->size = m->size;
			c->init_in_ns = m->in_ns;
			c->init_out_ns = code == 0 && !group_depth ? rec_mono_ns() : 0;
			shared_set(&c->handle, (uint64_t)(uintptr_t)*handle);
		}
		spin_done(&comms_lock);
	}
	rec_leave();
}

static struct made made_now(const void *ids, size_t bytes, int ranks, int rank)
{
	return (struct made){hash_more(HASH_START, ids, bytes), rec_mono_ns(), (uint32_t)rank, (uint32_t)ranks};
}

EXPORT int ncclCommInitRank(void **comm, int ranks, struct unique_id id, int rank);
EXPORT int ncclCommInitRank(void **comm, int ranks, struct unique_id id, int rank)
{
	int (*real)(void **, int, struct unique_id, int) = real_for(NC_ncclCommInitRank, __builtin_return_address(0));
	struct made m = made_now(&id, sizeof(id), ranks, rank);
	int code = real ? real(comm, ranks, id, rank) : NCCL_INTERNAL_ERROR;

	note_made(&m, comm, code);
	return code;
}

EXPORT int ncclCommInitRankConfig(void **comm, int ranks, struct unique_id id, int rank, void *config);
EXPORT int ncclCommInitRankConfig(void **comm, int ranks, struct unique_id id, int rank, void *config)
{
	int (*real)(void **, int, struct unique_id, int, void *) =
		real_for(NC_ncclCommInitRankConfig, __builtin_return_address(0));
	struct made m = made_now(&id, sizeof(id), ranks, rank);
	int code = real ? real(comm, ranks, id, rank, config) : NCCL_INTERNAL_ERROR;

	note_made(&m, comm, code);
	return code;
}

EXPORT int ncclCommInitRankScalable(void **comm, int ranks, int rank, int n_ids, struct unique_id *ids, void *config);
EXPORT int ncclCommInitRankScalable(void **comm, int ranks, int rank, int n_ids, struct unique_id *ids, void *config)
{
	int (*real)(void **, int, int, int, struct unique_id *, void *) =
		real_for(NC_ncclCommInitRankScalable, __builtin_return_address(0));
	struct made m = made_now(ids, ids && n_ids > 0 ? sizeof(*ids) : 0, ranks, rank);
	int code = real ? real(comm, ranks, rank, n_ids, ids, config) : NCCL_INTERNAL_ERROR;

	note_made(&m, comm, code);
	return code;
}

/* Every rank of the parent calls it, each with its color: the split is known by its parent, its color, and which split it was. */
static void note_split(const void *parent, int color, void *const *handle, uint64_t in_ns, int code)
{
	struct cw_comm *p, *c = NULL;
	uint64_t of[3];

	if (!rec_enter())
		return;
	if (spin_try(&comms_lock)) {
		p = comm_find(parent);
		of[0] = p ? p->id : 0;
		of[1] = (uint64_t)(int64_t)color;
		of[2] = p ? ++p->splits : 0;
		if (p && (code == 0 || code == 7) && handle && *handle)
			c = comm_add();
		if (c) {
			c->id = hash_more(HASH_START, of, sizeof(of));
			c->parent = of[0];
			c->color = color;
			c->order = of[2];
			c->rank = CW_UNKNOWN;
			c->init_in_ns = in_ns;
			c->init_out_ns = code == 0 && !group_depth ? rec_mono_ns() : 0;
			shared_set(&c->handle, (uint64_t)(uintptr_t)*handle);
		}
		spin_done(&comms_lock);
	}
	rec_leave();
}

EXPORT int ncclCommSplit(void *parent, int color, int key, void **comm, void *config);
EXPORT int ncclCommSplit(void *parent, int color, int key, void **comm, void *config)
{
	int (*real)(void *, int, int, void **, void *) = real_for(NC_ncclCommSplit, __builtin_return_address(0));
	uint64_t in_ns = rec_mono_ns();
	int code = real ? real(parent, color, key, comm, config) : NCCL_INTERNAL_ERROR;

	note_split(parent, color, comm, in_ns, code);
	return code;
}

static void note_gone(const void *handle, bool aborted)
{
	struct cw_comm *c;

	if (!rec_enter())
		return;
	if (spin_try(&comms_lock)) {
		c = comm_find(handle);
		if (c) {
			c->aborted |= aborted;
			c->handle = 0;
		}
		spin_done(&comms_lock);
	}
	rec_leave();
}

EXPORT int ncclCommAbort(void *comm);
EXPORT int ncclCommAbort(void *comm)
{
	int (*real)(void *) = real_for(NC_ncclCommAbort, __builtin_return_address(0));

	note_gone(comm, true);
	return real ? real(comm) : NCCL_INTERNAL_ERROR;
}

EXPORT int ncclCommDestroy(void *comm);
EXPORT int ncclCommDestroy(void *comm)
{
	int (*real)(void *) = real_for(NC_ncclCommDestroy, __builtin_return_address(0));

	note_gone(comm, false);
	return real ? real(comm) : NCCL_INTERNAL_ERROR;
}

/* PyTorch asks often: nothing is noted while all is well. */
EXPORT int ncclCommGetAsyncError(void *comm, int *error);
EXPORT int ncclCommGetAsyncError(void *comm, int *error)
{
	int (*real)(void *, int *) = real_for(NC_ncclCommGetAsyncError, __builtin_return_address(0));
	int code = real ? real(comm, error) : NCCL_INTERNAL_ERROR;
	struct cw_comm *c;

	if (likely(code == 0 && error && (*error == 0 || *error == 7)))
		return code;
	if (rec_enter()) {
		if (spin_try(&comms_lock)) {
			c = comm_find(comm);
			if (c)
				c->async_error = (uint32_t)(code ? code : error ? *error : 0);
			spin_done(&comms_lock);
		}
		rec_leave();
	}
	return code;
}
