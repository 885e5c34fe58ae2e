/* SPDX-License-Identifier: Apache-2.0
 * An audit library of the loader (rtld-audit(7)): a program on the simulated GPU that asks for one of NVIDIA's libraries, by name
 * or by path, gets our stand-in for it. LD_LIBRARY_PATH is not enough: PyTorch's libraries have an RPATH, which comes first, and
 * its __init__ loads some of them by their absolute path.
 *
 * Which names: those of the files in the folder CUWHY_SIM_LIBS.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { PATHS_MAX = 64, PATH_BYTES = 4096 };

/* The loader keeps the answer, so each path is kept, too. It calls us with its own lock held. */
static char *paths[PATHS_MAX];

static char *stand_in(const char *folder, const char *name)
{
	char path[PATH_BYTES];
	int i = 0;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return NULL;
	for (; i < PATHS_MAX && paths[i]; i++)
		if (strcmp(paths[i], path) == 0)
			return paths[i];
	if (i == PATHS_MAX || access(path, R_OK) != 0)
		return NULL;
	return paths[i] = strdup(path);
}

EXPORT unsigned int la_version(unsigned int version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	const char *folder = getenv("CUWHY_SIM_LIBS"), *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	char *found = NULL;

	(void)cookie;
	if (flag == LA_SER_ORIG && folder && strncmp(base, "lib", 3) == 0)
		found = stand_in(folder, base);
	return found ? found : (char *)(uintptr_t)name;
}
