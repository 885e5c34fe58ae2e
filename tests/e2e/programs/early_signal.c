/* Preloaded into `cuwhy run`: a SIGTERM arrives at the moment when its folder is made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

char *mkdtemp(char *name)
{
	char *(*real)(char *) = (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp"), *made = real(name);

	if (made && strstr(made, "/cuwhy-"))
		raise(SIGTERM);
	return made;
}
