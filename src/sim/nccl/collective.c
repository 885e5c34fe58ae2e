/* SPDX-License-Identifier: Apache-2.0
 * Collectives, messages and groups.
 */
#include "sim/nccl/nccl.h"

#include <stdlib.h>

/* Sends go before receives: in one stream, two ranks that both receive first would wait for each other. */
struct message {
	struct message *next;
	struct nccl_comm *comm;
	struct nccl_call call;
	bool sends;
	int peer;
	struct nccl_buffers buffers;
	struct sim_stream *stream;
};

struct group {
	int depth;
	int code;			/* the first error of a call in it */
	struct message *first, **last;
	struct nccl_comm *joined[NCCL_RANKS_MAX];	/* communicators whose other ranks are not there yet */
	int joins;
};

static __thread struct group group;

bool nccl_in_group(void)
{
	return group.depth > 0;
}

int nccl_group_add_init(struct nccl_comm *comm)
{
	if (group.joins == NCCL_RANKS_MAX)
		return nccl_error(NCCL_INVALID_USAGE, "more than %d communicators in a group", NCCL_RANKS_MAX);
	group.joined[group.joins++] = comm;
	return 0;
}

static int group_error(int code)
{
	if (code && nccl_in_group() && !group.code)
		group.code = code;
	return code;
}

static struct standin_kernel kernels[OP_COUNT] = {
	[OP_ALL_REDUCE] = {.name = "ncclDevKernel_AllReduce"},
	[OP_BROADCAST] = {.name = "ncclDevKernel_Broadcast"},
	[OP_REDUCE] = {.name = "ncclDevKernel_Reduce"},
	[OP_ALL_GATHER] = {.name = "ncclDevKernel_AllGather"},
	[OP_REDUCE_SCATTER] = {.name = "ncclDevKernel_ReduceScatter"},
	[OP_ALL_TO_ALL] = {.name = "ncclDevKernel_AlltoAll"},
	[OP_GATHER] = {.name = "ncclDevKernel_Gather"},
	[OP_SCATTER] = {.name = "ncclDevKernel_Scatter"},
};
STANDIN_KERNEL(kernel_message, "ncclDevKernel_SendRecv");

static bool is_captured(struct sim_stream *stream)
{
	int status = 0;

	return cuStreamIsCapturing(stream, &status) == 0 && status != 0;
}

static int check_call(const struct nccl_comm *comm, const struct nccl_call *call)
{
	int code = nccl_check(comm);

	if (code)
		return code;
	if (!nccl_type_bytes(call->type))
		return nccl_error(NCCL_INVALID_ARGUMENT, "data type %d does not exist", (int)call->type);
	if (call->root < -1 || call->root >= comm->ranks)
		return nccl_error(NCCL_INVALID_ARGUMENT, "rank %d does not exist in a communicator of %d",
				  (int)call->root, comm->ranks);
	if (call->redop < -1 || call->redop >= comm->next_redop)
		return nccl_error(NCCL_INVALID_ARGUMENT, "reduction %d does not exist", (int)call->redop);
	return 0;
}

/* Null is allowed where nothing is read or written. */
static int check_buffers(const struct nccl_comm *comm, const struct nccl_call *call, struct nccl_buffers b)
{
	bool root = call->root < 0 || call->root == comm->rank;
	bool sends = root || (call->op != OP_BROADCAST && call->op != OP_SCATTER);
	bool receives = root || (call->op != OP_REDUCE && call->op != OP_GATHER);

	if (call->count == 0 || ((b.send || !sends) && (b.receive || !receives)))
		return 0;
	return nccl_error(NCCL_INVALID_ARGUMENT, "a buffer of a collective is null");
}

/* In the context of the communicator's device. */
static int run(struct nccl_comm *comm, const struct nccl_call *call, struct nccl_buffers b, struct sim_stream *stream)
{
	int code = nccl_take_buffers(comm);

	if (code)
		return code;
	if (standin_launch(&kernels[call->op], stream))
		return nccl_error(NCCL_UNHANDLED_CUDA_ERROR, "cannot launch a kernel");
	if (!nccl_has_values(comm, call) || is_captured(stream))
		return 0;
	return nccl_exchange(comm, call, b, stream);
}

static int collective(struct nccl_comm *comm, const struct nccl_call *call, struct nccl_buffers b,
		      struct sim_stream *stream)
{
	struct sim_ctx *before = NULL;
	int code = check_call(comm, call);

	if (code == 0)
		code = check_buffers(comm, call, b);
	if (code == 0)
		code = nccl_enter(comm, call);
	if (code == 0 && (cuCtxGetCurrent(&before) || cuCtxSetCurrent(comm->context)))
		code = NCCL_UNHANDLED_CUDA_ERROR;
	if (code == 0) {
		code = run(comm, call, b, stream);
		cuCtxSetCurrent(before);
	}
	return group_error(code);
}

#define COMM_AND_STREAM struct nccl_comm *comm, struct sim_stream *stream

STANDIN(int, ncclAllReduce, (const void *send, void *receive, size_t count, int type, int redop, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_ALL_REDUCE, .type = type, .root = -1, .redop = redop};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclReduceScatter, (const void *send, void *receive, size_t count, int type, int redop, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_REDUCE_SCATTER, .type = type, .root = -1, .redop = redop};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclReduce, (const void *send, void *receive, size_t count, int type, int redop, int root, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_REDUCE, .type = type, .root = root, .redop = redop};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclBroadcast, (const void *send, void *receive, size_t count, int type, int root, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_BROADCAST, .type = type, .root = root, .redop = -1};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclBcast, (void *buffer, size_t count, int type, int root, COMM_AND_STREAM))
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

