# SPDX-License-Identifier: Apache-2.0
# The same with a CuPy kernel and a block that is too large.
# expect: cause=launch-config-block-limit certainty=certain,likely exit=1 function=backward
# needs: torch cupy
import cupy
import torch
from helpers import raw


class Filled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        out = cupy.zeros(x.numel(), dtype=cupy.float32)
        raw.fill()((1,), (x.numel(),), (out, cupy.float32(1)))  # <- here
        return torch.as_tensor(out, device="cuda").view_as(x)


x = torch.ones(2000, device="cuda", requires_grad=True)
(Filled.apply(x) * 3).sum().backward()
