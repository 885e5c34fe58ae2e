/* SPDX-License-Identifier: Apache-2.0
 * What the dynamic loader would really load for `import torch`, found by following glibc's rules over the files.
 *
 * The steps of a start are followed: the interpreter with LD_PRELOAD, libtorch_global_deps, what torch/__init__.py
 * opens by itself from nvidia/.../lib, torch/_C and all it needs (breadth first), then what cuDNN and NVRTC open late.
 */
#ifndef CUWHY_PYENV_LOADER_H
#define CUWHY_PYENV_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why this file and not another. */
enum loader_why {
	LOADER_NOT_FOUND,
	LOADER_PRELOAD,		/* LD_PRELOAD or /etc/ld.so.preload */
	LOADER_CTYPES,		/* opened by torch/__init__.py itself, by its path */
	LOADER_RPATH,		/* DT_RPATH of the file that needs it, or of that file's loader */
	LOADER_LIBRARY_PATH,	/* LD_LIBRARY_PATH */
	LOADER_RUNPATH,		/* DT_RUNPATH of the file that needs it */
	LOADER_CACHE,		/* /etc/ld.so.cache */
	LOADER_DEFAULT,		/* /lib, /usr/lib and the like */
	LOADER_PATH,		/* named with a slash */
};

enum loader_same {
	LOADER_SAME_UNKNOWN,	/* the wheels have no file of that name, or nothing is loaded */
	LOADER_SAME_FILE,	/* it is the wheel's own */
	LOADER_SAME_BUILD,	/* another copy of the same build (build id or all of size and version are equal) */
	LOADER_SAME_NOT,	/* another version, or at least another build: a conflict is possible */
};

struct loader_file {
	const char *soname;	/* the name that was looked for: "libcudnn.so.9" */
	const char *path;	/* where it is found; NULL: nowhere */
	const char *real;	/* with all symbolic links followed */
	const char *version;	/* from the real file's name or its package: "12.4.127"; NULL unknown */
	const char *needed_by;	/* path of the first one that needs it; NULL: loaded first */
	enum loader_why why;
	const char *because;	/* the folder in the path that led there; for RPATH and RUNPATH "FILE: entry" */
	const char *wheel;	/* the copy in this environment's wheels; NULL: none */
	const char *wheel_version;
	enum loader_same same;
	bool late;		/* opened at run time (cuDNN's parts, NVRTC's builtins), not while importing */
	const char *broken;	/* found first, but the loader rejects it: "empty file", "not an ELF file"; else NULL */
	const char *skipped;	/* a file earlier in the search that was passed over (other word size); NULL: none */
};

struct loader_result {
	bool known;		/* false: could not be determined, see `reason` */
	const char *reason;
	struct loader_file *file;	/* in the order of loading: CUDA, torch and C++ libraries, and what is not found */
	size_t n_files;
	size_t n_other;		/* files with LOADER_SAME_NOT */
	size_t n_not_found;	/* needed while importing and not found, or rejected: `import torch` fails */
	bool preloads;		/* torch/__init__.py opens nvidia libraries itself before its own */
	bool cut;
};

/* A driver library: libcuda.so.1, libnvidia-ml.so.1. */
struct loader_driver {
	const char *path, *real;	/* NULL: not found */
	const char *version;	/* "570.124.06", from the real file's name; NULL: unknown */
	enum loader_why why;
	const char *because;
	const char *broken;	/* as above: "empty file" */
	bool compat;		/* of a cuda-compat package: <cuda>/compat */
	bool stub;		/* of a toolkit's lib64/stubs: links, but cannot run */
	bool wsl;		/* /usr/lib/wsl/lib */
	const char *other;	/* another copy later in the search path, hidden by this one; NULL: none */
	const char *other_version;
};

const char *loader_why_name(enum loader_why w);	/* "LD_LIBRARY_PATH", "ld.so.cache" ... */

#endif
