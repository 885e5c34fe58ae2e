# SPDX-License-Identifier: Apache-2.0
# A tensor that was never moved to the GPU: its address is one of the CPU. Where the driver can let a
# GPU read such memory (HMM, ATS) this is no error, and the program is skipped.
# expect: cause=illegal-access-host-pointer exit=1 code=700 kernel=twice
# needs: torch cupy private-host-memory
import cupy
import torch

twice = cupy.RawKernel(r"""
extern "C" __global__ void twice(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = 2 * in[i];
}
""", "twice")


def apply(source, target):
    twice((4,), (256,), (source.data_ptr(), target.data_ptr()))  # <- here


weights = torch.ones(1 << 20)
out = torch.zeros(1024, device="cuda")
apply(weights.cuda(), out)
print(out.sum().item())
apply(weights, out)
out = out + 1
print(out.sum().item())
