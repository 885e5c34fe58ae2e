# SPDX-License-Identifier: Apache-2.0
"""CuPy kernels of the programs. Each is right for the right arguments; the programs give it wrong ones.

The programs launch them at a line of their own: that line is what cuwhy must name.
"""
import cupy

SOURCES = {
    # one value per thread, `offset` elements into the tensor
    "fill": r"""
extern "C" __global__ void fill(float *data, long long offset, float value)
{
	data[offset + blockIdx.x * blockDim.x + threadIdx.x] = value;
}
""",
    # one block per row, the first columns of each
    "fill_rows": r"""
extern "C" __global__ void fill_rows(float *data, long long pitch, float value)
{
	data[blockIdx.x * pitch + threadIdx.x] = value;
}
""",
    "shift": r"""
extern "C" __global__ void shift(const float *in, float *out, long long by)
{
	long long i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = in[i - by];
}
""",
    "lookup": r"""
extern "C" __global__ void lookup(const float *table, const long long *index, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = table[index[i]];
}
""",
    # the old value is not used: the compiler makes a reduction of it
    "histogram": r"""
extern "C" __global__ void histogram(const long long *values, int *bins, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		atomicAdd(&bins[values[i]], 1);
}
""",
    # the old value is used: an atomic that returns one
    "claim": r"""
extern "C" __global__ void claim(int *owner, const long long *slot, int *won, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		won[i] = atomicCAS(&owner[slot[i]], 0, i + 1) == 0;
}
""",
    "store4": r"""
extern "C" __global__ void store4(float4 *data, long long offset, float value)
{
	data[offset + threadIdx.x] = make_float4(value, value, value, value);
}
""",
    "scale_rows": r"""
extern "C" __global__ void scale_rows(float *data, int stride, float factor)
{
	int i = blockIdx.x * stride + threadIdx.x;

	data[i] *= factor;
}
""",
    "reverse": r"""
extern "C" __global__ void reverse(float *data, int skip)
{
	__shared__ float tile[256];

	tile[threadIdx.x + skip] = data[threadIdx.x];
	__syncthreads();
	data[threadIdx.x] = tile[255 - threadIdx.x];
}
""",
    "smooth": r"""
extern "C" __global__ void smooth(float *data, int at)
{
	float window[64];

	for (int i = 0; i < 64; i++)
		window[i] = data[(threadIdx.x + i) % 256];
	window[at + (int)data[0]] = 1;
	data[threadIdx.x] = window[threadIdx.x % 64] + window[(threadIdx.x * 7) % 64];
}
""",
    # waits for a flag that the host sets; gives up after a while, so that a test cannot block the GPU
    "wait_for": r"""
__device__ unsigned long long now()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

extern "C" __global__ void wait_for(volatile int *flag, int seconds)
{
	unsigned long long end = now() + seconds * 1000000000ull;

	while (!*flag && now() < end)
		;
}
""",
}


def get(name):
    return cupy.RawKernel(SOURCES[name], name)
