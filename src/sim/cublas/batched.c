/* SPDX-License-Identifier: Apache-2.0
 * Factorizations of many small matrices, and whether they went well: they always do, as nothing is computed.
 */
#include "sim/cublas/routine.h"

#define NO_INFO ((int *)NULL)

static int set_info(struct cublas_handle *h, int *host, int *device, int batch)
{
	if (host)
		*host = 0;
	if (!device || !batch)
		return BLAS_SUCCESS;
	return cuMemsetD32Async((sim_addr)(uintptr_t)device, 0, (size_t)batch, h->stream) ? BLAS_EXECUTION_FAILED
											  : BLAS_SUCCESS;
}

#define SOLVER_OF(letter, name, type, params, supported, valid, work, host, device)       \
	STANDIN(int, cublas##letter##name, params)                                        \
	{                                                                                 \
		STANDIN_KERNEL(kernel, "cublas_" #name "_" #type);                        \
		int status = BLAS_SUCCESS;                                                \
		if (!handle)                                                              \
			return BLAS_NOT_INITIALIZED;                                      \
		if (!(valid))                                                             \
			return BLAS_INVALID_VALUE;                                        \
		if (!(supported))                                                         \
			return BLAS_NOT_SUPPORTED;                                        \
		if ((work) && batch)                                                      \
			status = cublas_launch(handle, &kernel);                          \
		return status ? status : set_info(handle, host, device, batch);           \
	}
#define SOLVER(name, params, supported, valid, work, host, device)                    \
	SOLVER_OF(S, name, f32, params, supported, valid, work, host, device)         \
	SOLVER_OF(D, name, f64, params, supported, valid, work, host, device)         \
	SOLVER_OF(C, name, c64, params, supported, valid, work, host, device)         \
	SOLVER_OF(Z, name, c128, params, supported, valid, work, host, device)

#include "sim/cublas/batched.def"
