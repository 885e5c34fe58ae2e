/* SPDX-License-Identifier: Apache-2.0
 * Asks a library by its handle: the answer must come from that library and no other. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*init)(unsigned int) = NULL;

	*(void **)&init = library ? dlsym(library, "cuInit") : NULL;
	printf("fake %d\n", init ? init(0) : -1);
	return 0;
}
