/* SPDX-License-Identifier: Apache-2.0
 * Python environments under a root: which there are, what is installed in them and how their torch was built.
 *
 * Python is never run. Everything is read from files below `root` ("" on the live machine); absolute symbolic links
 * stay inside it, and all returned paths are without it ("/usr/lib/...", as a program under that root sees them).
 * A text that is not known is NULL, a number -1; `reason` says why in lower case without a full stop. Work is bounded:
 * where a bound was reached `cut` is set, and "not found" is then not certain.
 */
#ifndef CUWHY_PYENV_H
#define CUWHY_PYENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "read/machine/pyenv/loader.h"

/* Packages of a Python environment: names, versions, files that are missing, requirements that are not met. */

enum py_source { PY_DIST_INFO, PY_EGG_INFO, PY_CONDA_META };

struct py_package {
	const char *name;	/* normalized: lower case, runs of "-_." are one "-" */
	const char *version;	/* METADATA's for watched packages, else that of the folder's name; NULL: unknown */
	const char *variant;	/* "cu124", "cpu", "rocm6.2": the local part of the version, for torch, torchvision and
				 * torchaudio also that in their version.py; NULL: none is named */
	const char *build;	/* conda's build string, "py3.11_cuda12.1_cudnn8.9.2_0"; else NULL */
	const char *folder;	/* the folder of sys.path (or the conda prefix) that it is installed in */
	const char *info;	/* its .dist-info, .egg-info or conda-meta file */
	enum py_source source;
	bool watched;		/* one of kb/py_packages.def, or nvidia-*: the fields below are filled for these only */
	bool hidden;		/* another copy of the same name comes before it, so this one is not imported */
	const char *reason;	/* METADATA or RECORD is missing or cannot be read: partly installed */
	int n_files;		/* libraries (.so) that RECORD names; -1: no RECORD */
	int n_missing;		/* of these, not there; -1 unknown */
	int n_cut;		/* of these, whose size differs from RECORD and that are damaged (a full disk, an interrupted copy) */
	const char *missing;	/* the first one that is missing or cut; NULL: none */
};

enum py_clash_kind {
	PY_CLASH_VERSION,	/* installed in a version other than required */
	PY_CLASH_MISSING,	/* required and not installed */
	PY_CLASH_TWICE,		/* two versions of the same package in one folder */
};

struct py_clash {
	enum py_clash_kind kind;
	const char *package, *version;	/* who requires: "torchvision", "0.20.1" */
	const char *requirement;	/* "torch==2.5.1", as METADATA has it without its marker */
	const char *name;		/* "torch" */
	const char *installed;		/* "2.6.0+cu124"; NULL: not installed */
};

/* Compiled libraries in a Python environment that have GPU code or are linked to torch, except torch's own.
 *
 * Also skipped: libraries for another CUDA version than torch's, where a package ships one for each. */

struct py_extension {
	const char *path;
	const char *package;	/* normalized name of the package it belongs to; the top folder's name when none is known */
	const char *version;	/* of that package; NULL unknown */
	bool fatbin;		/* has a .nv_fatbin section: formats/fatbin.h reads its architectures */
	bool torch;		/* needs libtorch*, libc10* */
	bool vendor;		/* of an nvidia-* package: a CUDA library, not an extension */
	int cxx11_abi;		/* of the torch functions it calls: 1 std::__cxx11, 0 old, -1 unknown or no strings */
	int n_unresolved;	/* torch functions that it calls but no library of this torch has; -1 not checked */
	const char *unresolved;	/* the first of them, mangled */
	const char *reason;	/* unreadable, not ELF, cut short */
	const char *python;	/* the tag of a file name built for another Python ("cpython-310"); NULL: fits or none */
};

struct pyenv_input {
	const char *root;		/* "" or a folder without a slash at its end */
	const char *const *environ;	/* NAME=value, ends with NULL; NULL: no variable is set */
	const char *cwd;		/* as seen under the root; NULL: unknown, then nothing there can shadow torch */
	const char *python;		/* --python: an interpreter or the folder of an environment; NULL: those that can be found */
	bool no_extensions;		/* leave out the compiled extensions */
	bool no_loader;			/* leave out what the dynamic loader would load */
};

enum pyenv_kind {
	PYENV_UNKNOWN,			/* an interpreter whose environment could not be determined: see `reason` */
	PYENV_VENV,			/* has a pyvenv.cfg: venv, virtualenv, uv, poetry */
	PYENV_CONDA,			/* has conda-meta */
	PYENV_SYSTEM,			/* the distribution's Python in /usr */
	PYENV_OTHER,			/* any other prefix: /usr/local, pyenv, a built one */
};

