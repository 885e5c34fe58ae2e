/* SPDX-License-Identifier: Apache-2.0
 * Runs a program behind the fence: behind SCRATCH REAL:REAL… LIBRARY PROGRAM ARGUMENT…
 * An empty LIBRARY: nothing is redirected, what the kernel refuses is refused. "-" for SCRATCH: says whether it is possible.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "writes/fence.h"
#include "writes/scratch.h"

int main(int argc, char **argv)
{
	static char list[4096];
	const char *real[16] = {NULL};
	struct err e = {0};
	int n = 0;

	if (argc == 2 && strcmp(argv[1], "-") == 0) {
		if (fence_possible(&e) < 0)
			printf("%s\n", e.msg);
		return e.code ? 1 : 0;
	}
	if (argc < 5)
		return 2;
	snprintf(list, sizeof(list), "%s", argv[2]);
	for (char *dir = strtok(list, ":"); dir && n < 15; dir = strtok(NULL, ":"))
		real[n++] = dir;
	if (fence_enter(argv[1], real, &e) < 0) {
		fprintf(stderr, "behind: %s\n", e.msg);
		return 125;
	}
	if (*argv[3]) {
		setenv(SCRATCH_ENV, argv[1], 1);
		setenv(SCRATCH_REAL_ENV, argv[2], 1);
		setenv("LD_PRELOAD", argv[3], 1);
	}
	execvp(argv[4], argv + 4);
	perror("behind");
	return 127;
}
