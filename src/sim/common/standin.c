/* SPDX-License-Identifier: Apache-2.0
 * Kernels of stand-ins, and what they refuse. Linked into each of them.
 */
#include "sim/common/standin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IMAGE_BYTES = 512, THREADS = 128 };

/* Text that the simulated driver takes as a module (src/sim/README.md); any GPU can run it. */
static int make_kernel(const char *name, const char *row, struct sim_func **func)
{
	struct sim_library *library;
	char image[IMAGE_BYTES];
	int code;

	snprintf(image, sizeof(image), "cuwhy-sim-module 1\ntarget compute_50 ptx 6.0\nkernel %s mangled=%s\n", row,
		 name);
	code = cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
	return code ? code : cuLibraryGetKernel(func, library, name);
}

static int launch(const char *name, const char *row, _Atomic(struct sim_func *) *made, struct sim_stream *stream,
		  void **params)
{
	struct sim_func *func = atomic_load(made);
	int code = 0;

	/* two threads may both make it: one of the two is never used */
	if (!func && (code = make_kernel(name, row, &func)) == 0)
		atomic_store(made, func);
	return code ? code : cuLaunchKernel(func, 1, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
}

int standin_launch(struct standin_kernel *k, struct sim_stream *stream)
{
	return launch(k->name, "nop", &k->func, stream, NULL);
}

int standin_launch_using(struct standin_kernel *k, struct sim_stream *stream, sim_addr workspace)
{
	void *params[] = {&workspace};
	int capturing = 0;

	if (!workspace || cuStreamIsCapturing(stream, &capturing) || !capturing)
		return standin_launch(k, stream);
	return launch(k->name, "uses", &k->using, stream, params);
}

enum { REFUSED_MAX = 256 };

static _Atomic(const char *) refused[REFUSED_MAX];

/* True the first time. The same name is always the same string: it comes from one place. */
static bool is_new(const char *function)
{
	for (int i = 0; i < REFUSED_MAX; i++) {
		const char *none = NULL;

		if (atomic_compare_exchange_strong(&refused[i], &none, function))
			return true;
		if (none == function)
			return false;
	}
	return false;
}

int standin_refuse(const char *function, int status)
{
	char line[IMAGE_BYTES];
	int n;

	if (!is_new(function))
		return status;
	n = snprintf(line, sizeof(line), "cuwhy: the simulated GPU has no %s: the call fails as not supported\n",
		     function);
	if (n > 0 && write(STDERR_FILENO, line, strnlen(line, sizeof(line))) < 0)
		return status;
	return status;
}