STANDIN(int, ncclAllGather, (const void *send, void *receive, size_t count, int type, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_ALL_GATHER, .type = type, .root = -1, .redop = -1};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclAlltoAll, (const void *send, void *receive, size_t count, int type, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_ALL_TO_ALL, .type = type, .root = -1, .redop = -1};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclGather, (const void *send, void *receive, size_t count, int type, int root, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_GATHER, .type = type, .root = root, .redop = -1};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

STANDIN(int, ncclScatter, (const void *send, void *receive, size_t count, int type, int root, COMM_AND_STREAM))
{
	struct nccl_call c = {.count = count, .op = OP_SCATTER, .type = type, .root = root, .redop = -1};

	return collective(comm, &c, (struct nccl_buffers){send, receive}, stream);
}

static int run_message(const struct message *m, bool launches)
{
	struct sim_ctx *before = NULL;
	int me = m->comm->rank, code;

	code = nccl_enter_message(m->comm, m->sends ? me : m->peer, m->sends ? m->peer : me, m->sends, &m->call);
	if (code == 0 && (cuCtxGetCurrent(&before) || cuCtxSetCurrent(m->comm->context)))
		return NCCL_UNHANDLED_CUDA_ERROR;
	if (code)
		return code;
	code = nccl_take_buffers(m->comm);
	if (code == 0 && launches && standin_launch(&kernel_message, m->stream))
		code = nccl_error(NCCL_UNHANDLED_CUDA_ERROR, "cannot launch a kernel");
	if (code == 0 && !is_captured(m->stream))
		code = m->sends ? nccl_send_message(m->comm, m->peer, &m->call, m->buffers.send, m->stream)
				: nccl_receive_message(m->comm, m->peer, &m->call, m->buffers.receive, m->stream);
	cuCtxSetCurrent(before);
	return code;
}

static int add_to_group(const struct message *m)
{
	struct message *copy = malloc(sizeof(*copy));

	if (!copy)
		return NCCL_SYSTEM_ERROR;
	*copy = *m;
	copy->next = NULL;
	if (!group.first)
		group.last = &group.first;
	*group.last = copy;
	group.last = &copy->next;
	return 0;
}

static int message(const struct message *m)
{
	int code = check_call(m->comm, &m->call);

	if (code == 0 && m->call.count && !m->buffers.send && !m->buffers.receive)
		code = nccl_error(NCCL_INVALID_ARGUMENT, "the buffer of a message is null");
	if (code)
		return group_error(code);
	return nccl_in_group() ? group_error(add_to_group(m)) : run_message(m, true);
}

STANDIN(int, ncclSend, (const void *buffer, size_t count, int type, int peer, COMM_AND_STREAM))
{
	struct message m = {.comm = comm,
			    .call = {.count = count, .type = type, .root = peer, .redop = -1},
			    .sends = true,
			    .peer = peer,
			    .buffers = {.send = buffer}, .stream = stream};

	return peer < 0 ? group_error(NCCL_INVALID_ARGUMENT) : message(&m);
}

STANDIN(int, ncclRecv, (void *buffer, size_t count, int type, int peer, COMM_AND_STREAM))
{
	struct message m = {.comm = comm, .call = {.count = count, .type = type, .root = peer, .redop = -1}, .peer = peer,
			    .buffers = {.receive = buffer}, .stream = stream};

	return peer < 0 ? group_error(NCCL_INVALID_ARGUMENT) : message(&m);
}

STANDIN(int, ncclGroupStart, (void))
{
	group.depth++;
	return 0;
}

/* One kernel for all messages of a group, as NCCL does it. */
static int run_messages(void)
{
	bool launched = false;
	int code = 0;

	for (int sends = 1; sends >= 0; sends--)
		for (const struct message *m = group.first; code == 0 && m; m = m->next)
			if (m->sends == (sends == 1)) {
				code = run_message(m, !launched);
				launched = true;
			}
	return code;
}

static void group_clear(void)
{
	while (group.first) {
		struct message *m = group.first;

		group.first = m->next;
		free(m);
	}
	group = (struct group){0};
}

static int group_end(void)
{
	int code = group.code;

	for (int i = 0; code == 0 && i < group.joins; i++)
		code = nccl_wait_for_all(group.joined[i]);
	if (code == 0)
		code = run_messages();
	group_clear();
	return code;
}

STANDIN(int, ncclGroupEnd, (void))
{
	if (!nccl_in_group())
		return nccl_error(NCCL_INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
	if (group.depth > 1) {
		group.depth--;
		return 0;
	}
	return group_end();
}

/* ncclSimInfo_t: size, magic, version, then the time in microseconds. No time is known; the group is dropped. */
STANDIN(int, ncclGroupSimulateEnd, (void *info))
{
	if (!nccl_in_group())
		return nccl_error(NCCL_INVALID_USAGE, "ncclGroupSimulateEnd without ncclGroupStart");
	(void)info;
	group_clear();
	return standin_refuse("ncclGroupSimulateEnd", NCCL_INVALID_USAGE);
}
