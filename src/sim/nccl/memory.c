/* SPDX-License-Identifier: Apache-2.0
 * Memory of communicators: a model, and the functions that allocate or register.
 */
#include "sim/nccl/nccl.h"

#include <stdlib.h>

/* Buffers of one connection, by NCCL's documentation and published source (init.cc, device.h): 4 MiB for large messages
 * (NCCL_BUFFSIZE), 8 lines of 16 bytes in 8 steps for each of 512 threads (LL), and 120 words in 8 steps for each of 640 (LL128). */
#define BUFFER_SIMPLE ((size_t)4 << 20)
#define BUFFER_LL     ((size_t)8 * 16 * 8 * 512)
#define BUFFER_LL128  ((size_t)120 * 8 * 8 * 640)

/* A positive number of the environment's. */
static size_t setting(const char *name, size_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long value = text ? strtoull(text, &end, 10) : 0;

	return text && end != text && value > 0 ? (size_t)value : otherwise;
}

/* GPUs that NVLink connects have many channels: 24 on an A100 or H100 machine with NVSwitch, as NCCL_DEBUG=INFO prints
 * ("24 coll channels"); others have 2 rings. By compute capability, because the simulated driver has no topology. */
static size_t channels(int device)
{
	int major = 0, minor = 0;
	bool nvlink = false;
	size_t most = setting("NCCL_MAX_NCHANNELS", setting("NCCL_MAX_CTAS", 64)), usual;

	if (cuDeviceComputeCapability(&major, &minor, device) == 0)
		nvlink = (minor == 0 && major >= 7 && major <= 10) || (major == 10 && minor == 3);
	usual = nvlink ? 24 : 2;
	return usual < most ? usual : most;
}

/* One connection per channel: that of the ring. Trees, NVLS and messages between ranks take more when they are first used; what
 * they take is not modeled. Not measured against a card. */
static size_t ring_bytes(int device)
{
	return channels(device) * (setting("NCCL_BUFFSIZE", BUFFER_SIMPLE) + BUFFER_LL + BUFFER_LL128);
}

/* By the first collective: since 2.22, NCCL connects ranks when it first needs to (NCCL_RUNTIME_CONNECT). */
int nccl_take_buffers(struct nccl_comm *comm)
{
	if (comm->buffers || comm->ranks < 2)
		return 0;
	comm->buffer_bytes = ring_bytes(comm->device);
	if (cuMemAlloc_v2(&comm->buffers, comm->buffer_bytes) == 0)
		return 0;
	comm->buffers = 0;
	comm->buffer_bytes = 0;
	return nccl_error(NCCL_UNHANDLED_CUDA_ERROR, "out of memory for the buffers of a communicator");
}

STANDIN(int, ncclMemAlloc, (void **address, size_t bytes))
{
	sim_addr at = 0;

	if (!address || !bytes)
		return nccl_error(NCCL_INVALID_ARGUMENT, "ncclMemAlloc without a size or a pointer");
	if (cuMemAlloc_v2(&at, bytes))
		return nccl_error(NCCL_UNHANDLED_CUDA_ERROR, "ncclMemAlloc: out of memory");
	*address = (void *)(uintptr_t)at;
	return 0;
}

STANDIN(int, ncclMemFree, (void *address))
{
	return cuMemFree_v2((sim_addr)(uintptr_t)address)
		       ? nccl_error(NCCL_UNHANDLED_CUDA_ERROR, "ncclMemFree: not an allocation")
		       : 0;
}

/* Registering saves copies, which are not made here. The handle is the address. */
STANDIN(int, ncclCommRegister, (const struct nccl_comm *comm, void *address, size_t bytes, void **handle))
{
	int code = nccl_check(comm);

	if (code || !handle || !address || !bytes)
		return code ? code : nccl_error(NCCL_INVALID_ARGUMENT, "ncclCommRegister without a buffer");
	*handle = address;
	return 0;
}

STANDIN(int, ncclCommDeregister, (const struct nccl_comm *comm, void *handle))
{
	int code = nccl_check(comm);

	return code ? code : handle ? 0 : NCCL_INVALID_ARGUMENT;
}

/* ncclCommMemStat_t: 0 what can be suspended, 1 whether it is, 2 what cannot, 3 everything. */
STANDIN(int, ncclCommMemStats, (const struct nccl_comm *comm, int stat, uint64_t *value))
{
	int code = nccl_check(comm);

	if (code || !value || stat < 0 || stat > 3)
		return code ? code : NCCL_INVALID_ARGUMENT;
	*value = stat == 0 || stat == 3 ? comm->buffer_bytes : 0;
	return 0;
}
