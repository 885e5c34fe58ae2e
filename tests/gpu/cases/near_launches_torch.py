# SPDX-License-Identifier: Apache-2.0
# The largest batches that fit, in a PyTorch operator, in Triton and in PyTorch's own loader.
# expect-silent: exit=0
# needs: torch triton
# same-output
import torch
import triton
import triton.language as tl
from helpers.kernels import load
from helpers.pooling import Model


@triton.jit
def scale(data, count, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(data + at, tl.load(data + at, mask=at < count) * 2, mask=at < count)


print(Model().cuda()(torch.ones(65535, 1, 4, 4, device="cuda")).sum().item())
x = torch.ones(65535 * 16, device="cuda")
scale[(1, 65535)](x, x.numel(), BLOCK=16)
scale[(0,)](x, x.numel(), BLOCK=16)
touch = load()
touch(grid=(1, 1, 1), block=(1024, 1, 1), args=[x, x.numel()])
y = torch.randn(2, 1000, device="cuda", requires_grad=True)
torch.nn.functional.pdist(y).sum().backward()
print(x.sum().item(), y.grad.shape)