/* How an environment was found; several may lead to the same one. */
enum pyenv_origin {
	PYENV_ASKED = 1,		/* --python */
	PYENV_PATH = 2,			/* `python` or `python3` of PATH: what runs when a user types it */
	PYENV_VIRTUAL_ENV = 4,		/* $VIRTUAL_ENV */
	PYENV_CONDA_PREFIX = 8,		/* $CONDA_PREFIX */
	PYENV_NEAR = 16,		/* .venv or venv in the current folder, not activated */
	PYENV_USR = 32,			/* /usr/bin/python3 */
};

/* One folder in which `import` looks, in Python's order (the standard library left out). */
enum py_folder_kind {
	PY_FOLDER_CWD,			/* the script's or current folder: Python puts it first */
	PY_FOLDER_PYTHONPATH,
	PY_FOLDER_SITE,			/* site-packages or dist-packages of the environment itself */
	PY_FOLDER_USER,			/* ~/.local/lib/pythonX.Y/site-packages */
	PY_FOLDER_BASE,			/* of the base Python: a venv made with --system-site-packages */
	PY_FOLDER_PTH,			/* named by a .pth file: editable installs */
};

struct py_folder {
	const char *path;
	enum py_folder_kind kind;
	const char *reason;		/* why it could not be read; NULL: it could, or it is not there */
	bool there;
};

/* The torch that `import torch` would find, from the text of its torch/version.py. */
enum torch_build { TORCH_BUILD_UNKNOWN, TORCH_BUILD_CPU, TORCH_BUILD_CUDA, TORCH_BUILD_ROCM, TORCH_BUILD_XPU };

struct py_torch {
	const char *dir;		/* ".../site-packages/torch"; NULL: no torch (then the rest is empty) */
	const char *reason;		/* torch/version.py could not be read or understood */
	const char *version;		/* "2.11.0+cu130", of version.py */
	const char *metadata_version;	/* "2.11.0", of its dist-info */
	enum torch_build build;
	const char *cuda;		/* "13.0" for TORCH_BUILD_CUDA */
	const char *hip;		/* "6.2.41133" for TORCH_BUILD_ROCM */
	const char *git;		/* commit */
	const char *cuda_library;	/* path of libtorch_cuda.so; NULL: there is none */
	int cxx11_abi;			/* 1: std::__cxx11 strings in libc10's symbols, 0: old ones, -1 unknown */
	const char *shadow;		/* a `torch` folder or torch.py that is not PyTorch and would be imported instead of `dir` */
	enum py_folder_kind shadow_kind;
};

struct pyenv {
	enum pyenv_kind kind;
	unsigned origin;		/* enum pyenv_origin, or-ed */
	const char *prefix;		/* "/home/u/venv"; NULL for PYENV_UNKNOWN */
	const char *interpreter;	/* as a user would call it; NULL: none is there */
	const char *base;		/* prefix of the Python that a venv was created from; NULL: unknown or not a venv */
	const char *reason;		/* what is wrong with it: base Python gone, not an ELF file, unreadable; NULL: nothing */
	int major, minor, micro;	/* Python's version; -1 unknown */
	struct py_folder *folder;
	size_t n_folders;
	struct py_package *package;	/* sorted by name, then by the order of their folders: the first one wins */
	size_t n_packages;
	const char **leftover;		/* folders like "~orch" that a failed pip run left behind */
	size_t n_leftovers;
	struct py_clash *clash;		/* requirements that matter and are not met */
	size_t n_clashes;
	struct py_torch torch;
	struct py_extension *extension;
	size_t n_extensions;
	struct loader_result loader;	/* of `import torch`; empty without a torch */
	bool cut;
};

struct pyenvs {
	struct pool pool;		/* owns every text and list below */
	struct pyenv *env;		/* [0] is the active one, or the one requested */
	size_t n_envs;
	const char *reason;		/* why there is none: "no python in PATH", "--python: no such file" */
	const char *pythonhome;		/* variables that change what is imported; NULL: not set */
	const char *pythonpath;
	struct loader_driver libcuda, libnvml;	/* what dlopen("libcuda.so.1") loads for the active environment's torch,
						 * or to a plain program where there is no torch */
};

void pyenv_scan(struct pyenvs *out, const struct pyenv_input *in);
void pyenv_release(struct pyenvs *p);

/* The package of that (normalized) name that is imported; NULL: not installed. */
const struct py_package *pyenv_package(const struct pyenv *e, const char *name);

/* "venv", "conda", "system", "other", "unknown"; "cpu", "cuda", "rocm", "xpu", "unknown". Both lists end with NULL. */
extern const char *const pyenv_kinds[], *const torch_builds[];
const char *pyenv_kind_name(enum pyenv_kind k);
const char *torch_build_name(enum torch_build b);

#endif
