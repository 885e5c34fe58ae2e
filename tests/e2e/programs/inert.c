/* SPDX-License-Identifier: Apache-2.0
 * A program that never loads libcuda looks for traces of a recorder: names, files, memory. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"cuInit",		"cuLaunchKernel",      "cuMemAlloc_v2",
				    "cuGetProcAddress", "cuGetProcAddress_v2", "cudaSetDevice",
				    "cudaLaunchKernel"};

static int count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static int count_mappings(const char *word)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, word) != NULL;
	if (maps)
		fclose(maps);
	return count;
}

int main(void)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *self = dlopen(NULL, RTLD_NOW);

		printf("%s %d %d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL,
		       dlsym(self, names[i]) != NULL);
	}
	printf("files %d\nmemfd %d\n", count_files(), count_mappings("memfd:"));
	return 0;
}
