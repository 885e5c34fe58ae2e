/* SPDX-License-Identifier: Apache-2.0
 * Handles and their settings; the memory that a handle takes.
 */
#include "sim/cublas/cublas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB	      1024ULL
#define MIB	      (1024 * KIB)

/*
 * What cublasCreate takes for its workspaces.
 * Before Hopper: ":4096:2:16:8", published: NVIDIA documents that ":4096:8", 32 MiB, takes about 24 MiB more than the default.
 * Hopper: measured with cuBLAS 13.0 on an H200: 64.1 MiB per handle, 128.3 MiB for two (docs/examples/README.md).
 * Newer: taken to be the same as Hopper.
 */
#define BYTES_HOPPER  (64 * MIB + 136 * KIB)
#define BYTES_DEFAULT (2 * 4096 * KIB + 8 * 16 * KIB)

/* ":4096:2:16:8" is two pieces of 4096 KiB and eight of 16. Anything else is ignored. */
static bool parse_config(const char *text, unsigned long long *bytes)
{
	unsigned int kib, count;
	int used;

	*bytes = 0;
	while (*text) {
		if (sscanf(text, ":%9u:%9u%n", &kib, &count, &used) != 2)
			return false;
		*bytes += kib * KIB * count;
		text += used;
	}
	return true;
}

static unsigned long long workspace_bytes(int capability)
{
	const char *config = getenv("CUBLAS_WORKSPACE_CONFIG");
	unsigned long long bytes;

	if (config && *config && parse_config(config, &bytes))
		return bytes;
	return capability >= 90 ? BYTES_HOPPER : BYTES_DEFAULT;
}

STANDIN(int, cublasCreate_v2, (struct cublas_handle * *handle))
{
	unsigned long long bytes;
	struct cublas_handle *h;

	if (!handle)
		return BLAS_INVALID_VALUE;
	*handle = NULL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return BLAS_ALLOC_FAILED;
	if (blas_head_init(&h->head)) {
		free(h);
		return BLAS_NOT_INITIALIZED;
	}
	bytes = workspace_bytes(h->head.capability);
	/* also after a fault: that a context is lost shows as a failed allocation (huggingface/transformers#12935) */
	if (bytes && cuMemAlloc_v2(&h->workspace, bytes)) {
		free(h);
		return BLAS_ALLOC_FAILED;
	}
	*handle = h;
	return BLAS_SUCCESS;
}

STANDIN(int, cublasDestroy_v2, (struct cublas_handle * handle))
{
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	/* at exit the driver may already be gone: there is nothing to free then */
	if (blas_enter(&handle->head) == 0 && cuCtxSynchronize() == 0 && handle->workspace)
		cuMemFree_v2(handle->workspace);
	free(handle);
	return BLAS_SUCCESS;
}

int cublas_launch(struct cublas_handle *h, struct standin_kernel *k)
{
	int code = blas_enter(&h->head);

	return code || standin_launch_using(k, h->stream, h->given ? h->given : h->workspace) ? BLAS_EXECUTION_FAILED
											      : BLAS_SUCCESS;
}

int cublas_result(struct cublas_handle *h, void *result, size_t bytes)
{
	if (h->pointer_mode == POINTER_DEVICE)
		return BLAS_SUCCESS;
	if (blas_enter(&h->head) || cuStreamSynchronize(h->stream))
		return BLAS_EXECUTION_FAILED;
	memset(result, 0, bytes);
	return BLAS_SUCCESS;
}

STANDIN(int, cublasSetStream_v2, (struct cublas_handle * handle, struct sim_stream *stream))
{
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	handle->stream = stream;
	handle->given = 0;	/* as documented: the workspace is the handle's own again */
	return BLAS_SUCCESS;
}

STANDIN(int, cublasGetStream_v2, (struct cublas_handle * handle, struct sim_stream **stream))
{
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!stream)
		return BLAS_INVALID_VALUE;
	*stream = handle->stream;
	return BLAS_SUCCESS;
}

/* The caller's workspace is the caller's: its alignment is checked, and that it is there when a graph uses it. */
STANDIN(int, cublasSetWorkspace_v2, (struct cublas_handle * handle, void *workspace, size_t bytes))
{
	enum { ALIGNMENT = 256 };

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if ((uintptr_t)workspace % ALIGNMENT || (!workspace && bytes))
		return BLAS_INVALID_VALUE;
	handle->given = (uintptr_t)workspace;
	return BLAS_SUCCESS;
}

/* SETTING(name, field, allowed): cublasSet<name> and cublasGet<name>. */
#define SETTING(name, field, allowed)                                      \
	STANDIN(int, cublasSet##name, (struct cublas_handle * handle, int value)) \
	{                                                                  \
		if (!handle)                                               \
			return BLAS_NOT_INITIALIZED;                       \
		if (!(allowed))                                            \
			return BLAS_INVALID_VALUE;                         \
		handle->field = value;                                     \
		return BLAS_SUCCESS;                                       \
	}                                                                  \
	STANDIN(int, cublasGet##name, (struct cublas_handle * handle, int *value)) \
	{                                                                  \
		if (!handle)                                               \
			return BLAS_NOT_INITIALIZED;                       \
		if (!value)                                                \
			return BLAS_INVALID_VALUE;                         \
		*value = handle->field;                                    \
		return BLAS_SUCCESS;                                       \
	}

enum { MATH_FLAG_NO_REDUCED_PRECISION = 16, MATH_MODE_LAST = 12 };

SETTING(PointerMode_v2, pointer_mode, value == POINTER_HOST || value == POINTER_DEVICE)
SETTING(MathMode, math_mode,
	(value & ~MATH_FLAG_NO_REDUCED_PRECISION) >= 0 && (value & ~MATH_FLAG_NO_REDUCED_PRECISION) <= MATH_MODE_LAST)
SETTING(AtomicsMode, atomics_mode, value == 0 || value == 1)
SETTING(SmCountTarget, sm_count_target, value >= 0)

STANDIN(int, cublasGetVersion_v2, (__attribute__((unused)) struct cublas_handle * handle, int *version))
{
	if (!version)
		return BLAS_INVALID_VALUE;
	*version = blas_version(SONAME_MAJOR);
	return BLAS_SUCCESS;
}

STANDIN(int, cublasGetProperty, (int property, int *value))
{
	if (!value || property < PROPERTY_MAJOR || property > PROPERTY_PATCH)
		return BLAS_INVALID_VALUE;
	*value = blas_version_part(SONAME_MAJOR, property);
	return BLAS_SUCCESS;
}

STANDIN(size_t, cublasGetCudartVersion, (void))
{
	return SONAME_MAJOR * 1000;
}

STANDIN(const char *, cublasGetStatusName, (int status))
{
	return blas_status_name(status);
}

STANDIN(const char *, cublasGetStatusString, (int status))
{
	return blas_status_text(status);
}

/* Nothing is logged. */
STANDIN(int, cublasLoggerConfigure,
	(__attribute__((unused)) int on, __attribute__((unused)) int to_stdout, __attribute__((unused)) int to_stderr,
	 __attribute__((unused)) const char *file))
{
	return BLAS_SUCCESS;
}

STANDIN(int, cublasSetLoggerCallback, (__attribute__((unused)) void (*callback)(const char *)))
{
	return BLAS_SUCCESS;
}

STANDIN(int, cublasGetLoggerCallback, (void (**callback)(const char *)))
{
	if (!callback)
		return BLAS_INVALID_VALUE;
	*callback = NULL;
	return BLAS_SUCCESS;
}
