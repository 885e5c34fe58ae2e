/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for the CUDA runtime, over the driver API. Its structures and constants are those of the public CUDA Runtime API; where
 * CUDA 12 and 13 differ, SONAME_MAJOR says which this is.
 */
#ifndef CUWHY_SIM_CUDART_H
#define CUWHY_SIM_CUDART_H

#include "sim/common/standin.h"

/* Codes that the runtime has and the driver has not; the others have the same numbers. */
enum rt_code {
	RT_INVALID_CONFIGURATION = 9,
	RT_INVALID_SYMBOL = 13,
	RT_INVALID_MEMCPY_DIRECTION = 21,
	RT_INSUFFICIENT_DRIVER = 35,
	RT_MISSING_CONFIGURATION = 52,
	RT_INVALID_DEVICE_FUNCTION = 98,
	RT_NOT_SUPPORTED = 801,
};

struct rt_dim3 {
	unsigned int x, y, z;
};

#define RUNTIME(name, params) STANDIN(int, name, params)

/* Keeps the code for cudaGetLastError and returns it. */
int rt_done(int code);
/* Initializes the driver. Returns its code; every call that needs no context begins with it. */
int rt_init(void);
/* Makes a context current: the thread's own, or the primary one of its device. */
int rt_context(void);
/* The device of the calling thread. */
int rt_device(void);

/* A call of the driver's that needs a context, or just the driver, as the body of a function. */
#define RT_WITH_CONTEXT(call)                          \
	do {                                           \
		int code_ = rt_context();              \
		return rt_done(code_ ? code_ : (call)); \
	} while (0)
#define RT_WITH_DRIVER(call)                           \
	do {                                           \
		int code_ = rt_init();                 \
		return rt_done(code_ ? code_ : (call)); \
	} while (0)

/* The kernel behind a host function or a cudaKernel_t. Needs a context. */
int rt_kernel(const void *function, struct sim_func **kernel);
/* The address and size of a __device__ variable. */
int rt_variable(const void *symbol, sim_addr *address, size_t *bytes);

#endif
