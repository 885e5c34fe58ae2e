# SPDX-License-Identifier: Apache-2.0
# A custom gradient of the wrong shape.
# expect: cause=shape-mismatch exit=1
# needs: torch
import torch


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx, grad):
        return grad @ torch.ones(3, 3, device="cuda")  # <- here


x = torch.ones(2, 4, device="cuda", requires_grad=True)
Halve.apply(x).sum().backward()
