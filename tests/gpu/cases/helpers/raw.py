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
HEAVY = r"""
extern "C" __global__ void heavy(float *data, int n)
{
	float v[160];
	int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
	for (int i = 0; i < 160; i++)
		v[i] = data[(t + i * 7) % n];
	for (int round = 0; round < n; round++) {
#pragma unroll
		for (int i = 0; i < 160; i++)
			v[i] = v[i] * v[(i + 37) % 160] + v[(i + 91) % 160];
	}
	float sum = 0;
#pragma unroll
	for (int i = 0; i < 160; i++)
		sum += v[i];
	data[t % n] = sum;
}
"""


def kernel(source, name):
    return cupy.RawKernel(source, name)


def fill():
    return kernel(FILL, "fill")
