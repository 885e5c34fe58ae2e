# SPDX-License-Identifier: Apache-2.0
# 100,000 bytes of dynamic shared memory without raising the kernel's limit.
# expect: cause=launch-config-shared-memory-limit certainty=certain,likely exit=1 kernel=fill
# needs: cupy
import cupy

data = cupy.zeros(32, dtype=cupy.float32)
fill = cupy.RawKernel(r"""
extern "C" __global__ void fill(float *data, float value)
{
	data[threadIdx.x] = value;
}
""", "fill")
fill((1,), (32,), (data, cupy.float32(1)), shared_mem=100000)  # <- here
