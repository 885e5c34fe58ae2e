/* SPDX-License-Identifier: Apache-2.0
 * Its function calls the next one of the same name: "next" as seen from this library. */
#include <dlfcn.h>
#include <stdio.h>

void which(char *out, size_t size);

void which(char *out, size_t size)
{
	void (*next)(char *, size_t) = NULL;
	char rest[64] = "none";

	*(void **)&next = dlsym(RTLD_NEXT, "which");
	if (next)
		next(rest, sizeof(rest));
	snprintf(out, size, "first %s", rest);
}
