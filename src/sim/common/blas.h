/* SPDX-License-Identifier: Apache-2.0
 * What the stand-ins for cuBLAS and cuBLASLt share: the head of a handle, and what they say about themselves.
 */
#ifndef CUWHY_SIM_BLAS_H
#define CUWHY_SIM_BLAS_H

#include "sim/common/standin.h"
#include "sim/common/blas_abi.h"

/*
 * A cublasHandle_t may be passed where a cublasLtHandle_t is expected (PyTorch does it), so both begin with this.
 * A thread that has no context yet gets the handle's: a thread of autograd's may begin with a product of matrices.
 */
struct blas_head {
	struct sim_ctx *context;
	int capability;			/* 90 for compute capability 9.0 */
};

enum {
	CAPABILITY_MAJOR = 75,		/* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* */
	CAPABILITY_MINOR = 76,
	PRE_BLACKWELL = 99,
};

static inline int blas_capability(void)
{
	int device = 0, major = 0, minor = 0, code = cuCtxGetDevice(&device);

	if (code == 0)
		code = cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, device);
	if (code == 0)
		code = cuDeviceGetAttribute(&minor, CAPABILITY_MINOR, device);
	return code ? 0 : major * 10 + minor;
}

/* Makes the thread's context the head's; without any, the primary context of the first device. */
static inline int blas_head_init(struct blas_head *h)
{
	int code = cuInit(0);

	if (code == 0)
		code = cuCtxGetCurrent(&h->context);
	if (code == 0 && !h->context) {
		code = cuDevicePrimaryCtxRetain(&h->context, 0);
		if (code == 0)
			code = cuCtxSetCurrent(h->context);
	}
	h->capability = code ? 0 : blas_capability();
	return code;
}

static inline int blas_enter(const struct blas_head *h)
{
	struct sim_ctx *current = NULL;
	int code = cuCtxGetCurrent(&current);

	return code || current ? code : cuCtxSetCurrent(h->context);
}

/* The version by its parts: the newest of this major version that a wheel of PyTorch's (2.4 to 2.15) brings along. */
static inline int blas_version_part(int major, int property)
{
	switch (property) {
	case PROPERTY_MINOR:
		return major == 12 ? 8 : 4;
	case PROPERTY_PATCH:
		return major == 12 ? 4 : 1;
	}
	return major;
}

static inline int blas_version(int major)
{
	return major * 10000 + blas_version_part(major, PROPERTY_MINOR) * 100 + blas_version_part(major, PROPERTY_PATCH);
}

static inline const char *blas_status_name(int status)
{
	switch (status) {
#define BLAS_STATUS(number, name, text) \
	case number:                    \
		return "CUBLAS_STATUS_" #name;
#include "sim/common/blas_status.def"
#undef BLAS_STATUS
	}
	return "unknown status";
}

static inline const char *blas_status_text(int status)
{
	switch (status) {
#define BLAS_STATUS(number, name, text) \
	case number:                    \
		return text;
#include "sim/common/blas_status.def"
#undef BLAS_STATUS
	}
	return "unknown status";
}

/* Types of a product: D = A * B + C. */
struct blas_types {
	int a, b, c, d;
	int compute;
};

/* The class of a compute type that rows of blas_gemm.def name: the type that sums are kept in. */
static inline int blas_compute_class(int compute)
{
	switch (compute) {
	case COMPUTE_16F_PEDANTIC:
		return COMPUTE_16F;
	case COMPUTE_32F_PEDANTIC:
		return COMPUTE_32F;
	case COMPUTE_64F_PEDANTIC:
	case COMPUTE_64F_EMULATED:
		return COMPUTE_64F;
	case COMPUTE_32I_PEDANTIC:
		return COMPUTE_32I;
	case COMPUTE_32F_FAST_16BF:
	case COMPUTE_32F_FAST_TF32:
	case COMPUTE_32F_EMULATED:
		return COMPUTE_32F_FAST_16F;
	}
	return compute;
}

#endif
