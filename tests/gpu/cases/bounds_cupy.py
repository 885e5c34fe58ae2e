# SPDX-License-Identifier: Apache-2.0
# A kernel compiled for at most 128 threads is launched with 256.
# expect: cause=launch-config-launch-bounds certainty=certain,likely exit=1 kernel=bounded
# needs: cupy
import cupy

data = cupy.zeros(256, dtype=cupy.float32)
bounded = cupy.RawKernel(r"""
extern "C" __global__ void __launch_bounds__(128) bounded(float *data)
{
	data[threadIdx.x] = 1;
}
""", "bounded")
bounded((1,), (128,), (data,))
bounded((1,), (256,), (data,))  # <- here
