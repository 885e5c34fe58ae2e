/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for NVSHMEM: never initialized, so PyTorch's symmetric memory takes another backend or reports that it cannot be used.
 * It would need kernels that read and write memory of other ranks; kernels do not run here.
 */
#include "sim/common/standin.h"

enum { NOT_SUPPORTED = 7 };	/* NVSHMEMX_ERROR_NOT_SUPPORTED */
enum { NOT_INITIALIZED = 0 };	/* NVSHMEM_STATUS_NOT_INITIALIZED */
enum { SPEC_MAJOR = 1, SPEC_MINOR = 3 };

/* Read by the part of NVSHMEM that is linked into PyTorch: which network the kernels use. None. */
STANDIN_EXPORT extern int nvshmem_selected_device_transport;
int nvshmem_selected_device_transport;

STANDIN(int, nvshmemid_init_status, (void))
{
	return NOT_INITIALIZED;
}

STANDIN(void, nvshmem_info_get_version, (int *major, int *minor))
{
	*major = SPEC_MAJOR;
	*minor = SPEC_MINOR;
}

#define NVSHMEM_NO_POINTER(name)                    \
	STANDIN(void *, name, (void))               \
	{                                           \
		standin_refuse(#name, NOT_SUPPORTED); \
		return NULL;                        \
	}

NVSHMEM_NO_POINTER(nvshmem_malloc)
NVSHMEM_NO_POINTER(nvshmem_ptr)
NVSHMEM_NO_POINTER(nvshmemx_mc_ptr)

/* Nothing was allocated, nothing was begun. */
STANDIN(void, nvshmem_free, (void *address))
{
	(void)address;
}

STANDIN(void, nvshmemid_hostlib_finalize, (void *device, void *host))
{
	(void)device;
	(void)host;
}

STANDIN_REFUSED(nvshmemid_hostlib_init_attr, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_get_uniqueid, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_set_attr_uniqueid_args, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_cumodule_init, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmem_team_n_pes, -1)
STANDIN_REFUSED(nvshmem_team_split_strided, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmem_barrier_all, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_alltoallmem_on_stream, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_broadcastmem_on_stream, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_getmem_on_stream, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_putmem_on_stream, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_putmem_signal_on_stream, NOT_SUPPORTED)
STANDIN_REFUSED(nvshmemx_signal_wait_until_on_stream, NOT_SUPPORTED)
