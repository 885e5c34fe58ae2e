/* SPDX-License-Identifier: Apache-2.0
 * A program that may not write files longer than argv[1] bytes, and uses CUDA: ordinary memory, memory that is mapped at two addresses, memory for
 * another process. What it was told, in words; a launch that fails. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cases/cu.h"

struct prop { int type, handle_types; struct { int type, id; } location; void *win; unsigned char flags[8]; };
struct access { struct { int type, id; } location; int flags; };
CUresult cuMemCreate(unsigned long long *handle, size_t bytes, const struct prop *prop, unsigned long long flags);
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuMemRelease(unsigned long long handle);
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const struct access *access, size_t count);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemExportToShareableHandle(void *out, unsigned long long handle, int type, unsigned long long flags);
CUresult cuIpcGetMemHandle(char handle[64], CUdeviceptr at);

#define PIECE ((size_t)2 << 20)

/* What was written at one address and read at the other; with a handle for other processes, less the answer to a request for one. */
static int two_mappings(int handle_types)
{
	struct prop prop = {.type = 1, .handle_types = handle_types, .location = {1, 0}};
	struct access both = {{1, 0}, 3};
	unsigned long long handle;
	CUdeviceptr at;
	int sent = 7000, got = 0, exported = 0, fd;

	CU_TRY(cuMemCreate(&handle, 2 * PIECE, &prop, 0));
	CU_TRY(cuMemAddressReserve(&at, 4 * PIECE, 0, 0, 0));
	CU_TRY(cuMemMap(at, 2 * PIECE, 0, handle, 0));
	CU_TRY(cuMemMap(at + 2 * PIECE, PIECE, PIECE, handle, 0));
	CU_TRY(cuMemSetAccess(at, 3 * PIECE, &both, 1));
	CU_TRY(cuMemcpyHtoD_v2(at + PIECE + 8, &sent, sizeof(sent)));
	CU_TRY(cuMemcpyDtoH_v2(&got, at + 2 * PIECE + 8, sizeof(got)));
	if (handle_types)
		exported = cuMemExportToShareableHandle(&fd, handle, 1, 0);
	CU_TRY(cuMemUnmap(at, 3 * PIECE));
	CU_TRY(cuMemRelease(handle));
	return got - exported;
}

int main(int argc, char **argv)
{
	rlim_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : RLIM_INFINITY;
	char ipc[64];
	CUfunction nop;
	CUdeviceptr p;
	int shared;

	setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
	nop = cu_start();
	CU_TRY(cuMemAlloc_v2(&p, PIECE));
	shared = cuIpcGetMemHandle(ipc, p);
	printf("two mappings %d; for others %d, IPC %d\n", two_mappings(0), two_mappings(1), shared);
	return cuLaunchKernel(nop, 1, 70000, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}
