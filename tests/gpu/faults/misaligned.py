# SPDX-License-Identifier: Apache-2.0
# A load of 16 bytes from an address that is a multiple of 4 only.
# expect: cause=misaligned-address certainty=certain exit=1 code=716 kernel=load4
# needs: torch cupy
import cupy
import numpy as np
import torch

load4 = cupy.RawKernel(r"""
extern "C" __global__ void load4(const float *in, float4 *out, int skip)
{
	out[threadIdx.x] = reinterpret_cast<const float4 *>(in + skip)[threadIdx.x];
}
""", "load4")


def copy(x, skip):
    out = torch.empty(64, 4, device="cuda")
    load4((1,), (64,), (x.data_ptr(), out.data_ptr(), np.int32(skip)))  # <- here
    return out


x = torch.arange(1024, device="cuda", dtype=torch.float32)
print(copy(x, 4).sum().item())
y = copy(x, 1)
print((y + 1).sum().item())
