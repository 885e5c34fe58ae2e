# SPDX-License-Identifier: Apache-2.0
"""A shared library with a CUDA runtime linked into it: its lookups of kernels are its own, and it tells nobody about those that fail."""
import ctypes
import os
import subprocess
import tempfile

import cudrv

SOURCE = r"""
int cuLibraryLoadData(void **, const char *, void *, void *, int, void *, void *, int);
int cuLibraryGetKernel(void **, void *, const char *);
int cuLaunchKernel(void *, int, int, int, int, int, int, int, void *, void *, void *);

static int found(const char *image, void **kernel)
{
	void *library;
	int code = cuLibraryLoadData(&library, image, 0, 0, 0, 0, 0, 0);

	return code ? code : cuLibraryGetKernel(kernel, library, "nop");
}

/* asks for each of them: the last code that was not 0 */
int take_stock(const char *const *image, int n)
{
	int code, last = 0;
	void *kernel;

	for (int i = 0; i < n; i++)
		if ((code = found(image[i], &kernel)) != 0)
			last = code;
	return last;
}

/* launches each of them, as the runtime does: a kernel is looked up when it is needed */
int launch_all(const char *const *image, int n)
{
	int code, last = 0;
	void *kernel;

	for (int i = 0; i < n; i++)
		if ((code = found(image[i], &kernel)) != 0 || (code = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)) != 0)
			last = code;
	return last;
}
"""
HAVE, LACK = cudrv.image("nop"), cudrv.image("nop", target="sm_90")


def library(path):
    """Builds the library at that path in a fresh folder and loads it."""
    full = os.path.join(tempfile.mkdtemp(), path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-x", "c", "-", "-o", full],
                   input=SOURCE.encode(), check=True)
    return ctypes.CDLL(full)


def images(*kernels):
    return (ctypes.c_char_p * len(kernels))(*kernels), len(kernels)
