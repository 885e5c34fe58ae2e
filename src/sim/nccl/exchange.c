/* SPDX-License-Identifier: Apache-2.0
 * Small contents on their way: copied to pinned memory, exchanged through the ranks' shared memory by a host function, and copied back,
 * all in the stream of the call. A host function waits for the other ranks like NCCL's kernel does; the calling thread never does.
 */
#include "sim/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

struct stage {
	struct stage *next;
	size_t bytes;
	char *memory;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stage *unused;

static struct stage *stage_new(size_t bytes)
{
	struct stage *s = calloc(1, sizeof(*s));
	void *memory = NULL;

	if (!s || cuMemHostAlloc(&memory, bytes, 1 /* for all contexts */)) {
		free(s);
		return NULL;
	}
	s->bytes = bytes;
	s->memory = memory;
	return s;
}

static struct stage *stage_take(size_t bytes)
{
	struct stage **at, *found = NULL;
	size_t room = 4096;

	while (room < bytes)
		room *= 2;
	pthread_mutex_lock(&lock);
	for (at = &unused; *at && !found; at = found ? at : &(*at)->next)
		if ((*at)->bytes == room) {
			found = *at;
			*at = found->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	return found ? found : stage_new(room);
}

static void stage_give_back(struct stage *s)
{
	pthread_mutex_lock(&lock);
	s->next = unused;
	unused = s;
	pthread_mutex_unlock(&lock);
}

struct transfer {
	struct nccl_comm *comm;
	struct nccl_call call;
	uint64_t number;		/* of the round, or of the message */
	int from, to;			/* of a message */
	struct stage *stage;
	size_t send_bytes, receive_bytes;	/* what is received lies behind what is sent */
};

static char *received(const struct transfer *t)
{
	return t->stage->memory + t->send_bytes;
}

static void transfer_free(struct transfer *t)
{
	if (t->stage)
		stage_give_back(t->stage);
	nccl_comm_release(t->comm);
	free(t);
}

static void transfer_end(void *data)
{
	transfer_free(data);
}

static struct transfer *transfer_new(struct nccl_comm *comm, const struct nccl_call *call, size_t send_bytes,
				     size_t receive_bytes)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct transfer){.comm = comm, .call = *call, .send_bytes = send_bytes, .receive_bytes = receive_bytes};
	nccl_comm_retain(comm);
	t->stage = stage_take(send_bytes + receive_bytes);
	if (t->stage)
		return t;
	transfer_free(t);
	return NULL;
}

/* Copy in, exchange, copy out, free: one after the other in the stream. */
static int transfer_start(struct transfer *t, const void *from, void *to, sim_host_fn exchange, struct sim_stream *stream)
{
	int code = 0;

	cuwhy_sim_staging(true);
	if (t->send_bytes)
		code = cuMemcpyDtoHAsync_v2(t->stage->memory, (sim_addr)(uintptr_t)from, t->send_bytes, stream);
	if (code == 0)
		code = cuLaunchHostFunc(stream, exchange, t);
	if (code) {
		cuwhy_sim_staging(false);
		transfer_free(t);
		return NCCL_UNHANDLED_CUDA_ERROR;
	}
	if (t->receive_bytes)
		code = cuMemcpyHtoDAsync_v2((sim_addr)(uintptr_t)to, received(t), t->receive_bytes, stream);
	cuwhy_sim_staging(false);
	/* if this fails, the exchange may still use it: it is not freed */
	return cuLaunchHostFunc(stream, transfer_end, t) || code ? NCCL_UNHANDLED_CUDA_ERROR : 0;
}

static bool reduces(int op)
{
	return op == OP_ALL_REDUCE || op == OP_REDUCE || op == OP_REDUCE_SCATTER;
}

/* What this rank gives and gets, in elements: `count` is what the function was given. */
static void sizes(const struct nccl_comm *comm, const struct nccl_call *call, size_t *send, size_t *receive)
{
	size_t one = call->count, all = call->count * (size_t)comm->ranks;
	bool root = call->root == comm->rank;

	*send = one;
	*receive = one;
	switch (call->op) {
	case OP_ALL_REDUCE: break;
	case OP_BROADCAST: *send = root ? one : 0; break;
	case OP_REDUCE: *receive = root ? one : 0; break;
	case OP_ALL_GATHER: *receive = all; break;
	case OP_REDUCE_SCATTER: *send = all; break;
	case OP_ALL_TO_ALL: *send = *receive = all; break;
	case OP_GATHER: *receive = root ? all : 0; break;
	case OP_SCATTER: *send = root ? all : 0; break;
	}
}

bool nccl_has_values(const struct nccl_comm *comm, const struct nccl_call *call)
{
	size_t bytes = nccl_type_bytes(call->type);
	bool many = call->op == OP_REDUCE_SCATTER || call->op == OP_ALL_TO_ALL || call->op == OP_SCATTER;

	/* every rank must come to the same answer, so it must not depend on the rank */
	if (call->count == 0 || call->count > NCCL_VALUES_MAX / bytes / (many ? (size_t)comm->ranks : 1))
		return false;
	return !reduces(call->op) || nccl_can_reduce(call->type, call->redop);
}

struct round {
	uint64_t number;
	int rank;
};

static bool slot_is_free(struct nccl_comm *comm, const void *what)
{
	const struct round *r = what;
	uint64_t earlier = r->number / NCCL_ROUNDS;

	return atomic_load(&comm->shared->finished[r->number % NCCL_ROUNDS]) >= earlier * (uint64_t)comm->ranks;
}

static bool is_published(struct nccl_comm *comm, const void *what)
{
	const struct round *r = what;

	return atomic_load(nccl_round_published(comm, r->rank, r->number)) == r->number + 1;
}

