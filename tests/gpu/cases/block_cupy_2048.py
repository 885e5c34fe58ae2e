# SPDX-License-Identifier: Apache-2.0
# 2,048 threads in a block.
# expect: cause=launch-config-block-limit certainty=certain,likely exit=1 kernel=fill
# needs: cupy
import cupy

fill = cupy.RawKernel(r"""
extern "C" __global__ void fill(float *data, float value)
{
	data[threadIdx.x] = value;
}
""", "fill")
BLOCK = (2048,)


class Filler:
    def __init__(self):
        self.data = cupy.zeros(4096, dtype=cupy.float32)

    def __call__(self, value):
        fill((1,), BLOCK, (self.data, cupy.float32(value)))  # <- here


Filler()(3)
