# SPDX-License-Identifier: Apache-2.0
# An empty tensor gives a grid of 0 blocks; the kernel comes through PyTorch's run-time compiler.
# expect: cause=launch-config-empty-input certainty=certain,likely exit=1 kernel=twice
# needs: torch nvcc
import torch

SOURCE = """
extern "C" __global__ void twice(float *data, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		data[i] *= 2;
}
"""
x = torch.ones(0, device="cuda")
twice = torch.cuda._compile_kernel(SOURCE, "twice")
twice(grid=(x.numel(), 1, 1), block=(256, 1, 1), args=[x, x.numel()])  # <- here
