# SPDX-License-Identifier: Apache-2.0
# A custom backward written in Python launches the bad kernel: that Python line is named.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1 function=backward
# needs: torch triton
import torch
import triton
import triton.language as tl


@triton.jit
def copy(source, target, BLOCK: tl.constexpr):
    at = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at))


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        out = torch.empty_like(grad)
        copy[(1, 1, grad.shape[0])](grad.contiguous(), out, BLOCK=16)  # <- here
        return out * 2


x = torch.ones(70000, 16, device="cuda", requires_grad=True)
loss = Scale.apply(x).sum()
loss.backward()
