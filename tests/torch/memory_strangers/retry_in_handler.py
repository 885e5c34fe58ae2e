# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-growth
"""Falls back to half the batch inside of the except block, where the exception still keeps the tensors of the first attempt."""
import torch
import torch.nn as nn

BATCH = 24576  #@scale


class Model(nn.Module):
    def __init__(self, width=2048, depth=10):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(depth))

    def forward(self, x):
        outputs = []
        for block in self.blocks:
            x = x + block(x)
            outputs.append(x)
        return torch.stack([o.mean() for o in outputs]).sum()


def update(model, opt, size):
    x = torch.randn(size, 2048, device="cuda")
    loss = model(x)  #@here
    opt.zero_grad()
    loss.backward()
    opt.step()


def main():
    model = Model().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    update(model, opt, BATCH // 16)
    try:
        update(model, opt, BATCH)  #@here
    except torch.OutOfMemoryError as error:
        print("retrying:", str(error)[:40])
        update(model, opt, BATCH // 2)  #@here


main()
