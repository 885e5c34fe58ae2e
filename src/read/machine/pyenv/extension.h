/* SPDX-License-Identifier: Apache-2.0
 * Compiled libraries in a Python environment that have GPU code or are linked to torch, except torch's own.
 *
 * Also skipped: libraries for another CUDA version than torch's, where a package ships one for each.
 */
#ifndef CUWHY_PYENV_EXTENSION_H
#define CUWHY_PYENV_EXTENSION_H

#include <stdbool.h>

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

#endif
