/* SPDX-License-Identifier: Apache-2.0
 * Tests of the stand-in for NCCL: four ranks, each a process with a simulated GPU of its own. */
#include "standin_load.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

enum { RANKS = 4, INT64 = 4, FLOAT32 = 7, BFLOAT16 = 9, SUM = 0, MAX = 2 };

struct id {
	char bytes[128];
};

struct comm;

/* What the ranks share besides NCCL. */
static struct meeting {
	_Atomic int ready;
	struct id id;
} * meeting;

static struct nccl {
	int (*ncclGetUniqueId)(struct id *id);
	int (*ncclCommInitRank)(struct comm **comm, int ranks, struct id id, int rank);
	int (*ncclCommDestroy)(struct comm *comm);
	int (*ncclCommAbort)(struct comm *comm);
	int (*ncclCommCount)(const struct comm *comm, int *count);
	int (*ncclCommUserRank)(const struct comm *comm, int *rank);
	int (*ncclCommGetAsyncError)(const struct comm *comm, int *code);
	int (*ncclCommSplit)(struct comm *comm, int color, int key, struct comm **out, void *config);
	int (*ncclAllReduce)(const void *from, void *to, size_t count, int type, int op, struct comm *comm,
			     struct sim_stream *stream);
	int (*ncclReduceScatter)(const void *from, void *to, size_t count, int type, int op, struct comm *comm,
				 struct sim_stream *stream);
	int (*ncclBroadcast)(const void *from, void *to, size_t count, int type, int root, struct comm *comm,
			     struct sim_stream *stream);
	int (*ncclAllGather)(const void *from, void *to, size_t count, int type, struct comm *comm,
			     struct sim_stream *stream);
	int (*ncclAlltoAll)(const void *from, void *to, size_t count, int type, struct comm *comm,
			    struct sim_stream *stream);
	int (*ncclSend)(const void *from, size_t count, int type, int peer, struct comm *comm, struct sim_stream *stream);
	int (*ncclRecv)(void *to, size_t count, int type, int peer, struct comm *comm, struct sim_stream *stream);
	int (*ncclGroupStart)(void);
	int (*ncclGroupEnd)(void);
} nccl;

