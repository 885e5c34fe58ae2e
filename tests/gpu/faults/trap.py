# SPDX-License-Identifier: Apache-2.0
# The kernel stops itself when it meets a negative number.
# expect: cause=kernel-trap certainty=certain exit=1 code=719 kernel=root
# needs: torch cupy
import cupy
import torch

root = cupy.RawKernel(r"""
extern "C" __global__ void root(float *data)
{
	float x = data[threadIdx.x];

	if (x < 0)
		__trap();
	data[threadIdx.x] = sqrtf(x);
}
""", "root")


def norm(x):
    root((1,), (x.numel(),), (x.data_ptr(),))  # <- here
    return x


print(norm(torch.ones(128, device="cuda")).sum().item())
y = norm(torch.linspace(-1, 1, 128, device="cuda"))
for _ in range(10):
    y = y * 0.5
print(y.sum().item())
