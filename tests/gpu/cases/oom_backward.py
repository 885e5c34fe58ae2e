# SPDX-License-Identifier: Apache-2.0
# The forward fits, the backward of the same line needs twice as much.
# expect: cause=oom-capacity exit=1
# needs: torch
# alone
import torch

GIB = 1 << 30
torch.zeros(1, device="cuda")
free, total = torch.cuda.mem_get_info()
ballast = torch.empty(free - 22 * GIB, dtype=torch.uint8, device="cuda")
weight = torch.ones(2 * GIB, device="cuda", requires_grad=True)


def loss_of(w):
    return (w * w).sum()  # <- forward


loss = loss_of(weight)
loss.backward()  # <- here
