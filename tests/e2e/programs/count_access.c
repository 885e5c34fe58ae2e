/* SPDX-License-Identifier: Apache-2.0
 * Counts how often the recorder looks for a core dump.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int looks;

int dump_looks(void);
int dump_looks(void)
{
	return looks;
}

int access(const char *path, int mode)
{
	int (*real)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");

	if (strstr(path, "/core-"))
		looks++;
	return real(path, mode);
}
