# SPDX-License-Identifier: Apache-2.0
# A custom backward launches a CuPy kernel with a wrong offset: that Python line is named.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=fill function=backward
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")


class Constant(torch.autograd.Function):
    offset = 0

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        fill((1,), (out.numel(),), (out.data_ptr(), np.int64(Constant.offset), np.float32(3)))  # <- here
        return out


x = torch.ones(64, device="cuda", requires_grad=True)
Constant.apply(x).sum().backward()
print(x.grad.sum().item())
Constant.offset = 1 << 39
loss = Constant.apply(x).sum()
loss.backward()
print(x.grad.sum().item())
