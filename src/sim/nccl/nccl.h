/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for NCCL. Ranks are threads or processes on one machine; they meet in a piece of shared memory that the unique id names.
 *
 * Every collective is checked when it is called: as soon as all ranks have made their Nth call, the calls are compared, and a rank
 * that differs is named. Calls return at once; whoever comes last finds a mismatch, the others learn of it by their next call or by
 * ncclCommGetAsyncError.
 *
 * Small contents (NCCL_VALUES_MAX for each rank) are really moved and reduced, in stream order, because PyTorch reads them back:
 * DDP compares the shapes of its parameters, all_gather_object unpickles what it receives. Larger ones have their sizes checked
 * only, and so have reductions of half, bfloat16 and float8, reductions with a factor, and everything in a captured graph.
 */
#ifndef CUWHY_SIM_NCCL_H
#define CUWHY_SIM_NCCL_H

#include <pthread.h>

#include "sim/common/standin.h"

enum nccl_code {
	NCCL_UNHANDLED_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INTERNAL_ERROR = 3,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
};

enum nccl_op {
	OP_ALL_REDUCE,
	OP_BROADCAST,
	OP_REDUCE,
	OP_ALL_GATHER,
	OP_REDUCE_SCATTER,
	OP_ALL_TO_ALL,
	OP_GATHER,
	OP_SCATTER,
	OP_COUNT
};
enum nccl_redop { RED_SUM, RED_PROD, RED_MAX, RED_MIN, RED_AVG, RED_BUILT_IN };

enum {
	NCCL_ID_BYTES = 128,
	NCCL_RANKS_MAX = 64,		/* on one machine */
	NCCL_VALUES_MAX = 1 << 20,	/* of a rank in a collective */
	NCCL_MESSAGE_MAX = 1 << 16,	/* from one rank to another */
	NCCL_CALLS = 1024,		/* that a rank may be ahead of the slowest */
	NCCL_ROUNDS = 8,		/* collectives with values under way */
	NCCL_MESSAGES = 64,		/* from one rank to another under way */
	NCCL_SHRINKS = 8,
	NCCL_SIDES = 2,
	NCCL_TEXT = 512,
	NCCL_CALL_TEXT = 96,
};

struct nccl_id {			/* ncclUniqueId, passed by value */
	char bytes[NCCL_ID_BYTES];
};

/* What a rank calls. */
struct nccl_call {
	uint64_t count;			/* elements */
	int32_t op, type, root, redop;	/* root and redop: -1 where there is none */
	uint32_t place;			/* in the program; 0: not known */
};

struct nccl_rank {
	_Atomic int32_t joined;
	int32_t pid;
	int32_t label;			/* RANK of torchrun, or the rank in the communicator */
	unsigned char gpu[16];		/* UUID */
	_Atomic uint64_t calls;		/* made so far */
	_Atomic int32_t left;		/* it has ended well: its process did, or it destroyed the communicator */
	struct { int64_t color, key; struct nccl_id id; } split;
	_Atomic uint64_t split_posted, split_named, split_done;
};

/* From one rank to another: the Nth send meets the Nth receive. */
struct nccl_pair {
	uint64_t sends, receives;
	struct nccl_entry {
		uint64_t number;	/* from 1 */
		struct nccl_call call;
	} sent[NCCL_MESSAGES], wanted[NCCL_MESSAGES];
	_Atomic uint64_t published, taken;	/* messages with contents */
};

struct nccl_shared {
	char token[32];
	_Atomic int32_t ranks;		/* 0 until the first one joined */
	_Atomic int32_t met;		/* all ranks have joined: the id is not needed any more */
	_Atomic uint32_t changes;	/* a futex: something happened */
	_Atomic int32_t failed;		/* the code that every call returns from now on */
	char failure[NCCL_TEXT];
	/* The rank that called something else than the others, or one of each side if there is no majority; written before `failed`. */
	struct nccl_blamed {
		int32_t rank;		/* plus 1; 0: none */
		uint32_t place;
		char call[NCCL_CALL_TEXT];
		_Atomic int32_t told;
	} blamed[NCCL_SIDES];
	uint64_t blamed_ns;
	int32_t blame;			/* enum sim_blame */
	_Atomic int32_t lock;		/* of what is not atomic: the process that holds it, or 0 */
	uint64_t checked;		/* collectives that were compared */
	_Atomic uint64_t finished[NCCL_ROUNDS];	/* ranks that are done with the values in each slot, over all rounds */
	struct { _Atomic uint64_t number; struct nccl_id id; } shrunk[NCCL_SHRINKS];
	struct nccl_rank rank[NCCL_RANKS_MAX];
};

