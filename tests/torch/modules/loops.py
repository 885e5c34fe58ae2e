# SPDX-License-Identifier: Apache-2.0
"""A recurrent cell, called at each step by the one that has it, and what its author calls by hand."""
import truth
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, width=256, device="cuda"):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(width, width, device=device) for _ in range(2)])
        self.norm = nn.LayerNorm(width, device=device)
        self.heads = nn.ModuleDict({"next": nn.Linear(width, width, device=device), "value": nn.Linear(width, 1, device=device)})

    def read(self, steps):
        state = [torch.zeros(32, 256, device="cuda") for _ in self.cells]
        for step in steps:
            for number, cell in enumerate(self.cells):
                state[number] = cell.forward(step, state[number])
                step = self.norm(state[number])
        return self.heads["next"](step), self.heads["value"](step)


model = Reader()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    sum(out.sum() for out in model.read(torch.randn(12, 32, 256, device="cuda"))).backward()
    optimizer.step()
kept = model.read(torch.randn(12, 32, 256, device="cuda"))
truth.tell(model)
