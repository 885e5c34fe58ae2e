/* SPDX-License-Identifier: Apache-2.0
 * What a running process has loaded, from /proc/PID/maps, and the environment it was started with.
 */
#ifndef CUWHY_PYENV_PROCESS_H
#define CUWHY_PYENV_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/pool.h"

struct process_library {
	const char *path;	/* as mapped, without " (deleted)" */
	const char *name;	/* its last part: "libcuda.so.570.124.06" */
	const char *version;	/* from that name; NULL unknown */
	bool deleted;		/* the file was removed or replaced since: an update under a running program */
	bool cuda;		/* a CUDA, NVIDIA, NCCL or torch library */
};

struct py_process {
	struct pool pool;
	bool known;			/* maps could be read */
	const char *reason;		/* why not: "no such process", "permission denied" */
	const char *exe, *cwd;		/* NULL unknown */
	struct process_library *library;	/* every mapped file with code, once, in order of their addresses */
	size_t n_libraries;
	const char **environ;		/* NAME=value, ends with NULL; NULL: unreadable, see environ_reason */
	size_t n_environ;
	const char *environ_reason;
	bool cut;
};

void py_process_read(struct py_process *out, const char *root, pid_t pid);
void py_process_release(struct py_process *p);

#endif
