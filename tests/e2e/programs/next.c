/* SPDX-License-Identifier: Apache-2.0
 * Calls through RTLD_NEXT and RTLD_DEFAULT, and checks that dlerror reports a missing name. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void which(char *out, size_t size);

int main(void)
{
	void (*found)(char *, size_t) = NULL;
	char text[128];
	const char *error;

	which(text, sizeof(text));
	printf("%s\n", text);
	dlerror();
	error = dlsym(RTLD_DEFAULT, "no_such_name_here") ? NULL : dlerror();
	printf("missing %s\n", error && strstr(error, "no_such_name_here") ? "yes" : "no");
	*(void **)&found = dlsym(RTLD_DEFAULT, "which");
	if (found)
		found(text, sizeof(text));
	printf("default %s\n", text);
	return 0;
}