/* What rank `from` gave becomes part of what this rank gets. */
static void take_values(const struct transfer *t, int from, bool first)
{
	const char *values = nccl_round_values(t->comm, from, t->number);
	size_t bytes = t->call.count * nccl_type_bytes(t->call.type);
	const char *mine = values + (size_t)t->comm->rank * bytes;
	char *to = received(t);

	switch (t->call.op) {
	case OP_ALL_REDUCE:
	case OP_REDUCE:
	case OP_REDUCE_SCATTER:
		if (t->call.op == OP_REDUCE_SCATTER)
			values = mine;
		if (first)
			memcpy(to, values, bytes);
		else
			nccl_reduce(t->call.type, t->call.redop, to, values, t->call.count);
		break;
	case OP_ALL_GATHER:
	case OP_GATHER:
		memcpy(to + (size_t)from * bytes, values, bytes);
		break;
	case OP_ALL_TO_ALL:
		memcpy(to + (size_t)from * bytes, mine, bytes);
		break;
	case OP_BROADCAST:
		if (from == t->call.root)
			memcpy(to, values, bytes);
		break;
	case OP_SCATTER:
		if (from == t->call.root)
			memcpy(to, mine, bytes);
		break;
	}
}

static int publish(struct transfer *t)
{
	struct nccl_comm *comm = t->comm;
	struct round round = {.number = t->number};
	int code = nccl_wait(comm, slot_is_free, &round);

	if (code)
		return code;
	memcpy(nccl_round_values(comm, comm->rank, t->number), t->stage->memory, t->send_bytes);
	atomic_store(nccl_round_published(comm, comm->rank, t->number), t->number + 1);
	nccl_notify(comm->shared);
	return 0;
}

/* In the stream. It waits for all ranks, even where it needs one of them: collectives with values are barriers here. */
static void exchange(void *data)
{
	struct transfer *t = data;
	struct nccl_comm *comm = t->comm;

	if (publish(t))
		return;
	for (int from = 0; from < comm->ranks; from++) {
		struct round round = {t->number, from};

		if (nccl_wait(comm, is_published, &round))
			return;
		if (t->receive_bytes)
			take_values(t, from, from == 0);
	}
	if (t->receive_bytes && reduces(t->call.op) && t->call.redop == RED_AVG)
		nccl_average(t->call.type, received(t), t->call.count, comm->ranks);
	atomic_fetch_add(&comm->shared->finished[t->number % NCCL_ROUNDS], 1);
	nccl_notify(comm->shared);
}

int nccl_exchange(struct nccl_comm *comm, const struct nccl_call *call, struct nccl_buffers b, struct sim_stream *stream)
{
	size_t bytes = nccl_type_bytes(call->type), send, receive;
	struct transfer *t;

	sizes(comm, call, &send, &receive);
	t = transfer_new(comm, call, send * bytes, receive * bytes);
	if (!t)
		return NCCL_SYSTEM_ERROR;
	t->number = comm->rounds++;
	return transfer_start(t, b.send, b.receive, exchange, stream);
}

static bool has_room(struct nccl_comm *comm, const void *what)
{
	const struct transfer *t = what;
	const struct nccl_pair *p = nccl_pair(comm, t->from, t->to);

	return atomic_load(&p->published) < atomic_load(&p->taken) + NCCL_MESSAGES;
}

static bool has_message(struct nccl_comm *comm, const void *what)
{
	const struct transfer *t = what;
	const struct nccl_pair *p = nccl_pair(comm, t->from, t->to);

	return atomic_load(&p->published) > atomic_load(&p->taken);
}

static void put_message(void *data)
{
	struct transfer *t = data;
	struct nccl_pair *p = nccl_pair(t->comm, t->from, t->to);

	if (nccl_wait(t->comm, has_room, t))
		return;
	memcpy(nccl_message(t->comm, t->from, t->to, atomic_load(&p->published)), t->stage->memory, t->send_bytes);
	atomic_fetch_add(&p->published, 1);
	nccl_notify(t->comm->shared);
}

static void get_message(void *data)
{
	struct transfer *t = data;
	struct nccl_pair *p = nccl_pair(t->comm, t->from, t->to);

	if (nccl_wait(t->comm, has_message, t))
		return;
	memcpy(received(t), nccl_message(t->comm, t->from, t->to, atomic_load(&p->taken)), t->receive_bytes);
	atomic_fetch_add(&p->taken, 1);
	nccl_notify(t->comm->shared);
}

static int start_message(struct nccl_comm *comm, int from, int to, const struct nccl_call *call, struct nccl_buffers b,
			 struct sim_stream *stream)
{
	size_t bytes = call->count * nccl_type_bytes(call->type);
	struct transfer *t;

	if (bytes == 0 || bytes > NCCL_MESSAGE_MAX)
		return 0;
	t = transfer_new(comm, call, b.send ? bytes : 0, b.send ? 0 : bytes);
	if (!t)
		return NCCL_SYSTEM_ERROR;
	t->from = from;
	t->to = to;
	return transfer_start(t, b.send, b.receive, b.send ? put_message : get_message, stream);
}

int nccl_send_message(struct nccl_comm *comm, int peer, const struct nccl_call *call, const void *from,
		      struct sim_stream *stream)
{
	return start_message(comm, comm->rank, peer, call, (struct nccl_buffers){.send = from}, stream);
}

int nccl_receive_message(struct nccl_comm *comm, int peer, const struct nccl_call *call, void *to,
			 struct sim_stream *stream)
{
	return start_message(comm, peer, comm->rank, call, (struct nccl_buffers){.receive = to}, stream);
}
