# SPDX-License-Identifier: Apache-2.0
# A kernel that hangs on a side stream; the program goes on after the dump and sees the error that it brings.
# expect: cause=kernel-hang certainty=certain exit=1 kernel=barrier
# options: --hang-after 5s --hang-go-on
# needs: cupy torch
import cupy
import torch
from helpers import raw

# the threads of the second half never come to the barrier's counter
BARRIER = r"""
extern "C" __global__ void barrier(int *count)
{
	if (threadIdx.x < 32)
		atomicAdd(count, 1);
	while (atomicAdd(count, 0) < (int)blockDim.x)
		;
}
"""
count = torch.zeros(1, dtype=torch.int32, device="cuda")
torch.cuda.synchronize()
side = torch.cuda.Stream()
with cupy.cuda.ExternalStream(side.cuda_stream):
    raw.kernel(BARRIER, "barrier")((1,), (64,), (cupy.asarray(count),))  # <- here
side.synchronize()
