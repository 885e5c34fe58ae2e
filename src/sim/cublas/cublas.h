/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuBLAS. A function checks its arguments as the public API documents, then launches one kernel that computes nothing.
 */
#ifndef CUWHY_SIM_CUBLAS_H
#define CUWHY_SIM_CUBLAS_H

#include "sim/common/blas.h"

enum pointer_mode { POINTER_HOST, POINTER_DEVICE };

struct cublas_handle {
	struct blas_head head;		/* must be first: cuBLASLt takes this handle, too */
	struct sim_stream *stream;
	sim_addr workspace;		/* its own */
	sim_addr given;			/* the caller's */
	int pointer_mode;
	int math_mode;
	int atomics_mode;
	int sm_count_target;
};

/* Launches a kernel in the handle's stream. */
int cublas_launch(struct cublas_handle *h, struct standin_kernel *k);
/* Stores zeros where the caller expects a number: a kernel that computes nothing has no other. Waits for the stream, as the original
 * does; in device memory the number is left as it is. */
int cublas_result(struct cublas_handle *h, void *result, size_t bytes);

#endif
