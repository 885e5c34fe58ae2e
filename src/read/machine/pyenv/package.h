/* SPDX-License-Identifier: Apache-2.0
 * Packages of a Python environment: names, versions, files that are missing, requirements that are not met.
 */
#ifndef CUWHY_PYENV_PACKAGE_H
#define CUWHY_PYENV_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
