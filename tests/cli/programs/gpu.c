/* SPDX-License-Identifier: Apache-2.0
 * A program that uses the GPU: gpu WHAT [STATUS]. It ends with STATUS (default 0).
 *
 *   ok       one launch             grid     a launch with too large a grid
 *   ordinal  a GPU that is not there   twice  two children with too large a grid
 *   alloc    4 KiB, then as grid
 *   daemon   leaves a process behind that is in trouble, but lives on; prints its pid
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char image[] = "cuwhy-sim-module 1\ntarget compute_50 ptx 6.0\nkernel nop\n";

typedef int (*call)();	/* every function of the driver, as C had it before prototypes */

static call find(const char *name)
{
	static void *lib;
	void *f;

	if (!lib)
		lib = dlopen("libcuda.so.1", RTLD_NOW);
	f = lib ? dlsym(lib, name) : NULL;
	if (!f) {
		fprintf(stderr, "no %s\n", name);
		exit(3);
	}
	return (call)f;
}

static void launch(unsigned int grid_y)
{
	void *context, *module, *function, *none = NULL;

	if (find("cuInit")(0) || find("cuDevicePrimaryCtxRetain")(&context, 0) ||
	    find("cuCtxSetCurrent")(context) || find("cuModuleLoadData")(&module, image) ||
	    find("cuModuleGetFunction")(&function, module, "nop"))
		exit(3);
	find("cuLaunchKernel")(function, 1, grid_y, 1, 32, 1, 1, 0, none, none, none);
}

static void in_child(int status)
{
	if (fork() == 0) {
		launch(70000);
		exit(status);
	}
	wait(NULL);
}

static void leave_behind(void)
{
	int fds[2];
	char end;
	pid_t pid;

	if (pipe(fds) != 0)
		exit(3);
	pid = fork();
	if (pid == 0) {
		launch(70000);
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		close(fds[0]);
		close(fds[1]);	/* it is in trouble now */
		sleep(600);
		_exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &end, 1) != 0)
		exit(3);
	printf("%d\n", (int)pid);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "ok";
	int status = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, device;
	unsigned long long memory;

	if (strcmp(what, "ok") == 0) {
		launch(1);
	} else if (strcmp(what, "grid") == 0) {
		launch(70000);
	} else if (strcmp(what, "alloc") == 0) {
		launch(1);
		find("cuMemAlloc_v2")(&memory, (size_t)4096);
		launch(70000);
	} else if (strcmp(what, "ordinal") == 0) {
		find("cuInit")(0);
		find("cuDeviceGet")(&device, 7);
	} else if (strcmp(what, "twice") == 0) {
		in_child(1);
		in_child(1);
	} else if (strcmp(what, "daemon") == 0) {
		leave_behind();
	}
	return status;
}
