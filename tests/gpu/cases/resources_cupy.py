# SPDX-License-Identifier: Apache-2.0
# 168 registers a thread and 1,024 threads need more registers than a block can have.
# expect: cause=too-many-resources certainty=certain,likely exit=1 kernel=heavy code=701
# needs: cupy
import cupy

HEAVY = r"""
extern "C" __global__ void heavy(float *data, int n)
{
	float v[160], sum = 0;
	int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
	for (int i = 0; i < 160; i++)
		v[i] = data[(t + i * 7) % n];
	for (int round = 0; round < n; round++) {
#pragma unroll
		for (int i = 0; i < 160; i++)
			v[i] = v[i] * v[(i + 37) % 160] + v[(i + 91) % 160];
	}
#pragma unroll
	for (int i = 0; i < 160; i++)
		sum += v[i];
	data[t % n] = sum;
}
"""
if __name__ == "__main__":
    data = cupy.zeros(1024, dtype=cupy.float32)
    heavy = cupy.RawKernel(HEAVY, "heavy")
    for threads in (256, 1024):
        heavy((1,), (threads,), (data, cupy.int32(4)))  # <- here
