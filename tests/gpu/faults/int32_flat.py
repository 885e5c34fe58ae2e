# SPDX-License-Identifier: Apache-2.0
# An image of more than 2^31 bytes: the index of the last threads is negative.
# expect: cause=illegal-access-int32-overflow certainty=likely,certain exit=1 code=700 kernel=brighten
# needs: torch cupy
import cupy
import numpy as np
import torch

brighten = cupy.RawKernel(r"""
extern "C" __global__ void brighten(unsigned char *pixels, long long n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		pixels[i] += 1;
}
""", "brighten")


def apply(pixels):
    n = pixels.numel()
    brighten(((n + 255) // 256,), (256,), (pixels.data_ptr(), np.int64(n)))  # <- here


small = torch.zeros(1000, 1000, dtype=torch.uint8, device="cuda")
apply(small)
print(small.sum().item())
large = torch.zeros((1 << 31) + 512, dtype=torch.uint8, device="cuda")
apply(large)
small = small + 1
print(small.sum().item())
