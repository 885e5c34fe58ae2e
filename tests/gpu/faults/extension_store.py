# SPDX-License-Identifier: Apache-2.0
# A compiled extension with its own CUDA runtime, called through ctypes.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=scale
# needs: torch nvcc
# timeout: 180
import ctypes
import os
import subprocess
import tempfile

import torch

SOURCE = """
template <typename T> __global__ void scale(T *data, long n, long first, T factor)
{
	long i = blockIdx.x * (long)blockDim.x + threadIdx.x;

	if (i < n)
		data[first + i] *= factor;
}

extern "C" void extension_scale(float *data, long n, long first, float factor)
{
	scale<float><<<(n + 255) / 256, 256>>>(data, n, first, factor);
}
"""


def build(folder):
    source, target = os.path.join(folder, "ext.cu"), os.path.join(folder, "libext.so")
    with open(source, "w") as stream:
        stream.write(SOURCE)
    subprocess.run([os.environ["NVCC"], "-shared", "-Xcompiler", "-fPIC", "-arch=sm_%d%d"
                    % torch.cuda.get_device_capability(), source, "-o", target], check=True)
    extension = ctypes.CDLL(target)
    extension.extension_scale.argtypes = (ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_float)
    return extension


def double(extension, x, first):
    extension.extension_scale(x.data_ptr(), x.numel(), first, 2.0)  # <- here


x = torch.ones(1000, device="cuda")
with tempfile.TemporaryDirectory() as folder:
    extension = build(folder)
double(extension, x, 0)
print(x.sum().item())
double(extension, x, 1 << 40)
x = x + 1
print(x.sum().item())
