/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 that misbehaves, for tests of the doctor: BAD_CUDA says how.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *what)
{
	const char *how = getenv("BAD_CUDA");

	return how && strcmp(how, what) == 0;
}

static void hang(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (;;)
		pause();
}

__attribute__((constructor)) static void load(void)
{
	if (is("hang-load"))
		hang();
	if (is("crash-load"))
		raise(SIGSEGV);
	if (is("exit-load"))
		_exit(0);
}

int cuInit(unsigned int flags)
{
	if (is("hang"))
		hang();
	if (is("crash"))
		raise(SIGSEGV);
	if (is("abort"))
		abort();
	if (is("exit"))
		exit(0);
	if (is("noise"))
		for (int i = 0; i < 100000; i++)
			puts("a driver has nothing to say here");
	return is("strange") ? -7 : (int)flags;
}

int cuDriverGetVersion(int *version)
{
	*version = is("numbers") ? 2147483647 : 13000;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = is("many") ? 2147483647 : is("numbers") ? -2147483647 : 1;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int cuDeviceGetName(char *name, int len, int device)
{
	if (is("hang-name") && device == 0)
		hang();
	memset(name, is("bytes") ? 0xfe : 'X', (size_t)len);
	return 0;
}

int cuDeviceGetAttribute(int *value, int which, int device)
{
	(void)device;
	*value = is("numbers") ? -2147483647 - 1 : is("attributes") ? 2147483647 : which == 75 ? 9 : 0;
	return 0;
}

int cuDeviceGetPCIBusId(char *place, int len, int device)
{
	(void)device;
	memset(place, is("bytes") ? 27 : '0', (size_t)len);
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	(void)device;
	*bytes = (size_t)-1;
	return 0;
}
