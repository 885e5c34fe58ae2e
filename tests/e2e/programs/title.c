/* Loads argv[1] and says from where; with argv[2] after it has set its title, as setproctitle and PostgreSQL do: the environment is copied, and
 * its old place is the title's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_title(char **argv)
{
	size_t n = 0;
	char **copy, *end;

	while (environ[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	end = environ[n - 1] + strlen(environ[n - 1]);
	for (size_t i = 0; i < n; i++)
		copy[i] = strdup(environ[i]);
	environ = copy;
	memset(argv[0], 0, (size_t)(end - argv[0]));
	strcpy(argv[0], "worker");
}

int main(int argc, char **argv)
{
	char *name = strdup(argv[1]);
	struct link_map *map;
	void *lib;

	if (argc > 2)
		set_title(argv);
	lib = dlopen(name, RTLD_NOW);
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0)
		return puts(dlerror()), 1;
	puts(map->l_name);
	return 0;
}
