/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 of a few lines that calls nothing of libc: whatever goes wrong in a program with it, the driver did not
 * do it. Allocations above a thousand bytes and questions that have no place for the answer fail, with two long messages
 * in the driver's log.
 */
#include <stddef.h>

typedef void log_callback(void *data, int level, char *message, size_t length);
static log_callback *logs;

int cuInit(unsigned flags)
{
	return (int)flags;
}

int cuDeviceGetCount(int *count)
{
	*count = 1;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = 0;
	return ordinal ? 101 : 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuLogsRegisterCallback(log_callback *callback, void *data, void **handle)
{
	(void)data;
	logs = callback;
	*handle = NULL;
	return 0;
}

static void say(void)
{
	char message[600];

	for (size_t i = 0; i < sizeof(message) - 1; i++)
		message[i] = 'A';
	message[sizeof(message) - 1] = '\0';
	if (logs) {
		logs(NULL, 0, message, sizeof(message) - 1);
		logs(NULL, 0, message, sizeof(message) - 1);
	}
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
	if (bytes > 1000) {
		say();
		return 2;
	}
	*address = 4096;
	return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
	if (!free || !total) {
		say();
		return 1;
	}
	*free = *total = 4096;
	return 0;
}

int cuMemFree_v2(unsigned long long address)
{
	return address ? 0 : 1;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)params,
		(void)extra;
	return 0;
}

int cuStreamSynchronize(void *stream)
{
	return stream != NULL;
}
