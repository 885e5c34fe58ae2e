# SPDX-License-Identifier: Apache-2.0
# The indices change between forward and backward, behind the back of the version counter: the kernel
# of the built-in backward writes far outside.
# expect: cause=illegal-access-out-of-bounds exit=1 code=700
# needs: torch
import torch
import torch.nn as nn

table = nn.Embedding(100, 64).cuda()


def forward(ids):
    return table(ids).sum()  # <- here


def train(ids, damage):
    loss = forward(ids)
    if damage:
        ids.data.fill_(1_400_000_000)
    loss.backward()  # <- backward


train(torch.arange(16, device="cuda"), False)
print(table.weight.grad.sum().item())
train(torch.arange(16, device="cuda"), True)
other = torch.ones(10, device="cuda") + 1
print(other.sum().item())