#define LOAD(name)                                                \
	do {                                                      \
		void *found_ = dlsym(lib, #name);                 \
		CHECK(found_);                                    \
		memcpy(&nccl.name, &found_, sizeof(found_));      \
	} while (0)

static void load(void)
{
	void *lib = standin_open("libnccl.so.2");

	LOAD(ncclGetUniqueId);
	LOAD(ncclCommInitRank);
	LOAD(ncclCommDestroy);
	LOAD(ncclCommAbort);
	LOAD(ncclCommCount);
	LOAD(ncclCommUserRank);
	LOAD(ncclCommGetAsyncError);
	LOAD(ncclCommSplit);
	LOAD(ncclAllReduce);
	LOAD(ncclReduceScatter);
	LOAD(ncclBroadcast);
	LOAD(ncclAllGather);
	LOAD(ncclAlltoAll);
	LOAD(ncclSend);
	LOAD(ncclRecv);
	LOAD(ncclGroupStart);
	LOAD(ncclGroupEnd);
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* A communicator of all ranks, on the current device. */
static struct comm *meet(int rank, int code)
{
	struct comm *comm = NULL;

	if (rank == 0) {
		OK(nccl.ncclGetUniqueId(&meeting->id));
		atomic_store(&meeting->ready, 1);
	}
	while (!atomic_load(&meeting->ready))
		nap();
	EXPECT(nccl.ncclCommInitRank(&comm, RANKS, meeting->id, rank), code);
	return comm;
}

/* A communicator of all ranks, on device `device`. */
static struct comm *join(int rank, int device, int code)
{
	struct sim_ctx *ctx;

	load();
	OK(cu.cuInit(0));
	OK(cu.cuDevicePrimaryCtxRetain(&ctx, device));
	OK(cu.cuCtxSetCurrent(ctx));
	return meet(rank, code);
}

/* Runs the ranks; what they wrote to stderr, and their exit codes. */
static char said[8192];
static int exits[RANKS];

static void run_ranks(void (*body)(int rank), const char *setting)
{
	int pipes[2], status;
	pid_t pid[RANKS];
	ssize_t n;
	size_t used = 0;

	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(meeting != MAP_FAILED);
	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	for (int rank = 0; rank < RANKS; rank++) {
		pid[rank] = fork();
		assert_true(pid[rank] >= 0);
		if (pid[rank] == 0) {
			alarm(300);	/* a slow machine is no failure */
			close(pipes[0]);
			dup2(pipes[1], STDERR_FILENO);
			close(pipes[1]);
			setenv("CUWHY_SIM", setting, 1);
			unsetenv("RANK");
			sim_open();
			body(rank);
			exit(0);
		}
	}
	close(pipes[1]);
	while (used < sizeof(said) - 1 && (n = read(pipes[0], said + used, sizeof(said) - 1 - used)) > 0)
		used += (size_t)n;
	said[used] = '\0';
	close(pipes[0]);
	for (int rank = 0; rank < RANKS; rank++) {
		assert_int_equal(waitpid(pid[rank], &status, 0), pid[rank]);
		exits[rank] = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	}
	munmap(meeting, sizeof(*meeting));
}

static void assert_all_ended_well(void)
{
	if (said[0])
		fprintf(stderr, "%s", said);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(exits[rank], 0);
}

static sim_addr device_longs(const int64_t *values, size_t count)
{
	sim_addr at;

	OK(cu.cuMemAlloc_v2(&at, count * sizeof(*values)));
	OK(cu.cuMemcpyHtoD_v2(at, values, count * sizeof(*values)));
	return at;
}

#define AT(address) ((void *)(uintptr_t)(address))

static void check_longs(sim_addr at, const int64_t *values, size_t count)
{
	int64_t got[16];

	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemcpyDtoH_v2(got, at, count * sizeof(*got)));
	for (size_t i = 0; i < count; i++)
		CHECK(got[i] == values[i]);
}

static void collectives(int rank)
{
	int64_t zeros[4] = {0}, mine[4] = {rank, rank + 1, rank + 2, rank + 3};
	struct comm *comm = join(rank, rank, 0);
	sim_addr from = device_longs(mine, 4), to = device_longs(zeros, 4);
	int count, me;

	OK(nccl.ncclCommCount(comm, &count));
	OK(nccl.ncclCommUserRank(comm, &me));
	CHECK(count == RANKS && me == rank);
	/* more often than contents can be under way at a time */
	for (int i = 0; i < 40; i++)
		OK(nccl.ncclAllReduce(AT(from), AT(to), 4, INT64, SUM, comm, NULL));
	check_longs(to, (int64_t[]){6, 10, 14, 18}, 4);
	OK(nccl.ncclAllReduce(AT(from), AT(to), 4, INT64, MAX, comm, NULL));
	check_longs(to, (int64_t[]){3, 4, 5, 6}, 4);
	OK(nccl.ncclAllGather(AT(from), AT(to), 1, INT64, comm, NULL));
	check_longs(to, (int64_t[]){0, 1, 2, 3}, 4);
	OK(nccl.ncclBroadcast(AT(from), AT(to), 2, INT64, 2, comm, NULL));
	check_longs(to, (int64_t[]){2, 3}, 2);
	OK(nccl.ncclReduceScatter(AT(from), AT(to), 1, INT64, SUM, comm, NULL));
	check_longs(to, (int64_t[]){6 + 4 * rank}, 1);
	OK(nccl.ncclAlltoAll(AT(from), AT(to), 1, INT64, comm, NULL));
	check_longs(to, (int64_t[]){rank, rank + 1, rank + 2, rank + 3}, 4);
	/* a large one: sizes only, and nobody waits */
	OK(nccl.ncclAllReduce(AT(from), AT(from), (size_t)1 << 30, FLOAT32, SUM, comm, NULL));
	OK(cu.cuCtxSynchronize());
	OK(nccl.ncclCommDestroy(comm));
}

static void nccl__small_contents_are_moved_and_reduced(void **state)
{
	(void)state;
	run_ranks(collectives, "tiny,devices=4");
	assert_all_ended_well();
}

/* Each receives before it sends: a group does both at once. */
static void ring(int rank)
{
	struct comm *comm = join(rank, rank, 0);
	sim_addr from = device_longs((int64_t[]){100 + rank}, 1), to = device_longs((int64_t[]){0}, 1);
	int before = (rank + RANKS - 1) % RANKS;

	OK(nccl.ncclGroupStart());
	OK(nccl.ncclRecv(AT(to), 1, INT64, before, comm, NULL));
	OK(nccl.ncclSend(AT(from), 1, INT64, (rank + 1) % RANKS, comm, NULL));
	OK(nccl.ncclGroupEnd());
	check_longs(to, (int64_t[]){100 + before}, 1);
	EXPECT(nccl.ncclSend(AT(from), 1, INT64, RANKS, comm, NULL), 4);
	EXPECT(nccl.ncclGroupEnd(), 5);
	OK(nccl.ncclCommDestroy(comm));
}

static void first_of_all(int rank)
{
	int64_t one = 1, sum = RANKS;
	sim_addr at;
	char visible[2] = {(char)('0' + rank)};
	struct comm *comm;

	setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	load();
	comm = meet(rank, 0);
	at = device_longs(&one, 1);
	OK(nccl.ncclAllReduce(AT(at), AT(at), 1, INT64, SUM, comm, NULL));
	check_longs(at, &sum, 1);
}

static void nccl__a_communicator_needs_no_call_of_cuda_before_it(void **state)
{
	(void)state;
	run_ranks(first_of_all, "tiny,devices=4");
	assert_all_ended_well();
}

static void nccl__a_group_receives_and_sends_at_once(void **state)
{
	(void)state;
	run_ranks(ring, "tiny,devices=4");
	assert_all_ended_well();
}

/* Odd and even ranks, in reverse order; then one half only. */
static void parts(int rank)
{
	struct comm *comm = join(rank, rank, 0), *part = NULL;
	sim_addr values = device_longs((int64_t[]){rank}, 1);
	int me, count;

	OK(nccl.ncclCommSplit(comm, rank % 2, -rank, &part, NULL));
	OK(nccl.ncclCommCount(part, &count));
	OK(nccl.ncclCommUserRank(part, &me));
	CHECK(count == 2 && me == (rank < 2));
	OK(nccl.ncclAllReduce(AT(values), AT(values), 1, INT64, SUM, part, NULL));
	check_longs(values, (int64_t[]){rank % 2 ? 4 : 2}, 1);
	OK(nccl.ncclCommDestroy(part));
	OK(nccl.ncclCommSplit(comm, rank < 2 ? 0 : -1, rank, &part, NULL));
	CHECK((part != NULL) == (rank < 2));
	OK(nccl.ncclCommDestroy(comm));
}

static void nccl__a_communicator_is_split_by_color_and_key(void **state)
{
	(void)state;
	run_ranks(parts, "tiny,devices=4");
	assert_all_ended_well();
}

static void wait_for_async_error(struct comm *comm, int expected)
{
	int code = 0;

	for (int i = 0; i < 5000 && code == 0; i++) {
		OK(nccl.ncclCommGetAsyncError(comm, &code));
		nap();
	}
	CHECK(code == expected);
}

static void mismatch(int rank)
{
	struct comm *comm = join(rank, rank, 0);
	sim_addr values;
	int code;

	OK(cu.cuMemAlloc_v2(&values, 16384));
	OK(nccl.ncclAllReduce(AT(values), AT(values), 4096, FLOAT32, SUM, comm, NULL));
	if (rank == 3)
		code = nccl.ncclAllGather(AT(values), AT(values), 1024, BFLOAT16, comm, NULL);
	else
		code = nccl.ncclAllReduce(AT(values), AT(values), 4096, FLOAT32, SUM, comm, NULL);
	CHECK(code == 0 || code == 5);
	wait_for_async_error(comm, 5);
	EXPECT(nccl.ncclAllReduce(AT(values), AT(values), 4096, FLOAT32, SUM, comm, NULL), 5);
	OK(nccl.ncclCommAbort(comm));
}

static void nccl__the_rank_that_differs_is_named_once(void **state)
{
	static const char sentence[] =
		"cuwhy: NCCL: rank 3 calls all_gather of 1,024 bfloat16 where the others call all_reduce of 4,096 "
		"float32 (collective 2 of the communicator)\n";

	(void)state;
	run_ranks(mismatch, "tiny,devices=4");
	assert_string_equal(said, sentence);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(exits[rank], 0);
}

static void same_gpu(int rank)
{
	join(rank, rank == 1 ? 0 : rank, 5);
}

static void nccl__two_ranks_on_one_gpu_are_refused(void **state)
{
	(void)state;
	run_ranks(same_gpu, "tiny,devices=4");
	assert_string_equal(said, "cuwhy: NCCL: duplicate GPU: rank 0 and rank 1 both use the same device\n");
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(exits[rank], 0);
}

static void killed(int rank)
{
	struct comm *comm = join(rank, rank, 0);
	sim_addr values = device_longs((int64_t[]){rank}, 1);

	if (rank == 2)
		raise(SIGKILL);
	OK(nccl.ncclAllReduce(AT(values), AT(values), 1, INT64, SUM, comm, NULL));
	wait_for_async_error(comm, 6);
	OK(nccl.ncclCommAbort(comm));
}

static int entries_of(const char *folder)
{
	DIR *d = opendir(folder);
	int n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void nccl__a_killed_rank_is_named_and_leaves_no_file(void **state)
{
	int before = entries_of("/dev/shm");

	(void)state;
	run_ranks(killed, "tiny,devices=4");
	assert_non_null(strstr(said, "cuwhy: NCCL: the process of rank 2 ("));
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(exits[rank], rank == 2 ? -SIGKILL : 0);
	assert_int_equal(entries_of("/dev/shm"), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nccl__small_contents_are_moved_and_reduced),
		cmocka_unit_test(nccl__a_communicator_needs_no_call_of_cuda_before_it),
		cmocka_unit_test(nccl__a_group_receives_and_sends_at_once),
		cmocka_unit_test(nccl__a_communicator_is_split_by_color_and_key),
		cmocka_unit_test(nccl__the_rank_that_differs_is_named_once),
		cmocka_unit_test(nccl__two_ranks_on_one_gpu_are_refused),
		cmocka_unit_test(nccl__a_killed_rank_is_named_and_leaves_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