struct nccl_comm {
	_Atomic int users;		/* the program, and work in streams */
	_Atomic bool aborted;
	struct nccl_comm *next;		/* of this process */
	int rank, ranks, device;
	struct sim_ctx *context;
	struct nccl_shared *shared;
	size_t shared_bytes;
	uint64_t rounds;		/* collectives with values that this rank called */
	uint64_t splits, shrinks;
	int id_file;			/* open file of the unique id, if this process made it; -1 */
	int next_redop;
	sim_addr buffers;		/* on the device (memory.c) */
	size_t buffer_bytes;
};

/* rendezvous.c */
int nccl_id_make(struct nccl_id *id);
int nccl_join(struct nccl_comm *comm, const struct nccl_id *id);
void nccl_leave(struct nccl_comm *comm);
int nccl_wait_for_all(struct nccl_comm *comm);
/* The parts of the shared memory after its head. */
struct nccl_call *nccl_call_slot(const struct nccl_comm *comm, int rank, uint64_t number);
_Atomic uint64_t *nccl_round_published(const struct nccl_comm *comm, int rank, uint64_t round);
char *nccl_round_values(const struct nccl_comm *comm, int rank, uint64_t round);
struct nccl_pair *nccl_pair(const struct nccl_comm *comm, int from, int to);
char *nccl_message(const struct nccl_comm *comm, int from, int to, uint64_t number);
/* Says that something changed, to whoever waits. */
void nccl_notify(struct nccl_shared *s);
/* Waits until `ready` says so. 0, or the code if the communicator failed, was aborted, or lost a rank meanwhile. */
int nccl_wait(struct nccl_comm *comm, bool (*ready)(struct nccl_comm *comm, const void *what), const void *what);
void nccl_lock(struct nccl_shared *s);
void nccl_unlock(struct nccl_shared *s);
/* Marks the communicator as failed and says why, once. Returns the code. */
int nccl_fail(struct nccl_comm *comm, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* order.c */
size_t nccl_type_bytes(int type);	/* 0: no such type */
/* Enters a collective, or a message, and compares it with those of the others. */
int nccl_enter(struct nccl_comm *comm, const struct nccl_call *call);
int nccl_enter_message(struct nccl_comm *comm, int from, int to, bool sends, const struct nccl_call *call);
/* Some ranks have ended well. Has any other made more calls than one of them? */
bool nccl_has_more_calls(const struct nccl_comm *comm);
/* Fails if calls of others can never end because of that. */
int nccl_check_ended(struct nccl_comm *comm);
/* Waits until all ranks have made the calls that this one has made. */
int nccl_wait_for_calls(struct nccl_comm *comm);
/* If the communicator failed because of this rank, whoever watches the program is told, once. */
void nccl_own_up(struct nccl_comm *comm);

/* exchange.c: what moves in a stream. */
struct nccl_buffers {
	const void *send;
	void *receive;
};
bool nccl_has_values(const struct nccl_comm *comm, const struct nccl_call *call);
int nccl_exchange(struct nccl_comm *comm, const struct nccl_call *call, struct nccl_buffers b, struct sim_stream *stream);
int nccl_send_message(struct nccl_comm *comm, int peer, const struct nccl_call *call, const void *from,
		      struct sim_stream *stream);
int nccl_receive_message(struct nccl_comm *comm, int peer, const struct nccl_call *call, void *to,
			 struct sim_stream *stream);

/* reduce.c: into[i] = into[i] op from[i]; then the average. */
bool nccl_can_reduce(int type, int redop);
void nccl_reduce(int type, int redop, void *into, const void *from, size_t count);
void nccl_average(int type, void *values, size_t count, int ranks);

/* memory.c */
int nccl_take_buffers(struct nccl_comm *comm);

/* comm.c */
void nccl_comm_retain(struct nccl_comm *comm);
void nccl_comm_release(struct nccl_comm *comm);
/* 0, or the code of a communicator that cannot be used. */
int nccl_check(const struct nccl_comm *comm);
/* Remembers it for ncclGetLastError; returns the code. */
int nccl_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* collective.c: in a group, waiting for the other ranks is put off until its end. */
bool nccl_in_group(void);
int nccl_group_add_init(struct nccl_comm *comm);

#endif
