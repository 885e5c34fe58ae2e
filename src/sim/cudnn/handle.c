/* SPDX-License-Identifier: Apache-2.0
 * Handles, streams, errors and kernels.
 */
#include "sim/cudnn/cudnn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cudnn/sizes.h"

static const struct {
	int bits;
	const char *text;
} types[] = {
#define TYPE(name, number, bits, text) [number] = {bits, text},
#include "sim/cudnn/types.def"
#undef TYPE
};

int dnn_type_bits(int type)
{
	return type < 0 || (size_t)type >= sizeof(types) / sizeof(types[0]) ? 0 : types[type].bits;
}

const char *dnn_type_text(int type)
{
	return dnn_type_bits(type) ? types[type].text : "unknown";
}

static const struct {
	int number;
	const char *name;
} statuses[] = {
#define STATUS(name, number) {number, "CUDNN_STATUS_" #name},
#include "sim/cudnn/status.def"
#undef STATUS
};

static __thread const char *last_reason;
static __thread int last_status;

STANDIN(const char *, cudnnGetErrorString, (int status))
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].number == status)
			return statuses[i].name;
	return "CUDNN_UNKNOWN_STATUS";
}

int dnn_fail(int status, const char *reason)
{
	last_status = status;
	last_reason = reason;
	return status;
}

STANDIN(void, cudnnGetLastErrorString, (char *message, size_t size))
{
	if (!message || size == 0)
		return;
	if (last_reason)
		snprintf(message, size, "Error: %s; Reason: %s", cudnnGetErrorString(last_status), last_reason);
	else
		message[0] = 0;
	last_reason = NULL;
}

/* The driver's numbers for cuDeviceGetAttribute. */
enum { ATTR_SMS = 16, ATTR_THREADS_PER_SM = 39, ATTR_MAJOR = 75, ATTR_MINOR = 76 };

struct dnn_device dnn_device(void)
{
	struct dnn_device d = {0};
	int device, major = 0, minor = 0;

	if (cuCtxGetDevice(&device))
		return d;
	cuDeviceGetAttribute(&d.sms, ATTR_SMS, device);
	cuDeviceGetAttribute(&d.threads_per_sm, ATTR_THREADS_PER_SM, device);
	cuDeviceGetAttribute(&major, ATTR_MAJOR, device);
	cuDeviceGetAttribute(&minor, ATTR_MINOR, device);
	d.capability = major * 10 + minor;
	return d;
}

/* Without a context the original makes the primary one of the first GPU, as every library above the runtime does. */
static int need_context(void)
{
	struct sim_ctx *context = NULL;
	int code = cuInit(0);

	if (code == 0)
		code = cuCtxGetCurrent(&context);
	if (code || context)
		return code;
	code = cuDevicePrimaryCtxRetain(&context, 0);
	return code ? code : cuCtxSetCurrent(context);
}

/* The oldest GPUs that cuDNN runs on: 7.5 from 9.11 on (torch/backends/cudnn checks the same), 5.0 before. */
static int oldest_capability(void)
{
	return dnn_version() >= 91100 ? 75 : 50;
}

static int handle_memory(struct dnn_handle *h)
{
	if (HANDLE_BYTES == 0)
		return DNN_SUCCESS;
	return cuMemAlloc_v2(&h->memory, HANDLE_BYTES) ?
		dnn_fail(DNN_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "out of device memory") : DNN_SUCCESS;
}

DNN(cudnnCreate, (struct dnn_handle * *handle))
{
	struct dnn_handle *h;
	int status;

	DNN_NEEDS(handle);
	*handle = NULL;
	DNN_REQUIRE(need_context() == 0, DNN_NOT_INITIALIZED);
	h = calloc(1, sizeof(*h));
	DNN_REQUIRE(h, DNN_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
	h->device = dnn_device();
	status = h->device.capability < oldest_capability()
			 ? dnn_fail(DNN_NOT_SUPPORTED_ARCH_MISMATCH, "this version of cuDNN has no code for this GPU")
			 : handle_memory(h);
	if (status)
		free(h);
	else
		*handle = h;
	return status;
}

DNN(cudnnDestroy, (struct dnn_handle * h))
{
	DNN_NEEDS(h);
	if (h->memory)
		cuMemFree_v2(h->memory);
	free(h);
	return DNN_SUCCESS;
}

DNN(cudnnSetStream, (struct dnn_handle * h, struct sim_stream *stream))
{
	DNN_NEEDS(h);
	h->stream = stream;
	return DNN_SUCCESS;
}

DNN(cudnnGetStream, (struct dnn_handle * h, struct sim_stream **stream))
{
	DNN_NEEDS(h);
	DNN_NEEDS(stream);
	*stream = h->stream;
	return DNN_SUCCESS;
}

enum { NAME_BYTES = 64 };

/* Kernels that were launched once, by name; a process uses a few dozen. */
struct named_kernel {
	struct standin_kernel kernel;
	char name[NAME_BYTES];
	struct named_kernel *next;
};

static _Atomic(struct named_kernel *) kernels;
static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;

static struct named_kernel *find_kernel(const char *name)
{
	struct named_kernel *k = atomic_load(&kernels);

	while (k && strcmp(k->name, name) != 0)
		k = k->next;
	return k;
}

static struct named_kernel *add_kernel(const char *name)
{
	struct named_kernel *k;

	pthread_mutex_lock(&kernels_lock);
	k = find_kernel(name);
	if (!k && (k = calloc(1, sizeof(*k)))) {
		snprintf(k->name, sizeof(k->name), "%s", name);
		k->kernel.name = k->name;
		k->next = atomic_load(&kernels);
		atomic_store(&kernels, k);
	}
	pthread_mutex_unlock(&kernels_lock);
	return k;
}

int dnn_launch(const struct dnn_handle *h, const char *operation, int type, const char *layout)
{
	struct named_kernel *k;
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "cudnn_%s_%s%s%s", operation, dnn_type_text(type), layout ? "_" : "",
		 layout ? layout : "");
	k = find_kernel(name);
	if (!k)
		k = add_kernel(name);
	DNN_REQUIRE(k, DNN_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
	return standin_launch(&k->kernel, h->stream) ? dnn_fail(DNN_EXECUTION_FAILED_CUDART, "the launch failed")
						     : DNN_SUCCESS;
}
