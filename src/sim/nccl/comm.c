/* SPDX-License-Identifier: Apache-2.0
 * Communicators: made from a unique id, from others, and ended.
 */
#include "sim/nccl/nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 22703 };	/* 2.27.3, of PyTorch 2.8: between what the oldest and the newest wheel bring */

static __thread char last_error[NCCL_TEXT];

int nccl_error(int code, const char *format, ...)
{
	char text[NCCL_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(last_error, text, sizeof(last_error));
	return code;
}

int nccl_check(const struct nccl_comm *comm)
{
	return comm ? 0 : nccl_error(NCCL_INVALID_ARGUMENT, "the communicator is null");
}

STANDIN(const char *, ncclGetErrorString, (int code))
{
	switch (code) {
	case 0: return "no error";
	case NCCL_UNHANDLED_CUDA_ERROR: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
	case NCCL_SYSTEM_ERROR: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
	case NCCL_INTERNAL_ERROR: return "internal error - please report this issue to the NCCL developers";
	case NCCL_INVALID_ARGUMENT: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
	case NCCL_INVALID_USAGE: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
	case NCCL_REMOTE_ERROR: return "remote process exited or there was a network error";
	case 7: return "NCCL operation in progress";
	case 8: return "NCCL operation timed out";
	default: return "unknown result code";
	}
}

/* PyTorch appends it to its message. */
STANDIN(const char *, ncclGetLastError, (const struct nccl_comm *comm))
{
	if (!last_error[0] && comm && comm->shared && atomic_load(&comm->shared->failed))
		snprintf(last_error, sizeof(last_error), "%s", comm->shared->failure);
	return last_error;
}

STANDIN(int, ncclCommGetAsyncError, (struct nccl_comm * comm, int *code))
{
	if (!comm || !code)
		return nccl_error(NCCL_INVALID_ARGUMENT,
				  "ncclCommGetAsyncError without a communicator or a place for the answer");
	*code = atomic_load(&comm->shared->failed);
	nccl_own_up(comm);
	if (*code)
		nccl_error(*code, "%s", comm->shared->failure);
	return 0;
}

STANDIN(int, ncclGetVersion, (int *version))
{
	if (!version)
		return NCCL_INVALID_ARGUMENT;
	*version = VERSION;
	return 0;
}

void nccl_comm_retain(struct nccl_comm *comm)
{
	atomic_fetch_add(&comm->users, 1);
}

void nccl_comm_release(struct nccl_comm *comm)
{
	if (atomic_fetch_sub(&comm->users, 1) > 1)
		return;
	nccl_leave(comm);
	free(comm);
}

STANDIN(int, ncclGetUniqueId, (struct nccl_id * id))
{
	return id ? nccl_id_make(id) : nccl_error(NCCL_INVALID_ARGUMENT, "ncclGetUniqueId without a place for the id");
}

/* The thread's context. NCCL asks the CUDA runtime, which makes one on device 0 if there is none. */
static int context_of_thread(struct sim_ctx **context)
{
	if (cuInit(0))
		return NCCL_UNHANDLED_CUDA_ERROR;
	if (cuCtxGetCurrent(context) == 0 && *context)
		return 0;
	return cuDevicePrimaryCtxRetain(context, 0) || cuCtxSetCurrent(*context) ? NCCL_UNHANDLED_CUDA_ERROR : 0;
}

/* Checks and fills it; the current device becomes the communicator's. */
static int comm_new(struct nccl_comm **out, int ranks, int rank)
{
	struct nccl_comm *c;

	if (!out || ranks < 1 || rank < 0 || rank >= ranks)
		return nccl_error(NCCL_INVALID_ARGUMENT, "rank %d of a communicator of %d", rank, ranks);
	if (ranks > NCCL_RANKS_MAX)
		return nccl_error(NCCL_INVALID_USAGE, "the simulated GPU has communicators of at most %d ranks",
				  NCCL_RANKS_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return NCCL_SYSTEM_ERROR;
	*c = (struct nccl_comm){.rank = rank, .ranks = ranks, .next_redop = RED_BUILT_IN};
	atomic_store(&c->users, 1);
	if (context_of_thread(&c->context) || cuCtxGetDevice(&c->device)) {
		free(c);
		return nccl_error(NCCL_UNHANDLED_CUDA_ERROR, "there is no device");
	}
	*out = c;
	return 0;
}

static int comm_open(struct nccl_comm **out, int ranks, int rank, const struct nccl_id *id)
{
	struct nccl_comm *c;
	int code = comm_new(&c, ranks, rank);

	if (code)
		return code;
	code = nccl_join(c, id);
	if (code == 0)
		code = nccl_in_group() ? nccl_group_add_init(c) : nccl_wait_for_all(c);
	if (code == 0) {
		*out = c;
		return 0;
	}
	if (c->shared && atomic_load(&c->shared->failed))
		nccl_error(code, "%s", c->shared->failure);
	nccl_comm_release(c);
	*out = NULL;
	return code;
}

STANDIN(int, ncclCommInitRank, (struct nccl_comm * *out, int ranks, struct nccl_id id, int rank))
{
	return comm_open(out, ranks, rank, &id);
}

/* What can be configured (channels, clusters, blocking) makes no difference here; NCCL's own check of the size is kept. */
static int check_config(const size_t *config)
{
	return config && *config == 0 ? nccl_error(NCCL_INVALID_ARGUMENT, "ncclConfig_t was not initialized") : 0;
}

STANDIN(int, ncclCommInitRankConfig,
	(struct nccl_comm * *out, int ranks, struct nccl_id id, int rank, const void *config))
{
	int code = check_config(config);

	return code ? code : comm_open(out, ranks, rank, &id);
}

/* Several ids spread the work of meeting; one is enough. */
STANDIN(int, ncclCommInitRankScalable,
	(struct nccl_comm * *out, int ranks, int rank, int ids, const struct nccl_id *id, const void *config))
{
	int code = check_config(config);

	if (code || ids < 1 || !id)
		return code ? code : NCCL_INVALID_ARGUMENT;
	return comm_open(out, ranks, rank, id);
}

/* All ranks in one thread: rank i on device i of the list. */
STANDIN(int, ncclCommInitAll, (struct nccl_comm * *out, int count, const int *devices))
{
	struct sim_ctx *before = NULL, *context;
	struct nccl_id id;
	int code;

	if (!out || count < 1)
		return nccl_error(NCCL_INVALID_ARGUMENT, "ncclCommInitAll for %d devices", count);
	code = nccl_id_make(&id);
	if (code == 0 && cuCtxGetCurrent(&before))
		code = NCCL_UNHANDLED_CUDA_ERROR;
	for (int i = 0; code == 0 && i < count; i++) {
		out[i] = NULL;
		if (cuDevicePrimaryCtxRetain(&context, devices ? devices[i] : i) || cuCtxSetCurrent(context))
			code = NCCL_UNHANDLED_CUDA_ERROR;
		if (code == 0)
			code = comm_new(&out[i], count, i);
		if (code == 0)
			code = nccl_join(out[i], &id);
	}
	for (int i = 0; code == 0 && i < count; i++)
		code = nccl_wait_for_all(out[i]);
	cuCtxSetCurrent(before);
	return code;
}

static int comm_end(struct nccl_comm *comm, bool aborted)
{
	int code = nccl_check(comm);

	if (code)
		return code;
	atomic_store(&comm->aborted, aborted);
	if (aborted)
		nccl_notify(comm->shared);
	/* freeing waits for what runs, as the original does before it ends */
	if (comm->buffers)
		cuMemFree_v2(comm->buffers);
	comm->buffers = 0;
	nccl_comm_release(comm);
	return 0;
}

STANDIN(int, ncclCommDestroy, (struct nccl_comm * comm))
{
	return comm_end(comm, false);
}

STANDIN(int, ncclCommAbort, (struct nccl_comm * comm))
{
	return comm_end(comm, true);
}

/* Nothing is put off until the end. */
STANDIN(int, ncclCommFinalize, (struct nccl_comm * comm))
{
	return nccl_check(comm);
}

/* Ends what runs, but keeps the communicator. */
STANDIN(int, ncclCommRevoke, (struct nccl_comm * comm, int flags))
{
	int code = nccl_check(comm);

	if (code || flags)
		return code ? code : NCCL_INVALID_ARGUMENT;
	atomic_store(&comm->aborted, true);
	nccl_notify(comm->shared);
	return 0;
}

#define COMM_QUESTION(name, field)                                                        \
	STANDIN(int, name, (const struct nccl_comm *comm, int *value))                    \
	{                                                                                 \
		int code = nccl_check(comm);                                              \
		if (code || !value)                                                       \
			return code ? code : nccl_error(NCCL_INVALID_ARGUMENT, #name " without a place for the answer"); \
		*value = comm->field;                                                     \
		return 0;                                                                 \
	}

COMM_QUESTION(ncclCommCount, ranks)
COMM_QUESTION(ncclCommUserRank, rank)
COMM_QUESTION(ncclCommCuDevice, device)

static bool split_is_over(struct nccl_comm *comm, const void *what)
{
	(void)what;
	for (int i = 0; i < comm->ranks; i++)
		if (atomic_load(&comm->shared->rank[i].split_done) < comm->splits - 1)
			return false;
	return true;
}

static bool split_is_posted(struct nccl_comm *comm, const void *what)
{
	(void)what;
	for (int i = 0; i < comm->ranks; i++)
		if (atomic_load(&comm->shared->rank[i].split_posted) < comm->splits)
			return false;
	return true;
}

static bool split_is_named(struct nccl_comm *comm, const void *leader)
{
	return atomic_load(&comm->shared->rank[*(const int *)leader].split_named) >= comm->splits;
}

/* The ranks of this one's color in the order of their keys, and of their ranks where keys are equal. */
struct part {
	int ranks, rank, leader;
};

static struct part part_of(const struct nccl_comm *comm, int64_t color)
{
	const struct nccl_rank *r = comm->shared->rank, *me = &r[comm->rank];
	struct part p = {.leader = comm->rank};

	for (int i = 0; i < comm->ranks; i++) {
		if (r[i].split.color != color)
			continue;
		p.ranks++;
		p.rank += r[i].split.key < me->split.key || (r[i].split.key == me->split.key && i < comm->rank);
		if (r[i].split.key < r[p.leader].split.key || (r[i].split.key == r[p.leader].split.key && i < p.leader))
			p.leader = i;
	}
	return p;
}

static int split_join(struct nccl_comm *comm, int color, struct nccl_comm **out)
{
	struct nccl_rank *me = &comm->shared->rank[comm->rank];
	struct part p = part_of(comm, color);
	struct nccl_id id;
	int code = 0;

	if (p.leader == comm->rank) {
		code = nccl_id_make(&me->split.id);
		atomic_store(&me->split_named, comm->splits);
		nccl_notify(comm->shared);
	}
	if (code == 0)
		code = nccl_wait(comm, split_is_named, &p.leader);
	if (code)
		return code;
	id = comm->shared->rank[p.leader].split.id;
	return comm_open(out, p.ranks, p.rank, &id);
}

STANDIN(int, ncclCommSplit, (struct nccl_comm * comm, int color, int key, struct nccl_comm **out, const void *config))
{
	int code = nccl_check(comm);
	struct nccl_rank *me;

	if (code == 0)
		code = check_config(config);
	if (code || !out || color < -1)
		return code ? code : nccl_error(NCCL_INVALID_ARGUMENT, "ncclCommSplit with color %d", color);
	*out = NULL;
	comm->splits++;
	me = &comm->shared->rank[comm->rank];
	code = nccl_wait(comm, split_is_over, NULL);
	if (code)
		return code;
	me->split.color = color;
	me->split.key = key;
	atomic_store(&me->split_posted, comm->splits);
	nccl_notify(comm->shared);
	code = nccl_wait(comm, split_is_posted, NULL);
	/* color -1: takes part in splitting, and in none of the parts */
	if (code == 0 && color >= 0)
		code = split_join(comm, color, out);
	atomic_store(&me->split_done, comm->splits);
	nccl_notify(comm->shared);
	return code;
}

static bool is_shrunk(struct nccl_comm *comm, const void *what)
{
	(void)what;
	return atomic_load(&comm->shared->shrunk[comm->shrinks % NCCL_SHRINKS].number) == comm->shrinks;
}

static bool is_listed(int rank, const int *list, int count)
{
	for (int i = 0; i < count; i++)
		if (list[i] == rank)
			return true;
	return false;
}

/* The ranks that stay call it; they know each other from the list. */
STANDIN(int, ncclCommShrink,
	(struct nccl_comm * comm, const int *gone, int count, struct nccl_comm **out, const void *config, int flags))
{
	struct nccl_id id;
	int ranks = 0, rank = 0, code = nccl_check(comm);

	(void)flags;
	if (code == 0)
		code = check_config(config);
	if (code || !out || count < 0 || (count > 0 && !gone) || is_listed(comm->rank, gone, count))
		return code ? code : nccl_error(NCCL_INVALID_ARGUMENT, "ncclCommShrink by a rank that is excluded");
	*out = NULL;
	for (int i = 0; i < comm->ranks; i++)
		if (!is_listed(i, gone, count)) {
			rank += i < comm->rank;
			ranks++;
		}
	comm->shrinks++;
	if (rank == 0) {
		code = nccl_id_make(&comm->shared->shrunk[comm->shrinks % NCCL_SHRINKS].id);
		atomic_store(&comm->shared->shrunk[comm->shrinks % NCCL_SHRINKS].number, comm->shrinks);
		nccl_notify(comm->shared);
	}
	if (code == 0)
		code = nccl_wait(comm, is_shrunk, NULL);
	if (code)
		return code;
	id = comm->shared->shrunk[comm->shrinks % NCCL_SHRINKS].id;
	return comm_open(out, ranks, rank, &id);
}

STANDIN(int, ncclRedOpCreatePreMulSum, (int *redop, const void *scalar, int type, int residence, struct nccl_comm *comm))
{
	int code = nccl_check(comm);

	if (code || !redop || !scalar || !nccl_type_bytes(type) || residence < 0 || residence > 1)
		return code ? code : nccl_error(NCCL_INVALID_ARGUMENT, "ncclRedOpCreatePreMulSum of type %d", type);
	*redop = comm->next_redop++;
	return 0;
}

STANDIN(int, ncclRedOpDestroy, (int redop, const struct nccl_comm *comm))
{
	int code = nccl_check(comm);

	if (code)
		return code;
	return redop >= RED_BUILT_IN && redop < comm->next_redop
		       ? 0
		       : nccl_error(NCCL_INVALID_ARGUMENT, "ncclRedOpDestroy of operation %d", redop);
}
