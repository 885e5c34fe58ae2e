/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for CUPTI: whatever is enabled is accepted, and no activity is ever recorded. PyTorch's profiler then shows what the CPU
 * did, and no kernels: a time of a kernel that did not run would be invented.
 */
#include "sim/common/standin.h"

enum cupti_code {
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_QUEUE_EMPTY = 18,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

/* CUPTI_API_VERSION: a number of its own until CUDA 12, then that of CUDA. */
enum { API_VERSION = SONAME_MAJOR >= 13 ? SONAME_MAJOR * 10000 : 22 };

STANDIN(int, cuptiGetVersion, (uint32_t * version))
{
	if (!version)
		return CUPTI_INVALID_PARAMETER;
	*version = API_VERSION;
	return 0;
}

STANDIN(int, cuptiGetResultString, (int code, const char **text))
{
	if (!text)
		return CUPTI_INVALID_PARAMETER;
	switch (code) {
	case 0: *text = "CUPTI_SUCCESS"; return 0;
	case CUPTI_INVALID_PARAMETER: *text = "CUPTI_ERROR_INVALID_PARAMETER"; return 0;
	case CUPTI_MAX_LIMIT_REACHED: *text = "CUPTI_ERROR_MAX_LIMIT_REACHED"; return 0;
	case CUPTI_QUEUE_EMPTY: *text = "CUPTI_ERROR_QUEUE_EMPTY"; return 0;
	case CUPTI_NOT_SUPPORTED: *text = "CUPTI_ERROR_NOT_SUPPORTED"; return 0;
	case CUPTI_MULTIPLE_SUBSCRIBERS: *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"; return 0;
	default: return CUPTI_INVALID_PARAMETER;
	}
}

static _Atomic bool subscribed;
static int subscriber;		/* its address is the handle */

STANDIN(int, cuptiSubscribe, (void **handle, void *callback, void *data))
{
	(void)data;
	if (!handle || !callback)
		return CUPTI_INVALID_PARAMETER;
	if (atomic_exchange(&subscribed, true))
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	*handle = &subscriber;
	return 0;
}

static int check_subscriber(const void *handle)
{
	return handle == &subscriber && atomic_load(&subscribed) ? 0 : CUPTI_INVALID_PARAMETER;
}

STANDIN(int, cuptiUnsubscribe, (void *handle))
{
	int code = check_subscriber(handle);

	if (code == 0)
		atomic_store(&subscribed, false);
	return code;
}

STANDIN(int, cuptiEnableCallback, (uint32_t enable, void *handle, int domain, uint32_t id))
{
	(void)enable;
	(void)domain;
	(void)id;
	return check_subscriber(handle);
}

STANDIN(int, cuptiEnableDomain, (uint32_t enable, void *handle, int domain))
{
	(void)enable;
	(void)domain;
	return check_subscriber(handle);
}

/* Called from a callback only, and none is ever called. */

STANDIN(int, cuptiFinalize, (void))
{
	atomic_store(&subscribed, false);
	return 0;
}

STANDIN(int, cuptiGetDeviceId, (struct sim_ctx * context, uint32_t *device))
{
	struct sim_ctx *before = NULL;
	int ordinal = 0, code;

	if (!context || !device || cuCtxGetCurrent(&before))
		return CUPTI_INVALID_PARAMETER;
	code = cuCtxSetCurrent(context);
	if (code == 0)
		code = cuCtxGetDevice(&ordinal);
	cuCtxSetCurrent(before);
	*device = (uint32_t)ordinal;
	return code ? CUPTI_INVALID_PARAMETER : 0;
}

STANDIN(int, cuptiActivityRegisterCallbacks, (void *requested, void *completed))
{
	return requested && completed ? 0 : CUPTI_INVALID_PARAMETER;
}

STANDIN(int, cuptiActivityRegisterTimestampCallback, (void *clock))
{
	return clock ? 0 : CUPTI_INVALID_PARAMETER;
}

/* Accepted whatever it enables: its parameters are not looked at. */
#define CUPTI_ACCEPTED(name) \
	STANDIN(int, name, (void)) { return 0; }

CUPTI_ACCEPTED(cuptiActivityEnable)
CUPTI_ACCEPTED(cuptiActivityDisable)
CUPTI_ACCEPTED(cuptiActivityFlushAll)
CUPTI_ACCEPTED(cuptiActivityEnableCudaEventDeviceTimestamps)
CUPTI_ACCEPTED(cuptiActivityEnableDriverApi)
CUPTI_ACCEPTED(cuptiActivityEnableRuntimeApi)

STANDIN(int, cuptiActivitySetAttribute, (int attribute, size_t *bytes, const void *value))
{
	(void)attribute;
	return bytes && value ? 0 : CUPTI_INVALID_PARAMETER;
}

/* A buffer is always empty. */
STANDIN(int, cuptiActivityGetNextRecord, (uint8_t * buffer, size_t bytes, void **record))
{
	(void)bytes;
	return buffer && record ? CUPTI_MAX_LIMIT_REACHED : CUPTI_INVALID_PARAMETER;
}

STANDIN(int, cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))
{
	(void)context;
	(void)stream;
	if (!dropped)
		return CUPTI_INVALID_PARAMETER;
	*dropped = 0;
	return 0;
}

enum { CORRELATION_KINDS = 16, CORRELATION_DEPTH = 64 };

struct correlation {
	uint64_t id[CORRELATION_DEPTH];
	unsigned int depth;	/* may exceed the room: deeper ones are counted and pop as 0 */
};

static __thread struct correlation correlations[CORRELATION_KINDS];

STANDIN(int, cuptiActivityPushExternalCorrelationId, (unsigned int kind, uint64_t id))
{
	struct correlation *c;

	if (kind >= CORRELATION_KINDS)
		return CUPTI_INVALID_PARAMETER;
	c = &correlations[kind];
	if (c->depth < CORRELATION_DEPTH)
		c->id[c->depth] = id;
	c->depth++;
	return 0;
}

STANDIN(int, cuptiActivityPopExternalCorrelationId, (unsigned int kind, uint64_t *last))
{
	struct correlation *c;

	if (kind >= CORRELATION_KINDS)
		return CUPTI_INVALID_PARAMETER;
	c = &correlations[kind];
	if (c->depth == 0)
		return CUPTI_QUEUE_EMPTY;
	c->depth--;
	if (last)
		*last = c->depth < CORRELATION_DEPTH ? c->id[c->depth] : 0;
	return 0;
}
