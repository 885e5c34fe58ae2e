/* SPDX-License-Identifier: Apache-2.0
 * Two ranks in two processes that use NCCL, linked with it as PyTorch is: ranks MODE. Rank 1 stops after the second collective
 * (`absent`; `stuck`: and nobody complains), calls another one as its third (`diverge`), calls a fourth when the other one has ended (`more`), or
 * both end well (`fine`). What waits is ended by signal 6, as PyTorch's watchdog does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { char bytes[128]; } id_t_;

int cuInit(unsigned int flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int ncclGetUniqueId(id_t_ *id);
int ncclCommInitRank(void **comm, int ranks, id_t_ id, int rank);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream);
int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream);
int ncclCommSplit(void *comm, int color, int key, void **to, void *config);
int ncclCommFinalize(void *comm);
int ncclCommDestroy(void *comm);

static void must(int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s: %d\n", what, code);
		exit(3);
	}
}

static void rank_work(int rank, const id_t_ *id, const char *mode)
{
	unsigned long long from, to;
	void *context, *comm, *half;
	int device;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, rank), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "retain");
	must(cuCtxSetCurrent(context), "current");
	must(cuMemAlloc_v2(&from, 1 << 20), "memory");
	must(cuMemAlloc_v2(&to, 1 << 20), "memory");
	must(ncclCommInitRank(&comm, 2, *id, rank), "init");
	must(ncclCommSplit(comm, 5, rank, &half, NULL), "split");
	must(ncclAllReduce((void *)from, (void *)to, 7, 7, 0, half, NULL), "all_reduce");
	for (int i = 1; i <= 3; i++) {
		if (rank == 1 && i == 3 && (!strcmp(mode, "absent") || !strcmp(mode, "stuck"))) {
			pause();
		} else if (rank == 1 && i == 3 && !strcmp(mode, "diverge")) {
			ncclAllGather((void *)from, (void *)to, 64, 9, comm, NULL);
		} else {
			ncclAllReduce((void *)from, (void *)to, 64, 7, 0, comm, NULL);
		}
	}
	if (rank == 1 && !strcmp(mode, "more"))
		ncclAllReduce((void *)from, (void *)to, 64, 7, 0, comm, NULL);
	if (!strcmp(mode, "fine") || !strcmp(mode, "more")) {
		must(ncclCommFinalize(comm), "finalize");
		must(ncclCommDestroy(half), "destroy");
		must(ncclCommDestroy(comm), "destroy");
		exit(0);
	}
	if (!strcmp(mode, "stuck"))
		pause();
	sleep(1);
	raise(SIGABRT);
}

/* A rank is an image of its own, with the RANK that it was started with. */
static void rank_start(char **argv, int rank, const id_t_ *id)
{
	char number[2] = {(char)('0' + rank), 0}, text[257];

	for (int k = 0; k < 128; k++)
		sprintf(text + 2 * k, "%02x", (unsigned char)id->bytes[k]);
	setenv("RANK", number, 1);
	setenv("WORLD_SIZE", "2", 1);
	execl(argv[0], argv[0], argv[1], number, text, NULL);
	_exit(127);
}

static id_t_ id_of(const char *text)
{
	unsigned int byte;
	id_t_ id;

	for (int k = 0; k < 128; k++) {
		sscanf(text + 2 * k, "%2x", &byte);
		id.bytes[k] = (char)byte;
	}
	return id;
}

int main(int argc, char **argv)
{
	pid_t pid[2];
	id_t_ id;
	int status;

	if (argc == 4) {
		id = id_of(argv[3]);
		rank_work(atoi(argv[2]), &id, argv[1]);
	}
	must(ncclGetUniqueId(&id), "id");
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			rank_start(argv, i, &id);
	}
	waitpid(pid[0], &status, 0);
	if (strcmp(argv[1], "fine") && strcmp(argv[1], "more"))
		kill(pid[1], SIGTERM);
	waitpid(pid[1], NULL, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
