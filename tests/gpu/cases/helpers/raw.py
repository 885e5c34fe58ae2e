# SPDX-License-Identifier: Apache-2.0
"""CuPy kernels shared by the cases."""
import cupy

FILL = r"""
extern "C" __global__ void fill(float *data, float value)
{
	data[threadIdx.x] = value;
}
"""
BOUNDED = r"""
extern "C" __global__ void __launch_bounds__(128) bounded(float *data)
{
	data[threadIdx.x] = 1;
}
"""


def kernel(source, name):
    return cupy.RawKernel(source, name)


def fill():
    return kernel(FILL, "fill")
