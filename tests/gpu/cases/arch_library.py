# SPDX-License-Identifier: Apache-2.0
# A compiled extension (a library with its own CUDA runtime) without code for this GPU.
# expect: cause=extension-arch-missing certainty=certain,likely exit=1
# needs: torch nvcc
import ctypes
import os
import subprocess
import tempfile

import torch

SOURCE = """
__global__ void touch() { }
extern "C" int extension_run(void) { touch<<<1, 1>>>(); return cudaGetLastError(); }
extern "C" const char *extension_text(int code) { return cudaGetErrorString((cudaError_t)code); }
"""


def build(folder, arch):
    source, target = os.path.join(folder, "ext.cu"), os.path.join(folder, "libext.so")
    with open(source, "w") as stream:
        stream.write(SOURCE)
    subprocess.run([os.environ["NVCC"], "-shared", "-Xcompiler", "-fPIC", "-gencode",
                    "arch=compute_%s,code=sm_%s" % (arch, arch), source, "-o", target], check=True)
    return ctypes.CDLL(target)


def call(extension):
    code = extension.extension_run()  # <- here
    if code:
        extension.extension_text.restype = ctypes.c_char_p
        raise RuntimeError("CUDA error: " + extension.extension_text(code).decode())


torch.zeros(1, device="cuda")
with tempfile.TemporaryDirectory() as folder:
    call(build(folder, "80" if torch.cuda.get_device_capability()[0] != 8 else "90"))
