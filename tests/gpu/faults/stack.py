# SPDX-License-Identifier: Apache-2.0
# Recursion that is much too deep.
# expect: cause=kernel-stack-overflow certainty=certain exit=1 kernel=descend
# needs: torch cupy
import cupy
import numpy as np
import torch

descend = cupy.RawKernel(r"""
__device__ __noinline__ float walk(const float *tree, int depth, float *path)
{
	float mine[32];
	for (int i = 0; i < 32; i++)
		mine[i] = path[i % 4] + tree[(depth + i) % 32];
	if (depth > 0)
		mine[1] += walk(tree, depth - 1, mine);
	return mine[0] + mine[1] + mine[depth % 32];
}
extern "C" __global__ void descend(float *tree, int depth)
{
	float path[4] = {0, 1, 2, 3};
	tree[threadIdx.x] = walk(tree, depth, path);
}
""", "descend")
tree = torch.zeros(32, device="cuda")
for depth in (1, 100000):
    descend((1,), (32,), (tree.data_ptr(), np.int32(depth)))  # <- here
    tree = tree + 1
    print(tree.isfinite().all().item())
