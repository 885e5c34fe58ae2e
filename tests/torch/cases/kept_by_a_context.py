# SPDX-License-Identifier: Apache-2.0
# What custom functions save for backward, and what they keep as attributes of ctx, is kept with the graphs of their results.
# expect: cause=oom-growth|oom-capacity|oom-graph-retention|oom-eval-without-no-grad exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: outputs 46
import torch


def big():
    return torch.empty(256 << 20, dtype=torch.uint8, device="cuda")


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, big())
        ctx.extra = {"mask": (big(), 1)}
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def main():
    outputs = []
    x = torch.randn(8, device="cuda", requires_grad=True)
    while True:
        outputs.append(Scale.apply(x))


main()
