# SPDX-License-Identifier: Apache-2.0
# A custom gradient of the wrong shape. How it ends is not asked: PyTorch's thread for backward may abort() while Python ends, with cuwhy and
# without (5 and 6 of 50 runs on a simulated GPU with two cores).
# expect: cause=shape-mismatch
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
